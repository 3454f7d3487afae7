/**
 * Keeps the platform's pages at the host of its public URL. On a single machine apps are at `localhost`, and browsers
 * would send them the cookies of pages at any port of that host.
 */
import type { RequestHandler } from "express";

/** Programs come here without cookies, and get none. */
const OF_PROGRAMS =
  /^\/(v4|git|healthz|livez|metrics|\.well-known|oauth2\/(token|revoke|introspect|userinfo))(\/|$)/;

export function leadToOwnHost(publicUrl: string): RequestHandler {
  return (request, response, next) => {
    // Undefined where a client of HTTP/1.0 sends none.
    const host = (request.hostname as string | undefined)?.toLowerCase();
    if (host !== "localhost" || OF_PROGRAMS.test(request.path)) return next();
    response.redirect(308, publicUrl + request.originalUrl);
  };
}
