/** The contract of the installation, one for a whole cluster: which account its first start made. The key is "main". */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { Id } from "../values.ts";

export const installation = defineContract({
  kind: "installation",
  messages: {
    /** Null until somebody claimed it. */
    get: { input: z.object({}), reply: z.object({ accountId: Id.nullable() }) },
    /** The first claim wins. Every claim returns the winner's account. */
    claim: { input: z.object({ accountId: Id }), reply: z.object({ accountId: Id }) },
  },
});
