/** Limits a caller that has access to only one namespace, such as a binding of an app, to this namespace. */
import type { RequestHandler } from "express";
import { ActorError } from "../../../schemas/errors.ts";
import { folded } from "../../../schemas/repositories/git-names.ts";
import { type Caller, callerOf } from "../../http/locals.ts";
import type { Route } from "../../http/route.ts";

/**
 * Returns middleware that checks the namespace in a route's path. If the path names no namespace, callers that
 * have access to only one are refused, unless the route is `isOpenToBindings`.
 */
export function checkNamespace({ path, isOpenToBindings = false }: Route): RequestHandler {
  const isNamed = path.includes("{namespace}");
  return (request, response, next) => {
    const caller = callerOf(response);
    if (isNamed) mustOpenNamespace(caller, String(request.params.namespace));
    else if (caller.namespace !== undefined && !isOpenToBindings) throw outside(caller.namespace);
    next();
  };
}

/** Throws ActorError `forbidden` if the caller has access only to another namespace. */
export function mustOpenNamespace({ namespace: own }: Caller, namespace: string): void {
  if (own !== undefined && folded(own) !== folded(namespace)) throw outside(own);
}

function outside(own: string): ActorError {
  return new ActorError(
    "forbidden",
    `Cannot do this: the binding has access to namespace "${own}" only`,
  );
}
