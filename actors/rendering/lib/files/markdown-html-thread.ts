/** The thread that converts one Markdown document to a page. */
import { parentPort } from "node:worker_threads";
import { markdownHtml } from "./markdown-html.ts";

parentPort?.once("message", (markdown: string) => {
  parentPort?.postMessage(markdownHtml(markdown));
});
