/** Work for the browser workers: a page in, a document or a picture out. */
import { z } from "zod";
import { defineTasks } from "../contract.ts";
import { Id } from "../values.ts";
import { PAGE_CALLS } from "./http/page-calls.ts";
import { PdfRequest } from "./http/pdf.ts";
import { ScreenshotRequest } from "./http/screenshot.ts";

/** Fields of every task, besides the parameters of its page. */
const taskFields = {
  account: z.string().min(1),
  /** Milliseconds since 1970. */
  deadlineAt: z.int(),
  /** How long the same request gets the same answer. Absent: it is made anew. */
  cacheTtlS: z.number().min(0).optional(),
};
/** The status that the page's site answered; absent for a submitted document. */
const TargetStatus = z.int().min(100).max(599).optional();
/** Wall-clock milliseconds a browser was held, up to now. */
const BrowserMs = z.int().min(0);

/** Reads a page. The members of the answer's envelope follow the reply, as JSON without its braces. */
const reading = <P extends z.ZodType>({ request }: { request: P }) => ({
  lane: "interactive" as const,
  input: z.object({ ...taskFields, parameters: request }),
  reply: z.object({ browserMs: BrowserMs, bytes: z.int().min(0), status: TargetStatus }),
});

/** Names of objects that one task removes. */
const PURGED_OBJECTS_MAX = 200;

export const render = defineTasks({
  kind: "render",
  lanes: ["interactive", "batch"],
  // The key is the account: no account waits behind the queue of another.
  inTurns: true,
  messages: {
    /** Prints a page. The PDF's bytes follow the reply. */
    pdf: {
      lane: "interactive",
      input: z.object({ ...taskFields, parameters: PdfRequest }),
      reply: z.object({
        browserMs: BrowserMs,
        /** Both are unknown for a PDF whose first bytes leave while it is still being written. */
        bytes: z.int().min(0).nullable(),
        pages: z.int().min(0).nullable(),
        status: TargetStatus,
      }),
    },
    /** Captures a page. The picture's bytes, or their text in base64, follow the reply. */
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
    /** Runs a job of the account that is the task's key. Ends with `ended` to the account's jobs. */
    job: { lane: "interactive", input: z.object({ id: Id }) },
    /** Removes requests and results of jobs from the store. */
    purge: {
      lane: "batch",
      input: z.object({ objects: z.array(z.string()).min(1).max(PURGED_OBJECTS_MAX) }),
    },
  },
});
