/** The store of grants: the permissions that a person gave to a client. */
import type { Adapter } from "oidc-provider";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { type GrantEntry, oauthGrant } from "../../../schemas/oauth/oauth-grant.ts";
import { callAndNotify } from "../../http/call-and-notify.ts";
import { Provider } from "../library/oidc-library.ts";
import { recordsOf } from "../library/request-records.ts";
import { type StoreParts, seconds, store, unlessUnknown } from "./library-store.ts";

export function grantStore({ actors }: Pick<StoreParts, "actors">): Adapter {
  return store({
    async find(id) {
      const { grants } = recordsOf(Provider.ctx);
      const grant = grants.get(id) ?? (await unlessUnknown(actors.call(oauthGrant, id, "get", {})));
      return grant && grantPayload(id, grant);
    },
    destroy: (id) => revoke(actors, id),
  });
}

function grantPayload(id: string, grant: GrantEntry) {
  return {
    jti: id,
    kind: "Grant",
    accountId: grant.userId,
    clientId: grant.clientId,
    iat: seconds(grant.createdAt),
    exp: seconds(grant.expiresAt),
    openid: { scope: grant.scopes.join(" ") },
    rejected: { openid: { scope: grant.rejectedScopes.join(" ") } },
  };
}

export async function revoke(actors: ActorClient, grantId: string): Promise<void> {
  await callAndNotify(actors, oauthGrant, grantId, "revoke", {});
}
