/** The thread of MarkdownPool: makes Markdown of one page after the other. */
import { parentPort } from "node:worker_threads";
import { type MarkdownPage, markdown } from "./markdown.ts";

/** What a page became, or why it became nothing. */
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
