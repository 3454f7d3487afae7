/** Refuses requests that are too large to store, before a person sees them. */
import type { KoaContextWithOIDC } from "oidc-provider";
import { LOGOUT_TEXT_CHARS_MAX } from "../../../schemas/account/limits.ts";
import { errors } from "../library/oidc-library.ts";
import type { ProviderParts } from "./provider-parts.ts";

/**
 * Limits the bytes that a request adds to the record of a token: nonce, scopes, challenge and address. The server
 * adds the other fields.
 */
export const TOKEN_REQUEST_BYTES_MAX = 6 * 1024;

/**
 * Refuses an authorization request whose parameters are too large to be stored with its code and each of its tokens.
 */
export function checkSize(sent: Record<string, unknown>): void {
  const { nonce, acr_values, scope, code_challenge, redirect_uri } = sent;
  const stored = { nonce, acr_values, scope, code_challenge, redirect_uri };
  if (Buffer.byteLength(JSON.stringify(stored)) <= TOKEN_REQUEST_BYTES_MAX) return;
  const names = Object.keys(stored).join(", ");
  throw new errors.InvalidRequest(
    `the request is too long: ${names} together may be ${TOKEN_REQUEST_BYTES_MAX} bytes, as JSON`,
  );
}

export function isShortLogout({ oidc }: KoaContextWithOIDC): boolean {
  const { state } = oidc.params ?? {};
  return typeof state !== "string" || state.length <= LOGOUT_TEXT_CHARS_MAX;
}

/**
 * Answers a sign-out request that is too large with an error page. It throws no error, because oidc-provider would
 * first store the parameters that it has already read.
 */
export function refuseLogout(context: KoaContextWithOIDC, pages: ProviderParts["pages"]): void {
  const { session } = context.oidc;
  if (session) Object.assign(session, { state: undefined });
  context.status = 400;
  const error_description = `the request is too long: state may be ${LOGOUT_TEXT_CHARS_MAX} characters`;
  pages.error(context, { error: "invalid_request", error_description });
}
