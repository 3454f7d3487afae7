/**
 * Messages of the actor that counts requests. The key names the source of the requests: an account's id, `person <user
 * id>`, or an action with its source, such as `login-from <address>`.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";

export const requestLimit = defineContract({
  kind: "request-limit",
  messages: {
    /** Counts one request in the present window, or replies that the window is full. */
    take: {
      input: z.object({ limit: z.int().min(1), windowMs: z.int().min(1_000) }),
      reply: z.object({
        allowed: z.boolean(),
        limit: z.int(),
        remaining: z.int().min(0),
        /** Whole seconds until the window ends. */
        resetS: z.int().min(0),
      }),
    },
    /** Removes one counted request, if its window has not ended. */
    giveBack: { input: z.object({}), reply: z.object({}) },
  },
});
