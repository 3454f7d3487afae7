/** A thread that makes a page of one Markdown document. */
import { parentPort } from "node:worker_threads";
import { markdownHtml } from "./markdown-html.ts";

parentPort?.once("message", (markdown: string) => {
  parentPort?.postMessage(markdownHtml(markdown));
});
