/** Looks each token up at most once per request. */
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { oauthGrant } from "../../../schemas/oauth/oauth-grant.ts";
import { Provider } from "../library/oidc-library.ts";
import { recordsOf } from "../library/request-records.ts";
import type { TokenAddress } from "../tokens/token-text.ts";
import { unlessUnknown } from "./library-store.ts";

/** Resolves to the token and its grant; undefined if the token is unknown. */
export function findToken(actors: ActorClient, { kind, grantId, hash }: TokenAddress) {
  const { tokens } = recordsOf(Provider.ctx);
  const found =
    tokens.get(hash) ?? unlessUnknown(actors.call(oauthGrant, grantId, "find", { kind, hash }));
  tokens.set(hash, found);
  return found;
}
