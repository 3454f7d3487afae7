/**
 * Authenticates a request by the API token or OAuth access token in its Authorization header (RFC 6750 section 2.1), or
 * by the session of the platform's own pages.
 */
import type { Request, RequestHandler, Response } from "express";
import { ActorError } from "../../../schemas/errors.ts";
import { clientSignal } from "../../http/client-signal.ts";
import { type Caller, localsOf } from "../../http/locals.ts";
import { FailedAuthentications } from "../failed-authentications.ts";
import type { FoundToken, Tokens } from "../found-token.ts";
import type { SessionCallers } from "../session-callers.ts";

const REALM = 'Bearer realm="trunkline"';
const EXPECTED = "expected the header Authorization: Bearer <token>";

/** If `sessions` is absent, only tokens are accepted, not sessions. */
export function authenticate(
  tokens: Tokens,
  now: () => number,
  sessions?: SessionCallers,
): RequestHandler {
  const failed = new FailedAuthentications(now);
  return async (request, response, next) => {
    const header = request.get("authorization");
    const { account_id: asked } = request.params;
    const askedId = typeof asked === "string" ? asked : undefined;
    const locals = localsOf(response);
    if (header === undefined) {
      const find = async () => {
        const caller = await sessions?.find(request, askedId);
        if (caller) return caller;
        if (!response.headersSent) response.set("WWW-Authenticate", REALM);
        throw new ActorError("unauthenticated", `Cannot authenticate: no token, ${EXPECTED}`);
      };
      locals.caller = await find();
      locals.findCallerAgain = find;
      return next();
    }
    // Removed below if the token is valid, or if the request is refused because of a rate limit.
    response.set("WWW-Authenticate", `${REALM}, error="invalid_token"`);
    const [, text] = /^Bearer +(\S+)$/i.exec(header) ?? [];
    if (text === undefined) {
      throw new ActorError("unauthenticated", `Cannot authenticate: unknown scheme, ${EXPECTED}`);
    }
    const found = tokens.read(text, askedId);
    if (!found) throw new ActorError("unauthenticated", "Cannot authenticate: unknown token");
    try {
      locals.caller = await verify(request, response, found);
      locals.findCallerAgain = found.find;
    } catch (error) {
      if (isRateLimited(error)) response.removeHeader("WWW-Authenticate");
      throw error;
    }
    response.removeHeader("WWW-Authenticate");
    next();
  };

  async function verify(
    request: Request,
    response: Response,
    { credential, find }: FoundToken,
  ): Promise<Caller> {
    const address = request.ip ?? "";
    const attempt = await failed.begin(address, credential, clientSignal(response));
    try {
      const caller = await find();
      attempt.settle("good");
      return caller;
    } catch (error) {
      const unknown = error instanceof ActorError && error.code === "unauthenticated";
      const retryAfterS = attempt.settle(unknown ? "unknown" : "unclear");
      if (retryAfterS === 0) throw error;
      const message = "Cannot authenticate: too many unknown tokens came from this address";
      throw new ActorError("rate_limited", message, { retryAfterS });
    }
  }
}

const isRateLimited = (error: unknown) =>
  error instanceof ActorError && error.code === "rate_limited";
