/** Converts Markdown to pages, each document on its own thread, because some documents never finish. */
import { Worker } from "node:worker_threads";
import { ActorError } from "../../../../schemas/errors.ts";
import { moduleBeside } from "../../../../schemas/module-beside.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { FairSemaphore } from "../../../runtime/lib/fair-semaphore.ts";
import { within } from "../../../runtime/lib/time-limit.ts";

/**
 * Timeout and memory limit for one document. A guide of 1 MB takes 0.3 s, and about 100 MB of memory including its
 * thread.
 */
export const MARKDOWN_PAGE_MS = 15_000;
const MARKDOWN_PAGE_HEAP_MIB_MAX = 512;
/**
 * Maximum documents that one process converts at the same time. Together they may use as much memory as one join of
 * PDFs.
 */
export const MARKDOWN_PAGES_AT_ONCE_MAX = 2;

/**
 * Limits the parallel conversions of this process. Accounts take turns, and one account has all places but one: its
 * documents that never finish delay no document of another account.
 */
export const markdownPlaces = new FairSemaphore({
  places: MARKDOWN_PAGES_AT_ONCE_MAX,
  reserved: 1,
});

export interface MarkdownCaller {
  /** The account whose document it is. */
  account: string;
  signal: AbortSignal;
  clock: Clock;
  /** Defaults to MARKDOWN_PAGE_MS. */
  ms?: number;
}

/** Resolves to the HTML of the page. The timeout starts when the conversion may begin. */
export function renderMarkdown(
  markdown: string,
  { account, signal, clock, ms = MARKDOWN_PAGE_MS }: MarkdownCaller,
): Promise<string> {
  const convert = () => onThread(markdown, { signal, clock, ms });
  return markdownPlaces.run(account, convert, signal);
}

async function onThread(
  markdown: string,
  { signal, clock, ms }: { signal: AbortSignal; clock: Clock; ms: number },
): Promise<string> {
  const worker = new Worker(moduleBeside(import.meta.url, "./markdown-html-thread"), {
    resourceLimits: { maxOldGenerationSizeMb: MARKDOWN_PAGE_HEAP_MIB_MAX },
    // The thread needs no environment of this process.
    env: {},
    execArgv: [],
  });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  worker.once("message", resolve);
  worker.on("error", ({ message }: Error) => reject(refused(message)));
  const error = () => refused(`it takes longer than ${ms} ms`);
  try {
    worker.postMessage(markdown);
    return await within({ ms, error, signal, clock }, () => promise);
  } finally {
    await worker.terminate();
  }
}

function refused(reason: string): ActorError {
  return new ActorError("page_not_printable", `Cannot make a page of the Markdown: ${reason}`);
}
