/**
 * Serves the invoice, its style sheet and its picture, with headers that forbid caching. Answers each question with
 * the server's address.
 */
import { startHttpServer } from "../../testing/loopback-server.ts";
import { answerParent } from "../answer-parent.ts";
import { LINKED_INVOICE, PICTURE, STYLE } from "./invoice.ts";

const PARTS: Record<string, [type: string, text: string]> = {
  "/": ["text/html", LINKED_INVOICE],
  "/style.css": ["text/css", STYLE],
  "/picture.svg": ["image/svg+xml", PICTURE],
};

const server = await startHttpServer((request, response) => {
  const [type, text] = PARTS[request.url ?? ""] ?? [];
  if (type === undefined) response.writeHead(404).end();
  else response.writeHead(200, { "Content-Type": type, "Cache-Control": "no-store" }).end(text);
}, "127.0.0.1");

answerParent({
  answer: async () => `http://${server.address}:${server.port}/`,
  close: () => server.close(),
});
