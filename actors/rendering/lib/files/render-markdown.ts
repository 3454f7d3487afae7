/** Converts Markdown to pages, each document on its own thread, because some documents never finish. */
import { Worker } from "node:worker_threads";
import { ActorError } from "../../../../schemas/errors.ts";
import { moduleBeside } from "../../../../schemas/module-beside.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { Semaphore } from "../../../runtime/lib/semaphore.ts";
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

/** Limits the parallel conversions of this process. */
export const markdownPlaces = new Semaphore(MARKDOWN_PAGES_AT_ONCE_MAX);

/** Resolves to the HTML of the page. The timeout starts when the conversion may begin. */
export async function renderMarkdown(
  markdown: string,
  { signal, clock, ms = MARKDOWN_PAGE_MS }: { signal: AbortSignal; clock: Clock; ms?: number },
): Promise<string> {
  const leavePlace = await markdownPlaces.take(signal);
  try {
    return await onThread(markdown, { signal, clock, ms });
  } finally {
    leavePlace();
  }
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
