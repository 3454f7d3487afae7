/** A site that serves the HTML files of a folder from memory. Its robots.txt asks for no delay. */
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { answerParent } from "../answer-parent.ts";

const [folder = "."] = process.argv.slice(2);
const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
const pages = new Map(
  names
    .filter((name) => name.endsWith(".html"))
    .map((name) => [`/${name}`, readFileSync(join(folder, name))]),
);
const server = createServer((request, response) => {
  const path = request.url ?? "/";
  const page = pages.get(path);
  if (path === "/robots.txt") {
    response.writeHead(200, { "Content-Type": "text/plain" });
    response.end("User-agent: *\nCrawl-delay: 0\n");
  } else if (page === undefined) response.writeHead(404).end();
  else {
    const fields = { "Content-Type": "text/html; charset=utf-8", "Content-Length": page.length };
    response.writeHead(200, fields).end(page);
  }
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1");
await once(server, "listening");
const { port } = server.address() as { port: number };

answerParent({
  answer: async () => ({ url: `http://127.0.0.1:${port}/index.html`, pages: pages.size }),
  async close() {
    server.closeAllConnections();
  },
});
