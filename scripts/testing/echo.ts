/** A kind of task for tests of the runtime. It returns its input: immediately, late, in pieces or never. */
import { z } from "zod";
import { defineTasks } from "../../schemas/contract.ts";

export const echo = defineTasks({
  kind: "echo",
  lanes: ["fast", "slow"],
  messages: {
    /** A call. After the reply, `bytes` bytes follow in pieces of `pieceBytes` bytes. */
    say: {
      lane: "fast",
      input: z.object({
        text: z.string(),
        bytes: z.int().default(0),
        pieceBytes: z.int().default(65_536),
      }),
      reply: z.object({ text: z.string(), attempt: z.int() }),
    },
    /** Like `say`, but in the lane `slow` and without bytes after the reply. */
    drawl: {
      lane: "slow",
      input: z.object({ text: z.string() }),
      reply: z.object({ text: z.string(), attempt: z.int() }),
    },
    /**
     * A send. Its result goes to the probe as a message. The task fails `failing` times before it succeeds. With -1
     * it is always refused.
     */
    tell: { lane: "slow", input: z.object({ text: z.string(), failing: z.int() }) },
  },
});
