/** The store of clients with their current registration. */
import type { Adapter } from "oidc-provider";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { findClient } from "../clients/find-client.ts";
import { metadataOf } from "../clients/live-client.ts";
import { Provider } from "../library/oidc-library.ts";
import { recordsOf } from "../library/request-records.ts";
import { beginAttempt } from "../library/throttle.ts";
import { readTokenText } from "../tokens/token-text.ts";
import { findToken } from "./find-token.ts";
import { type StoreParts, store } from "./library-store.ts";

/** For each grant type, the parameter with the code or token that the request uses up. */
const TEXT_OF: Record<string, string | undefined> = {
  authorization_code: "code",
  refresh_token: "refresh_token",
};

/**
 * Returns the store of clients. `find` also starts the lookup of the code or token, in parallel, which saves a round
 * trip. A client that fails to authenticate learns nothing about the token.
 */
export function clientStore({ actors, failed }: Omit<StoreParts, "now">): Adapter {
  return store({
    async find(id) {
      await beginAttempt(failed, id);
      const { route, params } = Provider.ctx?.oidc ?? {};
      const text =
        route === "token" && params ? params[TEXT_OF[String(params.grant_type)] ?? ""] : "";
      const address = typeof text === "string" ? readTokenText(text) : undefined;
      // Errors are ignored here: the next caller of `findToken` gets the same promise and its error.
      if (address) findToken(actors, address).catch(() => {});
      return clientOf(actors, id);
    },
  });
}

/** Looks a client up at most once per request. */
export async function clientOf(actors: ActorClient, id: string) {
  const { clients } = recordsOf(Provider.ctx);
  const known =
    clients.get(id) ?? findClient(actors, id).then((client) => client && metadataOf(id, client));
  clients.set(id, known);
  return known;
}
