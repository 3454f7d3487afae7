/** Serves the console: the same HTML page for all of its addresses, and the files of its program. */
import { gzipSync } from "node:zlib";
import { type Request, Router } from "express";
import { methodNotAllowed } from "../http/middleware/method-not-allowed.ts";
import { CONSOLE, consolePathOf } from "../pages/console-path.ts";
import { html } from "../pages/html.ts";
import { type Link, linkBelow } from "../pages/page.ts";
import { type ConsoleBundle, type ConsoleFile, consoleBundle } from "./bundle.ts";

/**
 * Returns the content security policy. Results of renderings are shown as pictures and documents from memory (blob:).
 * Browsers refuse to interpret any text as markup (require-trusted-types-for).
 */
const policyFor = (files: string) =>
  [
    "default-src 'none'",
    // Names the folder, because apps serve their own scripts on the same origin.
    `script-src ${files}`,
    `style-src ${files}`,
    "img-src 'self' data: blob:",
    "frame-src blob:",
    "connect-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
const FILES = `${CONSOLE}/files`;
/** Caching without limit is safe, because the name of a file contains a hash of its content. */
const KEPT = "public, max-age=31536000, immutable";

interface ConsoleParts {
  /** Resolves with true if a person is signed in. */
  isSignedIn(request: Request): Promise<boolean>;
  publicUrl: string;
}

export function consoleRouter({ isSignedIn, publicUrl }: ConsoleParts): Router {
  const link = linkBelow(publicUrl);
  const files = new ConsoleFiles();
  const policy = policyFor(new URL(link(`${FILES}/`), publicUrl).href);
  const router = Router({ caseSensitive: true });
  router.get(`${FILES}/:name`, async ({ params, acceptsEncodings }, response, next) => {
    const file = await files.find(params.name);
    if (!file) return next();
    response.set({ "Cache-Control": KEPT, Vary: "Accept-Encoding" });
    response.type(params.name.endsWith(".css") ? "css" : "js");
    const isCompressed = acceptsEncodings.call(response.req, "gzip", "identity") === "gzip";
    if (isCompressed) response.set("Content-Encoding", "gzip");
    response.send(isCompressed ? file.compressed : file.text);
  });
  router.get([CONSOLE, `${CONSOLE}/*path`], async (request, response) => {
    if (!(await isSignedIn(request))) {
      const next = new URLSearchParams({ next: consolePathOf(request.url) });
      return response.redirect(303, link(`/login?${next}`));
    }
    response.set("Content-Security-Policy", policy).type("html");
    response.send(shellOf(await files.bundle(), link));
  });
  router.all([CONSOLE, `${CONSOLE}/*path`], methodNotAllowed(["GET"]));
  return router;
}

function shellOf({ script, style }: ConsoleBundle, link: Link): string {
  return html`<!doctype html>
<html lang="en" data-root="${link("")}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Console – Trunkline</title>
<link rel="icon" href="${link("/favicon.ico")}">
<link rel="stylesheet" href="${link(`${FILES}/${style}`)}">
<script type="module" src="${link(`${FILES}/${script}`)}"></script>
</head>
<body>
<div id="console"><p class="starting">Opening the console …</p></div>
<noscript><p class="starting">The console needs JavaScript. Everything in it is also in the REST API.</p></noscript>
</body>
</html>
`.toString();
}

/** Keeps the program's files in memory, each compressed one time. */
class ConsoleFiles {
  #loading: Promise<{ bundle: ConsoleBundle; files: Map<string, ServedFile> }> | undefined;

  async bundle(): Promise<ConsoleBundle> {
    return (await this.#load()).bundle;
  }

  async find(name: string): Promise<ServedFile | undefined> {
    return (await this.#load()).files.get(name);
  }

  /** If the load fails, the failure is not cached, and the next request tries again. */
  #load() {
    this.#loading ??= load().catch((error: unknown) => {
      this.#loading = undefined;
      throw error;
    });
    return this.#loading;
  }
}

type ServedFile = ConsoleFile & { compressed: Buffer };

async function load() {
  const bundle = await consoleBundle();
  const files = bundle.files.map((file) => ({ ...file, compressed: gzipSync(file.text) }));
  return { bundle, files: new Map(files.map((file) => [file.name, file])) };
}
