/** Finds out who asks: the API token of the Authorization header (RFC 6750 section 2.1). */
import type { RequestHandler } from "express";
import type { ActorClient } from "../../actors/runtime/actor-client.ts";
import { apiToken } from "../../schemas/api-token.ts";
import { ActorError } from "../../schemas/errors.ts";
import { readToken } from "../api-token-text.ts";
import { FailedAuthentications } from "../failed-authentications.ts";
import { localsOf } from "../locals.ts";

const REALM = 'Bearer realm="trunkline"';
const EXPECTED = "expected the header Authorization: Bearer <token>";

type TokenHash = NonNullable<ReturnType<typeof readToken>>;

/** An id alone is public: who knows it must not pass for its owner. */
const textOf = ({ id, secretHash }: TokenHash) => `${id} ${secretHash}`;

export function authenticate(actors: ActorClient, now: () => number): RequestHandler {
  const failed = new FailedAuthentications(now);
  return async (request, response, next) => {
    const header = request.get("authorization");
    if (header === undefined) {
      response.set("WWW-Authenticate", REALM);
      throw new ActorError("unauthenticated", `Cannot authenticate: no token, ${EXPECTED}`);
    }
    // Taken back below, once the token is known to be good.
    response.set("WWW-Authenticate", `${REALM}, error="invalid_token"`);
    const [, text] = /^Bearer +(\S+)$/i.exec(header) ?? [];
    if (text === undefined) {
      throw new ActorError("unauthenticated", `Cannot authenticate: unknown scheme, ${EXPECTED}`);
    }
    const token = readToken(text);
    if (!token) throw new ActorError("unauthenticated", "Cannot authenticate: unknown token");
    const address = request.ip ?? "";
    const retryAfterS = failed.begin(address, textOf(token));
    if (retryAfterS > 0) {
      response.removeHeader("WWW-Authenticate");
      const message = "Cannot authenticate: too many unknown tokens came from this address";
      throw new ActorError("rate_limited", message, { retryAfterS });
    }
    const verified = await verify(address, token);
    response.removeHeader("WWW-Authenticate");
    localsOf(response).caller = { tokenId: token.id, ...verified };
    next();
  };

  async function verify(address: string, token: TokenHash) {
    const { id, secretHash } = token;
    try {
      const verified = await actors.call(apiToken, id, "verify", { secretHash });
      failed.settle(address, textOf(token), "good");
      return verified;
    } catch (error) {
      const unknown = error instanceof ActorError && error.code === "unauthenticated";
      failed.settle(address, textOf(token), unknown ? "unknown" : "unclear");
      throw error;
    }
  }
}
