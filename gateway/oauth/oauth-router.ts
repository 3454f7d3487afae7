/** The authorization server as part of the gateway: the endpoints of oidc-provider, and our pages. */
import type { ErrorRequestHandler, Request, RequestHandler, Response } from "express";
import { Router } from "express";
import type { Logger } from "pino";
import type { LiveUpdates } from "../../actors/runtime/bus/live.ts";
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { LOGIN_WINDOW_MS } from "../../schemas/account/limits.ts";
import { requestLimit } from "../../schemas/account/request-limit.ts";
import { ActorError } from "../../schemas/errors.ts";
import { FailedAuthentications } from "../account/failed-authentications.ts";
import { countersOf, networkOf } from "../account/network-of.ts";
import { cookieNames, knowBrowser } from "../account/pages/browser-cookies.ts";
import { Interactions } from "../account/pages/interactions.ts";
import { KnownBrowsers } from "../account/pages/known-browsers.ts";
import { readForm } from "../account/pages/visit.ts";
import { methodNotAllowed } from "../http/middleware/method-not-allowed.ts";
import { setRetryAfter } from "../http/retry-after.ts";
import { FormMarks } from "../pages/form-marks.ts";
import { linkBelow } from "../pages/page.ts";
import { findClient } from "./clients/find-client.ts";
import { isTemporary } from "./library/is-temporary.ts";
import { libraryPages } from "./pages/library-pages.ts";
import { pageError, pageRouter, showOver } from "./pages/page-router.ts";
import { LiveProvider } from "./provider/live-provider.ts";
import { KnownIntrospections } from "./tokens/known-introspections.ts";

/**
 * Limits the query of an authorization or sign-out form in characters. The gateway turns such a form into a redirect
 * to an address with this query. An address and all headers together must not exceed 16 KB.
 */
export const AUTHORIZATION_QUERY_CHARS_MAX = 8_000;
/** Limits the authorization requests from one network in LOGIN_WINDOW_MS. Each is stored until a person decides. */
export const AUTHORIZATIONS_PER_ADDRESS_MAX = 600;
/**
 * Limits the sign-out requests from one network in LOGIN_WINDOW_MS that name a client. For each, the gateway looks
 * the client up.
 */
export const SIGN_OUTS_PER_ADDRESS_MAX = 600;

interface OAuthOptions {
  actors: ActorClient;
  live: LiveUpdates;
  logger: Logger;
  config: {
    publicUrl: string;
    signup?: "open" | "closed" | undefined;
    requestsPerWindow: number;
  };
  now: () => number;
  stopping: AbortSignal;
}

/** Methods of each endpoint. Endpoints with OPTIONS answer CORS preflight requests themselves. */
const ENDPOINTS = {
  "/.well-known/oauth-authorization-server": ["GET", "OPTIONS"],
  "/.well-known/openid-configuration": ["GET", "OPTIONS"],
  "/.well-known/jwks.json": ["GET", "OPTIONS"],
  "/oauth2/auth": ["GET", "POST"],
  "/oauth2/auth/:uid": ["GET"],
  "/oauth2/token": ["POST", "OPTIONS"],
  "/oauth2/revoke": ["POST", "OPTIONS"],
  "/oauth2/introspect": ["POST"],
  "/oauth2/userinfo": ["GET", "POST", "OPTIONS"],
  "/oauth2/logout": ["GET", "POST"],
  "/oauth2/logout/confirm": ["POST"],
  "/oauth2/logout/success": ["GET"],
} as const;

/** At these endpoints a refusal is an HTML page, because a person sees it. */
const isForPeople = (path: string) => /^\/oauth2\/(auth|logout)\b/.test(path);

/** Paths that a client's page may open in a popup window and stay connected to. */
const OPENED_BY_CLIENTS = ["/oauth2/auth", "/oauth2/consent", "/login", "/signup"];

export function oauthRouter({ actors, config, ...options }: OAuthOptions): Router {
  const { publicUrl, signup = "open", requestsPerWindow } = config;
  const cookies = cookieNames(publicUrl);
  const link = linkBelow(publicUrl);
  const { host, protocol } = new URL(publicUrl);
  const introspections = new KnownIntrospections({ ...options, actors });
  const holder = new LiveProvider({
    ...options,
    actors,
    introspections,
    publicUrl,
    requestsPerWindow,
    cookies,
    failed: new FailedAuthentications(options.now),
    pages: libraryPages(link),
  });
  const marks = new FormMarks(() => holder.secret());
  const known = new KnownBrowsers(() => holder.secret(), cookies);
  const interactions = new Interactions(actors);
  const router = Router({ caseSensitive: true });
  router.use(OPENED_BY_CLIENTS, allowOpener);
  router.use(
    pageRouter({
      ...{ actors, cookies, marks, known, interactions, link, publicUrl, signup, showOver },
      clientNameOf: async (clientId) => (await findClient(actors, clientId))?.clientName,
    }),
  );
  const showError = pageError({ link });
  const { limitAuthorizations, limitSignOuts } = addressLimits(actors);
  const stepsAt: Record<string, RequestHandler[]> = {
    "/oauth2/auth": [limitAuthorizations, toLibrary],
    "/oauth2/introspect": [introspections.handler(toLibrary)],
    "/oauth2/logout": [limitSignOuts, toLibrary],
    "/oauth2/logout/success": [limitSignOuts, toLibrary],
  };
  router.post(["/oauth2/auth", "/oauth2/logout"], readForm, redirectForm, showError);
  for (const [path, methods] of Object.entries(ENDPOINTS)) {
    const steps = stepsAt[path] ?? [toLibrary];
    const allowed: readonly string[] = methods;
    router.all(path, (request, _response, next) => {
      const method = request.method === "HEAD" ? "GET" : request.method;
      next(allowed.includes(method) ? undefined : "router");
    });
    router.all(path, steps, isForPeople(path) ? showError : refuseProgram(options.logger));
  }
  const refusing = Router({ caseSensitive: true });
  for (const [path, methods] of Object.entries(ENDPOINTS)) {
    refusing.all(path, methodNotAllowed(methods.filter((method) => method !== "OPTIONS")));
  }
  return Router().use(router, refusing);

  /**
   * Redirects a POST to the same path as a GET with its fields in the query. A form that another site submits arrives
   * without our cookies (SameSite=Lax); the redirected request has them. OpenID Connect Core 3.1.2.1 and RP-Initiated
   * Logout 2 require both methods.
   */
  function redirectForm({ body, path }: Request, response: Response): void {
    // oidc-provider refuses a field that was sent twice (RFC 6749 section 3.1). Without a form there is no body.
    const fields = Object.entries<unknown>(body ?? {}).flatMap(([name, value]) =>
      [value].flat().map((one) => [name, String(one)]),
    );
    const query = new URLSearchParams(fields).toString();
    if (query.length > AUTHORIZATION_QUERY_CHARS_MAX) {
      const text = `Cannot read request: the form has more than ${AUTHORIZATION_QUERY_CHARS_MAX} characters`;
      throw new ActorError("invalid_request", text);
    }
    response.redirect(303, link(`${path}?${query}`));
  }

  async function toLibrary(...[request, response]: Parameters<RequestHandler>): Promise<void> {
    const provider = await holder.provider();
    // Only endpoints for people set the browser cookie, not endpoints for programs.
    if (isForPeople(request.path)) knowBrowser(request, response, cookies);
    // oidc-provider builds absolute addresses from the headers of the request. Set these headers to the public
    // address of the settings.
    const { headers } = request;
    delete headers["x-forwarded-host"];
    delete headers[":authority"];
    headers.host = host;
    headers["x-forwarded-proto"] = protocol.slice(0, -1);
    request.originalUrl = link(request.url);
    await provider.callback()(request, response);
  }
}

/**
 * Answers a program when actors failed before oidc-provider had the request. An OAuth client expects an error of RFC
 * 6749 section 5.2, not the envelope of the REST API.
 */
function refuseProgram(logger: Logger): ErrorRequestHandler {
  return (error, request, response, next) => {
    if (response.headersSent || !isTemporary(error)) return next(error);
    logger.warn({ err: error, path: request.path }, "authorization server unavailable");
    setRetryAfter(response, 503);
    const error_description = "try again in a moment";
    response
      .status(503)
      .set("Cache-Control", "no-store")
      .json({ error: "temporarily_unavailable", error_description });
    // Reads the rest of the request. Otherwise its time limit would close the connection.
    request.resume();
  };
}

/** Limits the requests that people of one network make in their browsers, before oidc-provider looks up a client. */
function addressLimits(actors: ActorClient) {
  async function take(act: string, request: Request, most: number): Promise<void> {
    for (const { key, limit } of countersOf(act, networkOf(request.ip ?? ""), most)) {
      const window = { limit, windowMs: LOGIN_WINDOW_MS };
      const { allowed, resetS } = await actors.call(requestLimit, key, "take", window);
      if (allowed) continue;
      const text = `Cannot ${act}: too many requests came from this address`;
      throw new ActorError("rate_limited", text, { retryAfterS: resetS });
    }
  }
  return {
    /**
     * Limits the authorization requests of one network. Each is stored until a person decides, for ten minutes at
     * most.
     */
    async limitAuthorizations(request: Request, _response: Response, next: () => void) {
      await take("authorize", request, AUTHORIZATIONS_PER_ADDRESS_MAX);
      next();
    },
    /** Limits sign-outs that name a client. */
    async limitSignOuts(request: Request, _response: Response, next: () => void) {
      const { client_id, id_token_hint } = request.query;
      if (client_id || id_token_hint) await take("sign-out", request, SIGN_OUTS_PER_ADDRESS_MAX);
      next();
    },
  };
}

/**
 * Keeps `window.opener` between a popup window of this page and the client's page that opened it. All other paths
 * forbid it.
 */
function allowOpener(_request: Request, response: Response, next: () => void): void {
  response.set("Cross-Origin-Opener-Policy", "unsafe-none");
  next();
}
