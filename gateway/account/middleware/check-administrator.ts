/** Refuses all callers except signed-in administrators of the installation. */
import type { RequestHandler } from "express";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { INSTALLATION_KEY, installation } from "../../../schemas/account/installation.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { callerOf } from "../../http/locals.ts";

/** Tokens are refused: a token gives programs access to one account, but these routes show data of all accounts. */
export function checkAdministrator(actors: ActorClient): RequestHandler {
  return async (_request, response, next) => {
    const { session, userId } = callerOf(response);
    if (!session || userId === undefined) {
      const expected = "expected an administrator's session in a browser, no token";
      throw new ActorError("forbidden", `Cannot do this: ${expected}`);
    }
    const { is } = await actors.call(installation, INSTALLATION_KEY, "isAdministrator", { userId });
    if (!is) {
      throw new ActorError(
        "forbidden",
        "Cannot do this: it needs an administrator of the installation",
      );
    }
    next();
  };
}
