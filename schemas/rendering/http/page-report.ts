/** What a page did while it loaded, on request beside the result of a call. */
import { z } from "zod";
import { REPORT_ENTRIES_MAX, REPORT_TEXT_CHARS_MAX } from "../limits.ts";

const Text = z.string().max(REPORT_TEXT_CHARS_MAX);

export const PageReport = z.object({
  url: Text.describe("Address of the document in the end"),
  status: z.int().nullable().describe("Status that its site answered; null where there is no site"),
  redirects: z.array(Text).max(REPORT_ENTRIES_MAX).describe("Addresses that led to the document"),
  requests: z.int().describe("Requests of the page, with those that failed"),
  failed: z
    .array(z.object({ url: Text, type: z.string(), reason: Text }))
    .max(REPORT_ENTRIES_MAX)
    .describe("Requests that failed, were refused, or were answered with an error status"),
  errors: z
    .array(Text)
    .max(REPORT_ENTRIES_MAX)
    .describe("Errors in the console, and exceptions that nobody caught"),
  omitted: z.int().describe("Further entries of these lists that were too many"),
  timings: z.object({
    loadMs: z.int().describe("Until everything that was waited for had come"),
    browserMs: z.int().describe("For which a browser was held"),
  }),
  bytes: z.object({ received: z.int(), sent: z.int() }).describe("Over the network"),
});
export type PageReport = z.output<typeof PageReport>;
