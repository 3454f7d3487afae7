/** The landing page, favicon.ico and robots.txt, and the 404 page for browsers. */
import { type RequestHandler, Router } from "express";
import { methodNotAllowed } from "../http/middleware/method-not-allowed.ts";
import { CONSOLE } from "../pages/console-path.ts";
import { html } from "../pages/html.ts";
import { type Link, linkBelow, sendPage } from "../pages/page.ts";

/** Excludes search engines, because an installation is a private tool. */
const ROBOTS = "User-agent: *\nDisallow: /\n";
const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#14598f"/>' +
  '<path d="M8 9h16v4h-6v12h-4V13H8z" fill="#fff"/></svg>';
/** Browsers may cache these files for one day, because they rarely change. */
const KEPT = "public, max-age=86400";

interface LandingParts {
  publicUrl: string;
  signup?: "open" | "closed" | undefined;
}

export function landingRouter({ publicUrl, signup }: LandingParts): Router {
  const link = linkBelow(publicUrl);
  const router = Router({ caseSensitive: true });
  router.get("/", (_request, response) => sendPage(response, 200, landingPage(link, signup), link));
  router.get("/robots.txt", (_request, response) => {
    response.set("Cache-Control", KEPT).type("txt").send(ROBOTS);
  });
  router.get("/favicon.ico", (_request, response) => {
    response.set("Cache-Control", KEPT).type("svg").send(ICON);
  });
  for (const path of ["/", "/robots.txt", "/favicon.ico"]) {
    router.all(path, methodNotAllowed(["GET"]));
  }
  return router;
}

/** Answers browsers with a page for unknown paths. Programs get the JSON envelope of the next middleware. */
export function notFoundPage(publicUrl: string): RequestHandler {
  const link = linkBelow(publicUrl);
  const body = html`<h1>There is no such page</h1>
<p>The address may be mistyped, or what was there is gone.</p>
<p class="links"><a href="${link("/")}">Start page</a> <a href="${link("/docs")}">API documentation</a></p>`;
  return (request, response, next) => {
    const isApi = /^\/(v4|git|oauth2)(\/|$)/.test(request.path);
    const isRead = request.method === "GET" || request.method === "HEAD";
    // A client that accepts all types equally is treated as a program.
    const wantsPage = !isApi && isRead && request.accepts(["json", "html"]) === "html";
    if (wantsPage) sendPage(response, 404, { title: "No such page", body }, link);
    else next();
  };
}

function landingPage(link: Link, signup: LandingParts["signup"]) {
  const body = html`<h1>Trunkline</h1>
<p>Renders and crawls the web, hosts Git repositories, authorizes clients and runs agents.</p>
<p class="buttons"><a class="button" href="${link(CONSOLE)}">Open the console</a>
<a class="button" href="${link("/docs")}">API documentation</a></p>
${signup !== "closed" && html`<p><a href="${link("/signup")}">Create an account</a></p>`}`;
  return { title: "Start", body };
}
