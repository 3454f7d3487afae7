/** Finds out who asks: the API token or OAuth access token of the Authorization header (RFC 6750 section 2.1). */
import type { RequestHandler } from "express";
import { apiToken } from "../../schemas/api-token.ts";
import { ActorError } from "../../schemas/errors.ts";
import { readToken } from "../api-token-text.ts";
import { FailedAuthentications } from "../failed-authentications.ts";
import { type Caller, localsOf } from "../locals.ts";
import { AccessTokens, type AccessTokensOptions } from "../oauth/access-tokens.ts";

const REALM = 'Bearer realm="trunkline"';
const EXPECTED = "expected the header Authorization: Bearer <token>";

interface Finder {
  /** Of this token and no other, and no secret. */
  name: string;
  find(): Promise<Caller>;
}

export function authenticate({ actors, live, now }: AccessTokensOptions): RequestHandler {
  const failed = new FailedAuthentications(now);
  const accessTokens = new AccessTokens({ actors, live, now });
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
    const found = finderOf(text, request.params.account_id);
    if (!found) throw new ActorError("unauthenticated", "Cannot authenticate: unknown token");
    const address = request.ip ?? "";
    const retryAfterS = failed.begin(address, found.name);
    if (retryAfterS > 0) {
      response.removeHeader("WWW-Authenticate");
      const message = "Cannot authenticate: too many unknown tokens came from this address";
      throw new ActorError("rate_limited", message, { retryAfterS });
    }
    const caller = await verify(address, found);
    response.removeHeader("WWW-Authenticate");
    localsOf(response).caller = caller;
    next();
  };

  /** How to look up a token, by its look; undefined when it is none of ours. */
  function finderOf(text: string, askedId: unknown): Finder | undefined {
    const access = accessTokens.read(text);
    if (access) {
      const accountId = typeof askedId === "string" ? askedId : undefined;
      return { name: access.hash, find: () => accessTokens.verify(access, accountId) };
    }
    const token = readToken(text);
    if (!token) return undefined;
    const { id, secretHash } = token;
    const find = async () => ({
      tokenId: id,
      ...(await actors.call(apiToken, id, "verify", { secretHash })),
    });
    // An id alone is public: who knows it must not pass for its owner.
    return { name: `${id} ${secretHash}`, find };
  }

  async function verify(address: string, { name, find }: Finder): Promise<Caller> {
    try {
      const caller = await find();
      failed.settle(address, name, "good");
      return caller;
    } catch (error) {
      const unknown = error instanceof ActorError && error.code === "unauthenticated";
      failed.settle(address, name, unknown ? "unknown" : "unclear");
      throw error;
    }
  }
}
