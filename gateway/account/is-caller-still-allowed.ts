/**
 * Repeats the checks of a request for connections that outlive it. A revoked, replaced or restricted credential must
 * end them.
 */
import type { Response } from "express";
import { ActorError } from "../../schemas/errors.ts";
import { callerOf, localsOf } from "../http/locals.ts";
import type { Route } from "../http/route.ts";
import { permitsOne } from "./middleware/check-permission.ts";

/**
 * Resolves to whether the request's credential still opens its account, with a permission that the route accepts.
 * Rejects if that cannot be found out now.
 */
export async function isCallerStillAllowed(
  response: Response,
  { permissions: accepted }: Pick<Route, "permissions">,
): Promise<boolean> {
  const { findCallerAgain } = localsOf(response);
  // The code of an app has no credential that can be revoked. Its requests have a deadline.
  if (!findCallerAgain) return true;
  try {
    const { accountId, permissions } = await findCallerAgain();
    const isSame = accountId === callerOf(response).accountId;
    return isSame && (accepted === undefined || permitsOne(permissions, accepted));
  } catch (error) {
    if (error instanceof ActorError && error.code === "unauthenticated") return false;
    throw error;
  }
}
