/**
 * Creates an instance of oidc-provider that stores its records in actors, corrects its answers and logs its failures.
 */
import type { EventEmitter } from "node:events";
import type { KoaContextWithOIDC } from "oidc-provider";
import { withOAuthErrors } from "../library/oauth-errors.ts";
import { Provider } from "../library/oidc-library.ts";
import { settleAttempt } from "../library/throttle.ts";
import { adaptClient } from "./adapt-client.ts";
import { adaptSession, adaptTokens } from "./adapt-tokens.ts";
import { finishAnswer } from "./finish-answer.ts";
import { configuration } from "./provider-configuration.ts";
import type { ProviderParts } from "./provider-parts.ts";
import type { ServerKeys } from "./signing-keys.ts";

export function makeProvider(parts: ProviderParts, keys: ServerKeys): Provider {
  const { logger, publicUrl } = parts;
  const actors = withOAuthErrors(parts.actors);
  const provider = new Provider(publicUrl, configuration({ ...parts, actors }, keys));
  provider.proxy = true;
  provider.on("server_error", (context, error) => {
    logger.error({ err: error, route: context.oidc?.route }, "authorization server failed");
  });
  // Logs the errors that no handler of oidc-provider caught.
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
      await settleAttempt(context as KoaContextWithOIDC);
    }
    finishAnswer(context as KoaContextWithOIDC, parts);
  });
  return provider;
}
