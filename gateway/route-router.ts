/** Routes requests by the route table. Each route is a list of checks followed by its handler. */
import { type Request, type RequestHandler, Router } from "express";
import { z } from "zod";
import type { LiveUpdates } from "../actors/runtime/bus/live.ts";
import type { ActorClient } from "../actors/runtime/calls/actor-client.ts";
import { callsOf } from "../actors/runtime/calls/call-places.ts";
import { isCallerStillAllowed } from "./account/is-caller-still-allowed.ts";
import { authenticate } from "./account/middleware/authenticate.ts";
import { checkAccount } from "./account/middleware/check-account.ts";
import { checkAdministrator } from "./account/middleware/check-administrator.ts";
import { checkPermission } from "./account/middleware/check-permission.ts";
import { limitRequests } from "./account/middleware/limit-requests.ts";
import type { SessionCallers } from "./account/session-callers.ts";
import { clientSignal } from "./http/client-signal.ts";
import { success } from "./http/envelope.ts";
import { callerOf, localsOf } from "./http/locals.ts";
import { methodNotAllowed } from "./http/middleware/method-not-allowed.ts";
import { bodyBudget, readBody } from "./http/middleware/read-body.ts";
import { parseRequest } from "./http/parse-request.ts";
import type { Route } from "./http/route.ts";
import { TokenFinder } from "./oauth/tokens/token-finder.ts";
import { checkNamespace } from "./repositories/routes/check-namespace.ts";

export function routeRouter(
  routes: readonly Route[],
  {
    actors,
    live,
    requestsPerWindow,
    now,
    sessions,
    authenticated = authenticate(new TokenFinder({ actors, live, now }), now, sessions),
  }: {
    actors: ActorClient;
    live: LiveUpdates;
    requestsPerWindow: number;
    now: () => number;
    /** If set, signed-in persons can use the routes from the platform's own pages. */
    sessions?: SessionCallers;
    /** The middleware that authenticates callers without a token, such as the code of apps. */
    authenticated?: RequestHandler;
  },
): RequestHandler {
  // Express tries the paths of a router in turn, so each area has a router of its own.
  const areas = new Map<string, Router>();
  const budget = bodyBudget();
  for (const [path, atPath] of Map.groupBy(routes.flatMap(pathsOf), ({ path }) => path)) {
    const methods = atPath.map(({ route }) => route.method.toUpperCase());
    const rest = atPath.find(({ route }) => route.rest !== undefined)?.route.rest;
    const expressPath = path.replaceAll(
      /\{(\w+)\}/g,
      (_, name) => `${name === rest ? "*" : ":"}${name}`,
    );
    const area = areas.getOrInsertComputed(areaOf(path), () => Router({ caseSensitive: true }));
    const steps = area.route(expressPath);
    for (const { route } of atPath) steps[route.method](stepsOf(route));
    steps.all(methodNotAllowed(methods));
  }
  return (request, response, next) => {
    const area = areas.get(areaOf(request.path));
    if (area) area(request, response, next);
    else next();
  };

  function stepsOf(route: Route): RequestHandler[] {
    return [
      takeRoute(route),
      authenticated,
      countCalls,
      limitRequests(actors, requestsPerWindow, route),
      checkAccount,
      ...(route.isOfAdministrators ? [checkAdministrator(actors)] : []),
      ...(route.permissions ? [checkPermission(route.permissions, route)] : []),
      checkNamespace(route),
      ...(route.body ? [readBody({ ...route.body, takesFiles: route.takesFiles }, budget)] : []),
      handle(route),
    ];
  }
}

/** Returns the part of a path that names its area: the segment behind the account, or else the first segment. */
function areaOf(path: string): string {
  const [, first = "", , third = ""] = path.split("/", 4);
  return first === "accounts" ? `${first} ${third}` : first;
}

function pathsOf(route: Route) {
  const paths = route.alias === undefined ? [route.path] : [route.path, route.alias];
  return paths.map((path) => ({ path, route }));
}

function takeRoute(route: Route): RequestHandler {
  return (_request, response, next) => {
    localsOf(response).route = route;
    if (route.rendering) response.set({ "X-Browser-Ms-Used": "0", "X-Queued-Ms": "0" });
    next();
  };
}

/** Counts the calls of the request for the caller's account. The code of an app calls for the visitors of the app. */
const countCalls: RequestHandler = (_request, response, next) => {
  const { accountId, app } = callerOf(response);
  callsOf({ accountId, isVisitor: app !== undefined }, next);
};

function handle(route: Route): RequestHandler {
  return async (request, response) => {
    const locals = localsOf(response);
    const parameters = parseRequest(route.parameters, parametersOf(request), "/path");
    const query = parseRequest(route.query, knownQuery(route.query, request.query), "/query");
    const body = route.body && parseRequest(route.body.schema, locals.body, "");
    // Release the unparsed body: it may be large and is not needed any more.
    locals.body = undefined;
    const signal = clientSignal(response);
    const caller = callerOf(response);
    const { logger } = locals;
    const isStillAllowed = () => isCallerStillAllowed(response, route);
    const asked = { parameters, query, body, caller, signal, logger, isStillAllowed };
    const answer = await route.handle(asked, response).catch((error: unknown) => {
      // If the client has left, the error is no fault of the gateway, so the reason of the abort is thrown instead.
      throw signal.aborted ? signal.reason : error;
    });
    if (!answer) return;
    if ("bare" in route.answer) {
      response.json(answer.result);
      return;
    }
    const { status = 200 } = "result" in route.answer ? route.answer : {};
    response.status(status);
    if (status === 204) response.end();
    else response.json(success(answer.result, answer.resultInfo));
  };
}

/** Removes unknown parameters, as the public API does, because clients add parameters of their own. */
function knownQuery(schema: z.ZodType, query: Request["query"]): Request["query"] {
  if (!(schema instanceof z.ZodObject)) return query;
  return Object.fromEntries(
    Object.entries(query).filter(([name]) => Object.hasOwn(schema.shape, name)),
  );
}

/** Joins the parts of a parameter that may contain slashes; Express returns it as an array. */
function parametersOf({ params }: Request): Record<string, string> {
  const joined = Object.entries(params).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join("/") : value,
  ]);
  return Object.fromEntries(joined);
}
