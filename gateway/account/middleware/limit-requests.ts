/** Counts the requests of an account, reports the count in RateLimit headers, and refuses requests past the limit. */
import type { RequestHandler } from "express";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { requestLimit } from "../../../schemas/account/request-limit.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { REQUEST_WINDOW_MS } from "../../../schemas/limits.ts";
import { callerOf } from "../../http/locals.ts";

/**
 * Allows `limit` requests in REQUEST_WINDOW_MS; 0 means no limit. The headers follow
 * draft-ietf-httpapi-ratelimit-headers-10.
 */
export function limitRequests(actors: ActorClient, limit: number): RequestHandler {
  if (limit === 0) return (_request, _response, next) => next();
  const policy = `"default";q=${limit};w=${REQUEST_WINDOW_MS / 1_000}`;
  return async (_request, response, next) => {
    const { accountId } = callerOf(response);
    const input = { limit, windowMs: REQUEST_WINDOW_MS };
    const counted = await actors.call(requestLimit, accountId, "take", input);
    response.set({
      "RateLimit-Policy": policy,
      RateLimit: `"default";r=${counted.remaining};t=${counted.resetS}`,
    });
    if (counted.allowed) return next();
    throw new ActorError(
      "rate_limited",
      `Cannot accept request: the account's ${limit} requests in ${REQUEST_WINDOW_MS / 1_000} seconds are used up`,
      { retryAfterS: counted.resetS },
    );
  };
}
