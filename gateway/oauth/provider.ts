/** The library, made to ask actors, to answer as we do, and to say what failed. */
import type { EventEmitter } from "node:events";
import type { KoaContextWithOIDC } from "oidc-provider";
import { finishAnswer } from "./finish-answer.ts";
import { adaptClient } from "./library-clients.ts";
import { adaptSession, adaptTokens } from "./library-tokens.ts";
import { withOAuthErrors } from "./oauth-errors.ts";
import { Provider } from "./oidc-library.ts";
import { configuration } from "./provider-configuration.ts";
import type { ProviderParts } from "./provider-parts.ts";
import type { ServerKeys } from "./signing-keys.ts";
import { settleTry } from "./throttle.ts";

export function makeProvider(parts: ProviderParts, keys: ServerKeys): Provider {
  const { logger, publicUrl } = parts;
  const actors = withOAuthErrors(parts.actors);
  const provider = new Provider(publicUrl, configuration({ ...parts, actors }, keys));
  provider.proxy = true;
  provider.on("server_error", (context, error) => {
    logger.error({ err: error, route: context.oidc?.route }, "authorization server failed");
  });
  // What nothing of the library has caught.
  const uncaught: EventEmitter = provider;
  uncaught.on("error", (error) => {
    logger.error({ err: error }, "authorization server failed");
  });
  adaptTokens(provider);
  adaptSession(provider);
  adaptClient(provider, { ...parts, actors });
  provider.use(async (context, next) => {
    try {
      await next();
    } finally {
      await settleTry(context as KoaContextWithOIDC);
    }
    finishAnswer(context as KoaContextWithOIDC, parts);
  });
  return provider;
}
