/** Reports a temporary failure of actors as the OAuth error `temporarily_unavailable`. */

import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { isTemporary } from "./is-temporary.ts";
import { errors } from "./oidc-library.ts";

/** The library has no class for this error of RFC 6749 section 4.1.2.1. */
class TemporarilyUnavailable extends errors.OIDCProviderError {
  override error_description = "try again in a moment";

  constructor(cause: unknown) {
    super(503, "temporarily_unavailable");
    this.cause = cause;
    this.expose = true;
  }
}

/**
 * Returns an ActorClient whose `call` converts temporary refusals to errors that oidc-provider can send to an OAuth
 * client.
 */
export function withOAuthErrors(actors: ActorClient): ActorClient {
  const call: ActorClient["call"] = async (...asked) => {
    try {
      return await actors.call(...asked);
    } catch (error) {
      throw isTemporary(error) ? new TemporarilyUnavailable(error) : error;
    }
  };
  return {
    call,
    send: (...sent) => actors.send(...sent),
    run: (...asked) => actors.run(...asked),
  };
}
