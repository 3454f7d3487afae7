/**
 * Serves the pages of the corpus, their libraries, and the resources that the pages request. Answers each question
 * with the site's address.
 */
import { execFileSync } from "node:child_process";
import { createReadStream, existsSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { extname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startHttpServer } from "../../../testing/loopback-server.ts";
import { answerParent } from "../../answer-parent.ts";
import { CORPUS } from "./pages.ts";

const TYPES: Record<string, string> = {
  ".css": "text/css",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".woff2": "font/woff2",
};
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="200" height="100"><rect width="200" height="100" fill="#48c"/></svg>`;
const pages = new Map(CORPUS.map((page) => [`/pages/${page.name}`, page]));

if (!existsSync(join(import.meta.dirname, "node_modules"))) {
  console.error("installing the libraries of the corpus: npm ci in scripts/bench/rendering/corpus");
  execFileSync("npm", ["ci", "--ignore-scripts", "--no-fund", "--no-audit"], {
    cwd: import.meta.dirname,
  });
}
const server = await startHttpServer(async (request, response) => {
  const url = new URL(request.url ?? "/", "http://corpus");
  await sleep(Number(url.searchParams.get("ms") ?? 0));
  await answer(url, response);
}, "127.0.0.1");

answerParent({
  answer: async () => `http://${server.address}:${server.port}`,
  close: () => server.close(),
});

async function answer({ pathname, searchParams }: URL, response: ServerResponse): Promise<void> {
  const page = pages.get(pathname);
  if (page) {
    const { name, head = "", body } = page;
    return send(response, "text/html", `<!doctype html><title>${name}</title>${head}<body>${body}`);
  }
  const { type, text } = PARTS[pathname] ?? {};
  if (type !== undefined) return send(response, type, text?.(searchParams) ?? "");
  const [, path] = /^(?:\/slow)?\/libraries\/(.*)$/.exec(pathname) ?? [];
  const file = path && join(import.meta.dirname, "node_modules", path);
  if (file && existsSync(file)) {
    response.setHeader("Content-Type", TYPES[extname(file)] ?? "application/octet-stream");
    createReadStream(file).pipe(response);
    return;
  }
  if (pathname === "/stream") return stream(response);
  if (pathname === "/events") {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write("data: first\n\ndata: last\n\n");
    return;
  }
  response.writeHead(404).end();
}

/** Resources with a fixed text, by path. */
const PARTS: Record<string, { type: string; text: (query: URLSearchParams) => string }> = {
  "/json": {
    type: "application/json",
    text: (query) => JSON.stringify({ step: query.get("step") ?? "answer" }),
  },
  "/picture.svg": { type: "image/svg+xml", text: () => SVG },
  "/sheet.css": { type: "text/css", text: () => ".styled { color: #c06; font-size: 40px }" },
  "/module.js": { type: "text/javascript", text: () => `export default "from a module"` },
  "/fragment": { type: "text/html", text: () => "<p>from the server" },
};

async function stream(response: ServerResponse): Promise<void> {
  response.writeHead(200, { "Content-Type": "text/plain" });
  for (const part of ["one", "two", "three"]) {
    response.write(part);
    await sleep(120);
  }
  response.end();
}

function send(response: ServerResponse, type: string, text: string): void {
  response.writeHead(200, { "Content-Type": `${type}; charset=utf-8` }).end(text);
}
