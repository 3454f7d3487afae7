/** A kind of task for tests of the runtime: it repeats what it is given, in time, late, in pieces or never. */
import { z } from "zod";
import { defineTasks } from "../../schemas/contract.ts";

export const echo = defineTasks({
  kind: "echo",
  lanes: ["fast", "slow"],
  messages: {
    /** A call. The reply is followed by a number of bytes in pieces of a given size. */
    say: {
      lane: "fast",
      input: z.object({
        text: z.string(),
        bytes: z.int().default(0),
        pieceBytes: z.int().default(65_536),
      }),
      reply: z.object({ text: z.string(), attempt: z.int() }),
    },
    /** The same in the other lane. */
    drawl: {
      lane: "slow",
      input: z.object({ text: z.string() }),
      reply: z.object({ text: z.string(), attempt: z.int() }),
    },
    /** A send: the probe gets the result by message. Fails this many times before; -1 refuses always. */
    tell: { lane: "slow", input: z.object({ text: z.string(), failing: z.int() }) },
  },
});
