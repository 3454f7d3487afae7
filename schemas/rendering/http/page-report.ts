/** The report about a page while it loaded. It is added to the result of a call on request. */
import { z } from "zod";
import { REPORT_ENTRIES_MAX, REPORT_TEXT_CHARS_MAX } from "../limits.ts";

const Text = z.string().max(REPORT_TEXT_CHARS_MAX);

export const PageReport = z
  .object({
    url: Text.describe("The document's address after redirects"),
    status: z.int().nullable().describe("The HTTP status of the document; null for submitted HTML"),
    redirects: z
      .array(Text)
      .max(REPORT_ENTRIES_MAX)
      .describe("The addresses that redirected to the document, in order"),
    requests: z.int().describe("Number of requests that the page made, failed ones included"),
    failed: z
      .array(z.object({ url: Text, type: z.string(), reason: Text }))
      .max(REPORT_ENTRIES_MAX)
      .describe("Requests that failed, were refused, or got an error status"),
    errors: z
      .array(Text)
      .max(REPORT_ENTRIES_MAX)
      .describe("Console errors and uncaught exceptions"),
    omitted: z.int().describe("Number of entries that the lists above leave out"),
    timings: z.object({
      loadMs: z.int().describe("Milliseconds until the wait for the page was over"),
      browserMs: z.int().describe("Milliseconds for which the call used a browser"),
    }),
    bytes: z
      .object({ received: z.int(), sent: z.int() })
      .describe("Bytes sent and received over the network"),
  })
  .meta({ title: "PageReport" });
export type PageReport = z.output<typeof PageReport>;
