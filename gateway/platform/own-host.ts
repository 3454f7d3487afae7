/**
 * Redirects requests for the platform's pages to the host of its public URL. On a single machine apps are at
 * `localhost`, and browsers send cookies to all ports of a host. So at `localhost` apps would receive the cookies of
 * the pages.
 */
import type { RequestHandler } from "express";

/** Paths for programs are not redirected: their requests carry no cookies and get none. */
const OF_PROGRAMS =
  /^\/(v4|git|healthz|livez|metrics|\.well-known|oauth2\/(token|revoke|introspect|userinfo))(\/|$)/;

export function leadToOwnHost(publicUrl: string): RequestHandler {
  return (request, response, next) => {
    // The host name is undefined if an HTTP/1.0 client sends none.
    const host = (request.hostname as string | undefined)?.toLowerCase();
    if (host !== "localhost" || OF_PROGRAMS.test(request.path)) return next();
    response.redirect(308, publicUrl + request.originalUrl);
  };
}
