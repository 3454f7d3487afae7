/** Holds a caller that one namespace of repositories is open to, a binding of an app, to it. */
import type { RequestHandler } from "express";
import { ActorError } from "../../../schemas/errors.ts";
import { folded } from "../../../schemas/repositories/git-names.ts";
import { type Caller, callerOf } from "../../http/locals.ts";
import type { Route } from "../../http/route.ts";

/** A route that neither names a namespace in its path nor says that it is open to such callers is refused. */
export function checkNamespace({ path, isOpenToBindings = false }: Route): RequestHandler {
  const isNamed = path.includes("{namespace}");
  return (request, response, next) => {
    const caller = callerOf(response);
    if (isNamed) mustOpenNamespace(caller, String(request.params.namespace));
    else if (caller.namespace !== undefined && !isOpenToBindings) throw outside(caller.namespace);
    next();
  };
}

/** Throws ActorError `forbidden` where the caller is held to another namespace. */
export function mustOpenNamespace({ namespace: own }: Caller, namespace: string): void {
  if (own !== undefined && folded(own) !== folded(namespace)) throw outside(own);
}

function outside(own: string): ActorError {
  return new ActorError(
    "forbidden",
    `Cannot do this: the binding has access to namespace "${own}" only`,
  );
}
