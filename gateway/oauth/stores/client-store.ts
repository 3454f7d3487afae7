/** Clients, looked up as they are now. */
import type { Adapter } from "oidc-provider";
import type { ActorClient } from "../../../actors/runtime/actor-client.ts";
import { findClient } from "../clients/find-client.ts";
import { metadataOf } from "../clients/live-client.ts";
import { Provider } from "../library/oidc-library.ts";
import { recordsOf } from "../library/request-records.ts";
import { beginAttempt } from "../library/throttle.ts";
import { readTokenText } from "../tokens/token-text.ts";
import { findToken } from "./find-token.ts";
import { type StoreParts, store } from "./library-store.ts";

/**
 * What a client brings is looked up beside the client, not after it: by the time the client has proved itself, both are
 * known. Who does not prove itself hears nothing of it.
 */
export function clientStore({ actors, failed }: Omit<StoreParts, "now">): Adapter {
  return store({
    async find(id) {
      await beginAttempt(failed, id);
      const { route, params } = Provider.ctx?.oidc ?? {};
      if (route === "token") {
        for (const text of [params?.refresh_token, params?.code]) {
          const address = typeof text === "string" ? readTokenText(text) : undefined;
          // The next caller of `findToken` receives the failure.
          if (address) findToken(actors, address).catch(() => {});
        }
      }
      return clientOf(actors, id);
    },
  });
}

/** A client, once a request. */
export async function clientOf(actors: ActorClient, id: string) {
  const { clients } = recordsOf(Provider.ctx);
  const known =
    clients.get(id) ?? findClient(actors, id).then((client) => client && metadataOf(id, client));
  clients.set(id, known);
  return known;
}
