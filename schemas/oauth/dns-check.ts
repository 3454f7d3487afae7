/** The task of looking for a text in the TXT records of a domain. Its key is the client that it is for. */
import { z } from "zod";
import { defineTasks } from "../contract.ts";

export const dnsCheck = defineTasks({
  kind: "dns-check",
  lanes: ["dns"],
  messages: {
    /** Answered by `domainChecked` to the client. */
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
