/** Replaces how oidc-provider compares the redirect URIs and secrets of clients. */
import type { Logger } from "pino";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { SECRET_USED_EVERY_MS } from "../../../schemas/oauth/limits.ts";
import { oauthClient } from "../../../schemas/oauth/oauth-client.ts";
import { matchingSecret } from "../clients/client-secret.ts";
import { type Client, registrationOf } from "../clients/live-client.ts";
import { Provider } from "../library/oidc-library.ts";
import { isAmong } from "../stores/registration-check.ts";

export function adaptClient(
  { Client }: Provider,
  { actors, logger, now }: { actors: ActorClient; logger: Logger; now: () => number },
): void {
  Object.assign(Client.prototype, {
    redirectUriAllowed(this: Client, uri: unknown) {
      return isAmong(this.redirectUris, uri);
    },
    postLogoutRedirectUriAllowed(this: Client, uri: unknown) {
      return isAmong(this.postLogoutRedirectUris, uri);
    },
    // form_post needs a script, which our pages forbid. The response mode `fragment` is used only by response types
    // that the server refuses.
    responseModeAllowed: (mode: string | undefined, responseType: string) =>
      mode === undefined || mode === "query" || responseType !== "code",
    compareClientSecret(this: Client, given: string) {
      const registration = registrationOf(this);
      if (!registration) return false;
      const isBasic = Provider.ctx?.headers.authorization !== undefined;
      const match = matchingSecret(registration.secrets, given);
      if (!match || isBasic !== (this.clientAuthMethod === "client_secret_basic")) return false;
      if (now() - match.lastUsedAt >= SECRET_USED_EVERY_MS) {
        const used = actors.send(oauthClient, this.clientId, "secretUsed", { secretId: match.id });
        used.catch((error: unknown) =>
          logger.warn({ err: error }, "use of a client secret not recorded"),
        );
      }
      return true;
    },
  });
}
