/** A kind of task for tests of the runtime: it repeats what it is given, in time, late, in pieces or never. */
import { z } from "zod";
import { defineTasks } from "../../schemas/contract.ts";

export const echo = defineTasks({
  kind: "echo",
  lanes: ["fast", "slow"],
  messages: {
    /** Waited for. The reply is followed by so many bytes, in pieces of a size. */
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
    /** Not waited for: the asking probe hears of it by message. Fails so many times before; -1 is refused. */
    tell: { lane: "slow", input: z.object({ text: z.string(), failing: z.int() }) },
  },
});
