/** Refuses requests that could not be kept, before a person is asked about them. */
import type { KoaContextWithOIDC } from "oidc-provider";
import { LOGOUT_TEXT_CHARS_MAX } from "../../../schemas/account/limits.ts";
import { errors } from "../library/oidc-library.ts";
import type { ProviderParts } from "./provider-parts.ts";

/** What a request brings to that: its nonce, scopes, challenge and address. The rest is what the server adds. */
export const TOKEN_REQUEST_BYTES_MAX = 6 * 1024;

/** What is kept beside the tokens that come of it; all of it is no longer than a URL. */
export function checkSize(sent: Record<string, unknown>): void {
  const { nonce, acr_values, scope, code_challenge, redirect_uri } = sent;
  const kept = { nonce, acr_values, scope, code_challenge, redirect_uri };
  if (Buffer.byteLength(JSON.stringify(kept)) <= TOKEN_REQUEST_BYTES_MAX) return;
  const names = Object.keys(kept).join(", ");
  throw new errors.InvalidRequest(
    `the request is too long: ${names} together may be ${TOKEN_REQUEST_BYTES_MAX} bytes, as JSON`,
  );
}

export function isShortLogout({ oidc }: KoaContextWithOIDC): boolean {
  const { state } = oidc.params ?? {};
  return typeof state !== "string" || state.length <= LOGOUT_TEXT_CHARS_MAX;
}

/** By a page and not by an error: the library would keep first what it has read already. */
export function refuseLogout(context: KoaContextWithOIDC, pages: ProviderParts["pages"]): void {
  const { session } = context.oidc;
  if (session) Object.assign(session, { state: undefined });
  context.status = 400;
  const error_description = `the request is too long: state may be ${LOGOUT_TEXT_CHARS_MAX} characters`;
  pages.error(context, { error: "invalid_request", error_description });
}
