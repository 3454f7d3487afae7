/** Looks tokens up, each once a request. */
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { oauthGrant } from "../../schemas/oauth/oauth-grant.ts";
import { unlessUnknown } from "./library-store.ts";
import { Provider } from "./oidc-library.ts";
import { recordsOf } from "./request-records.ts";
import type { TokenAddress } from "./token-text.ts";

/** With its grant. */
export function findToken(actors: ActorClient, { kind, grantId, hash }: TokenAddress) {
  const { tokens } = recordsOf(Provider.ctx);
  const found =
    tokens.get(hash) ?? unlessUnknown(actors.call(oauthGrant, grantId, "find", { kind, hash }));
  tokens.set(hash, found);
  return found;
}
