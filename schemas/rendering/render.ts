/**
 * Tasks for the browser workers. Most of them take a page and return a document, a picture or text; the others run
 * jobs and remove stored objects.
 */
import { z } from "zod";
import { defineTasks } from "../contract.ts";
import { Id } from "../values.ts";
import { PAGE_CALLS } from "./http/page-calls.ts";
import { PdfRequest } from "./http/pdf.ts";
import { ScreenshotRequest } from "./http/screenshot.ts";

/** Fields that all tasks share, in addition to the parameters of the page. */
const taskFields = {
  account: z.string().min(1),
  /**
   * Milliseconds since 1970. Only workers of older versions read it: the time of day may jump while the task waits or
   * runs, and its caller cancels it in time anyway.
   */
  deadlineAt: z.int().optional(),
  /** Seconds for which the same request gets the same response from the cache. If absent, the cache is not used. */
  cacheTtlS: z.number().min(0).optional(),
};
/** The status that the page's site answered; absent for a submitted document. */
const TargetStatus = z.int().min(100).max(599).optional();
/** Wall-clock milliseconds for which a browser has been in use so far. */
const BrowserMs = z.int().min(0);

/** Reads a page. After the reply, the worker streams the fields of the response's JSON object, without its braces. */
const reading = <P extends z.ZodType>({ request }: { request: P }) => ({
  lane: "interactive" as const,
  input: z.object({ ...taskFields, parameters: request }),
  reply: z.object({ browserMs: BrowserMs, bytes: z.int().min(0), status: TargetStatus }),
});

/** Maximum number of objects that one task removes. */
const PURGED_OBJECTS_MAX = 200;

export const render = defineTasks({
  kind: "render",
  lanes: ["interactive", "batch"],
  // Accounts take turns: the key of a task is the account, and no account waits behind the queue of another.
  inTurns: true,
  messages: {
    /** Prints a page. After the reply, the worker streams the bytes of the PDF. */
    pdf: {
      lane: "interactive",
      input: z.object({ ...taskFields, parameters: PdfRequest }),
      reply: z.object({
        browserMs: BrowserMs,
        /** `bytes` and `pages` are null for a PDF whose first bytes are sent while it is still being created. */
        bytes: z.int().min(0).nullable(),
        pages: z.int().min(0).nullable(),
        status: TargetStatus,
      }),
    },
    /** Captures a page. After the reply, the worker streams the bytes of the picture, or their text in base64. */
    screenshot: {
      lane: "interactive",
      input: z.object({ ...taskFields, parameters: ScreenshotRequest }),
      reply: z.object({ browserMs: BrowserMs, bytes: z.int().min(0), status: TargetStatus }),
    },
    content: reading(PAGE_CALLS.content),
    markdown: reading(PAGE_CALLS.markdown),
    links: reading(PAGE_CALLS.links),
    scrape: reading(PAGE_CALLS.scrape),
    snapshot: reading(PAGE_CALLS.snapshot),
    json: reading(PAGE_CALLS.json),
    accessibilityTree: reading(PAGE_CALLS.accessibilityTree),
    /**
     * Runs a job. The key of the task is the account of the job. At the end, the worker sends `ended` to the
     * account's jobs.
     */
    job: { lane: "interactive", input: z.object({ id: Id }) },
    /** Removes objects from the store: requests and results of jobs. */
    purge: {
      lane: "batch",
      input: z.object({ objects: z.array(z.string()).min(1).max(PURGED_OBJECTS_MAX) }),
    },
  },
});
