/** The thread of MarkdownPool. It converts one page after the other. */
import { parentPort } from "node:worker_threads";
import { type MarkdownPage, markdown } from "./markdown.ts";

/** The Markdown of a page, or why there is none. */
export type MarkdownOutcome =
  | { kind: "made"; markdown: string }
  | { kind: "failed"; reason: string };

parentPort?.on("message", (page: MarkdownPage) => {
  parentPort?.postMessage(outcomeOf(page));
});

function outcomeOf(page: MarkdownPage): MarkdownOutcome {
  try {
    return { kind: "made", markdown: markdown(page) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { kind: "failed", reason: `Cannot make Markdown: ${reason}` };
  }
}
