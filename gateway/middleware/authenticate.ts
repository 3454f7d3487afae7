/** Finds out who asks: the API token of the Authorization header (RFC 6750 section 2.1). */
import type { RequestHandler } from "express";
import type { ActorClient } from "../../actors/runtime/actor-client.ts";
import { apiToken } from "../../schemas/api-token.ts";
import { ActorError } from "../../schemas/errors.ts";
import { readToken } from "../api-token-text.ts";
import { localsOf } from "../locals.ts";

const REALM = 'Bearer realm="trunkline"';
const EXPECTED = "expected the header Authorization: Bearer <token>";

export function authenticate(actors: ActorClient): RequestHandler {
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
    const { id, secretHash } = token;
    const verified = await actors.call(apiToken, id, "verify", { secretHash });
    response.removeHeader("WWW-Authenticate");
    localsOf(response).caller = { tokenId: id, ...verified };
    next();
  };
}
