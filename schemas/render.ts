/** Work for the browser workers: a page in, a document out. */
import { z } from "zod";
import { defineTasks } from "./contract.ts";
import { PdfRequest } from "./http/pdf.ts";

export const render = defineTasks({
  kind: "render",
  lanes: ["interactive", "batch"],
  messages: {
    /** Prints a page. The PDF's bytes follow the reply. */
    pdf: {
      lane: "interactive",
      input: z.object({
        account: z.string().min(1),
        parameters: PdfRequest,
        /** Milliseconds since 1970. */
        deadlineAt: z.int(),
      }),
      reply: z.object({
        /** Wall-clock milliseconds a browser was held, up to now. */
        browserMs: z.int().min(0),
        /** Of a PDF that is still being written when its first bytes go, neither is known. */
        bytes: z.int().min(0).nullable(),
        pages: z.int().min(0).nullable(),
      }),
    },
  },
});
