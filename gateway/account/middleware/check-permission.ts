/** Refuses a caller whose token has none of the permissions that the route requires. */
import type { RequestHandler } from "express";
import { PERMISSIONS, type Permission, permits } from "../../../schemas/account/permissions.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { callerOf } from "../../http/locals.ts";

/** With `isOfPerson`, a signed-in person needs no permission, and tokens are refused. */
export function checkPermission(
  accepted: readonly Permission[],
  { isOfPerson = false } = {},
): RequestHandler {
  const names = accepted.map((permission) => `"${PERMISSIONS[permission]}"`).join(" or ");
  return (_request, response, next) => {
    const { permissions: held, session } = callerOf(response);
    if (isOfPerson && session) return next();
    if (isOfPerson) {
      const expected = "expected a person's session in a browser, no token";
      throw new ActorError("forbidden", `Cannot do this: ${expected}`);
    }
    if (permitsOne(held, accepted)) return next();
    response.set("WWW-Authenticate", `Bearer realm="trunkline", error="insufficient_scope"`);
    throw new ActorError("forbidden", `Cannot do this: the token lacks ${names}`);
  };
}

export const permitsOne = (held: readonly Permission[], accepted: readonly Permission[]) =>
  accepted.some((permission) => permits(held, permission));
