/**
 * Hides all accounts except the caller's own. A request for another account gets the same answer as for an account
 * that does not exist.
 */
import type { RequestHandler } from "express";
import { ActorError } from "../../../schemas/errors.ts";
import { callerOf } from "../../http/locals.ts";

export const checkAccount: RequestHandler = (request, response, next) => {
  const { account_id: asked } = request.params;
  if (asked !== undefined && asked !== callerOf(response).accountId) {
    throw new ActorError(
      "not_found",
      "Cannot find account: it does not exist, or the token has no access to it",
    );
  }
  next();
};
