/**
 * The task that searches the TXT records of a domain for a text. Its key is the client_id of the client whose domain
 * is verified.
 */
import { z } from "zod";
import { defineTasks } from "../contract.ts";

export const dnsCheck = defineTasks({
  kind: "dns-check",
  lanes: ["dns"],
  messages: {
    /** The worker sends the result as `domainChecked` to the client's actor. */
    findText: {
      lane: "dns",
      input: z.object({
        host: z.string().min(1).max(253),
        text: z.string().min(1).max(255),
        check: z.int().min(1),
      }),
    },
  },
});
