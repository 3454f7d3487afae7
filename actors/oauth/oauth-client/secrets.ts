/** The secrets of a client: the newest, and at most one older secret that is still valid until it is removed. */
import type { Input } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { CLIENT_SECRETS_MAX } from "../../../schemas/oauth/limits.ts";
import type { oauthClient } from "../../../schemas/oauth/oauth-client.ts";
import type { LoggedChange } from "./change-log.ts";
import type { LiveClient, StoredSecret } from "./oauth-client-state.ts";

type NewSecret = Input<(typeof oauthClient)["messages"]["addSecret"]>["secret"];

export function newSecret({ hash, lastFour }: NewSecret, id: string, now: number): StoredSecret {
  return { id, hash, lastFour, createdAt: now };
}

/**
 * Returns the state with one more secret, and the secret that it replaces. If the newer of two secrets was never
 * used, it is replaced: the response that showed it may have been lost, so that nobody knows it.
 */
export function withSecret(
  state: LiveClient,
  secret: StoredSecret,
): [LiveClient, StoredSecret | undefined] {
  if (state.registration.tokenEndpointAuthMethod === "none") {
    throw new ActorError(
      "invalid_request",
      'Cannot rotate secret: a client with token_endpoint_auth_method "none" has none',
    );
  }
  if (state.secrets.length < CLIENT_SECRETS_MAX) {
    return [{ ...state, secrets: [...state.secrets, secret] }, undefined];
  }
  const unused = state.secrets.at(-1);
  if (unused?.lastUsedAt !== undefined) {
    throw new ActorError(
      "conflict",
      `Cannot rotate secret: the client has ${CLIENT_SECRETS_MAX} and uses the new one, so the old one must be deleted first`,
    );
  }
  return [{ ...state, secrets: [...state.secrets.slice(0, -1), secret] }, unused];
}

/** Returns the state without the older of the two secrets, and the removed secret. */
export function withoutOldSecret(state: LiveClient): [LiveClient, StoredSecret] {
  const [old, ...newer] = state.secrets;
  if (old === undefined || newer.length === 0) {
    throw new ActorError("not_found", "Cannot delete old secret: the client was not rotated");
  }
  return [{ ...state, secrets: newer }, old];
}

export function secretLog(
  action: "secret_added" | "secret_removed",
  { lastFour }: StoredSecret,
): LoggedChange {
  const hint = JSON.stringify(`…${lastFour}`);
  const [from, to] = action === "secret_added" ? [null, hint] : [hint, null];
  return { action, changes: [{ field: "secret", from, to }] };
}
