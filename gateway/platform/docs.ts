/** Serves the OpenAPI document and a page that shows it. */
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { Router } from "express";
import { methodNotAllowed } from "../http/middleware/method-not-allowed.ts";
import { hasEntityTag } from "../http/ranged-answer.ts";
import type { Route } from "../http/route.ts";
import { type Link, linkBelow } from "../pages/page.ts";
import { openApiDocument } from "./openapi.ts";

const DOCUMENT_PATH = "/v4/openapi.json";
const ASSETS = ["swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png"] as const;

// The policy allows what Swagger UI needs: style attributes and data: images. Nothing is loaded from another origin.
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const pageOf = (link: Link) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Trunkline API</title>
<link rel="icon" href="${link("/docs/favicon-32x32.png")}">
<link rel="stylesheet" href="${link("/docs/swagger-ui.css")}">
</head>
<body>
<main id="api"></main>
<script src="${link("/docs/swagger-ui-bundle.js")}"></script>
<script src="${link("/docs/start.js")}"></script>
</body>
</html>
`;

// Swagger UI has dark colours, but the page must switch them on.
const startOf = (link: Link) => `const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();
SwaggerUIBundle({ url: ${JSON.stringify(link(DOCUMENT_PATH))}, dom_id: "#api", deepLinking: true, defaultModelsExpandDepth: 0 });
`;

interface ServedDocument {
  plain: Buffer;
  compressed: Buffer;
  etag: string;
}

export function docsRouter(routes: readonly Route[], publicUrl: string): Router {
  // The OpenAPI document is made at its first request: making it takes a fifth of a start's processor time, and few
  // gateways ever need it.
  let made: ServedDocument | undefined;
  const link = linkBelow(publicUrl);
  const router = Router({ caseSensitive: true });
  router.get(DOCUMENT_PATH, (request, response) => {
    made ??= makeDocument(routes, publicUrl);
    const { plain, compressed, etag } = made;
    // An upgrade of the platform may change the document at any time, so clients must revalidate it.
    response.set({ "Cache-Control": "no-cache", ETag: etag, Vary: "Accept-Encoding" });
    if (hasEntityTag(request.headers["if-none-match"], etag)) {
      response.status(304).end();
      return;
    }
    const isCompressed = request.acceptsEncodings("gzip", "identity") === "gzip";
    if (isCompressed) response.set("Content-Encoding", "gzip");
    response.type("json").send(isCompressed ? compressed : plain);
  });
  router.get("/docs", (_request, response) => {
    response.set("Content-Security-Policy", POLICY).type("html").send(pageOf(link));
  });
  router.get("/docs/start.js", (_request, response) => {
    response.type("js").send(startOf(link));
  });
  for (const name of ASSETS) {
    const file = fileURLToPath(import.meta.resolve(`swagger-ui-dist/${name}`));
    router.get(`/docs/${name}`, (_request, response) => {
      response.sendFile(file);
    });
  }
  for (const path of [
    DOCUMENT_PATH,
    "/docs",
    "/docs/start.js",
    ...ASSETS.map((name) => `/docs/${name}`),
  ]) {
    router.all(path, methodNotAllowed(["GET"]));
  }
  return router;
}

function makeDocument(routes: readonly Route[], publicUrl: string): ServedDocument {
  const plain = Buffer.from(JSON.stringify(openApiDocument(routes, publicUrl)));
  const etag = `"${createHash("sha256").update(plain).digest("base64url")}"`;
  return { plain, compressed: gzipSync(plain), etag };
}
