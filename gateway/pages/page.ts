/** The common HTML around the content of every page, and the security headers of pages. */
import type { ServerResponse } from "node:http";
import { type Html, html } from "./html.ts";
import { STYLE_PATH } from "./style.ts";

export interface Page {
  title: string;
  body: Html;
  /**
   * True if submitting the form may redirect to a client's site. Browsers apply `form-action` to every redirect after
   * a form, also to further redirects on the client's site. Their targets are unknown, so such a page has no
   * `form-action`.
   */
  leadsOut?: boolean;
  /** True if the page shows images of this server. No page loads images from elsewhere. */
  hasImages?: boolean;
  /** Navigation for a signed-in person. */
  nav?: Html | undefined;
}

/** Returns the full address of one of our pages, with the base path below which our pages are. */
export type Link = (path: string) => string;

export function linkBelow(publicUrl: string): Link {
  const base = new URL(publicUrl).pathname.replace(/\/$/, "");
  return (path) => `${base}${path}`;
}

/** Renders the page. `requestId` is shown at the bottom of an error page. */
export function writePage({ title, body, nav }: Page, link: Link, requestId?: string): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} – Trunkline</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${link(STYLE_PATH)}">
</head>
<body>
<header class="site">Trunkline</header>
${nav}
<main>
${body}
${requestId !== undefined && html`<p class="quiet">Request ${requestId}</p>`}
</main>
</body>
</html>
`.toString();
}

/** Returns the headers of this page. Other headers are set for every answer, see security-headers.ts. */
export function pageHeaders({ leadsOut, hasImages }: Page): Record<string, string> {
  const images = ["data:", ...(hasImages ? ["'self'"] : [])];
  return {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": [
      "default-src 'none'",
      "style-src 'self'",
      `img-src ${images.join(" ")}`,
      ...(leadsOut ? [] : ["form-action 'self'"]),
      "base-uri 'none'",
      "frame-ancestors 'none'",
    ].join("; "),
  };
}

export function sendPage(response: ServerResponse, status: number, page: Page, link: Link): void {
  const text = writePage(page, link, status >= 400 ? requestIdOf(response) : undefined);
  response.writeHead(status, {
    ...pageHeaders(page),
    "Content-Length": Buffer.byteLength(text),
  });
  response.end(response.req.method === "HEAD" ? undefined : text);
}

/** Returns the request id in the header of the response. */
export function requestIdOf(response: ServerResponse): string | undefined {
  return response.getHeader("X-Request-Id")?.toString();
}
