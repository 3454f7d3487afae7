/** Refuses a caller whose token holds none of the permissions that open a route. */
import type { RequestHandler } from "express";
import { PERMISSIONS, type Permission, permits } from "../../../schemas/account/permissions.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { callerOf } from "../../http/locals.ts";

export function checkPermission(accepted: readonly Permission[]): RequestHandler {
  const names = accepted.map((permission) => `"${PERMISSIONS[permission]}"`).join(" or ");
  return (_request, response, next) => {
    const held = callerOf(response).permissions;
    if (accepted.some((permission) => permits(held, permission))) return next();
    response.set("WWW-Authenticate", `Bearer realm="trunkline", error="insufficient_scope"`);
    throw new ActorError("forbidden", `Cannot do this: the token lacks ${names}`);
  };
}
