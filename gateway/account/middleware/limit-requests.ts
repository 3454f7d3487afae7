/**
 * Counts requests in windows, reports the counts in RateLimit headers, and refuses requests past the limit. A route that
 * takes access away has a window of its own for each caller, so that nobody can prevent it with other requests.
 */
import type { RequestHandler } from "express";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { REVOCATIONS_PER_WINDOW } from "../../../schemas/account/limits.ts";
import { requestLimit } from "../../../schemas/account/request-limit.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { REQUEST_WINDOW_MS } from "../../../schemas/limits.ts";
import { type Caller, callerOf } from "../../http/locals.ts";
import type { Route } from "../../http/route.ts";

/** A window of requests. `name` is its name in the headers, and `whose` the owner of its requests in a refusal. */
interface Window {
  key: string;
  name: string;
  limit: number;
  whose: string;
}

/**
 * Allows `limit` requests in REQUEST_WINDOW_MS; 0 means no limit. The headers follow
 * draft-ietf-httpapi-ratelimit-headers-10.
 */
export function limitRequests(
  actors: ActorClient,
  limit: number,
  { isRevocation = false }: Pick<Route, "isRevocation">,
): RequestHandler {
  if (limit === 0) return (_request, _response, next) => next();
  return async (_request, response, next) => {
    const caller = callerOf(response);
    const windows = [windowOf(caller, limit), ...(isRevocation ? revocationsOf(caller) : [])];
    const policies: string[] = [];
    const counts: string[] = [];
    let retryAfterS = Number.POSITIVE_INFINITY;
    for (const { key, name, limit } of windows) {
      const input = { limit, windowMs: REQUEST_WINDOW_MS };
      const counted = await actors.call(requestLimit, key, "take", input);
      policies.push(`"${name}";q=${limit};w=${REQUEST_WINDOW_MS / 1_000}`);
      counts.push(`"${name}";r=${counted.remaining};t=${counted.resetS}`);
      response.set({ "RateLimit-Policy": policies.join(", "), RateLimit: counts.join(", ") });
      if (counted.allowed) return next();
      retryAfterS = Math.min(retryAfterS, counted.resetS);
    }
    const used = windows.map(({ limit, whose }) => `${whose} ${limit}`).join(" and ");
    throw new ActorError(
      "rate_limited",
      `Cannot accept request: ${used} requests in ${REQUEST_WINDOW_MS / 1_000} seconds are used up`,
      { retryAfterS },
    );
  };
}

/**
 * Returns the window in which all requests of the caller count. The tokens of an account share one. People and the code
 * of apps have others: neither a leaked token nor a visitor of an app must keep people out of the console.
 */
function windowOf({ accountId, userId, session, app }: Caller, limit: number): Window {
  const window = { name: "default", limit };
  if (app !== undefined) return { ...window, key: `apps-of ${accountId}`, whose: "the apps'" };
  if (session && userId) return { ...window, key: `person ${userId}`, whose: "the person's" };
  return { ...window, key: accountId, whose: "the account's" };
}

/**
 * Returns the window for revocations of the caller, which is used when the other one is full. No other token can use it
 * up, because a leaked token must not prevent its own revocation. The code of apps has none.
 */
function revocationsOf({ tokenId, app }: Caller): Window[] {
  if (app !== undefined) return [];
  const [name, limit, whose] = ["revocations", REVOCATIONS_PER_WINDOW, "the caller's"];
  return [{ key: `revocations-of ${tokenId}`, name, limit, whose }];
}
