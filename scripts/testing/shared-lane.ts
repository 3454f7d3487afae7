/**
 * A kind of task for tests of lanes that serve their keys in turns, and a worker for it. The test's function `before`
 * runs at the start of each task, and each task tells actors the messages of `tells` at its end.
 */
import { z } from "zod";
import { defineWorker, type TaskContext } from "../../actors/runtime/workers/define-worker.ts";
import type { TurnLimits } from "../../actors/runtime/workers/task-turns.ts";
import { defineTasks, type Envelope } from "../../schemas/contract.ts";

export const shared = defineTasks({
  kind: "shared",
  lanes: ["lane"],
  inTurns: true,
  messages: {
    say: {
      lane: "lane",
      input: z.object({ text: z.string() }),
      reply: z.object({ text: z.string() }),
    },
  },
});

export function sharedWorker(
  { places, ...turns }: TurnLimits,
  before: (text: string, context: TaskContext) => Promise<void>,
  tells: readonly Envelope[] = [],
) {
  return defineWorker(shared, {
    slots: { lane: places },
    turns: { lane: turns },
    handlers: {
      async say({ text }, context) {
        await before(text, context);
        return { reply: { text }, tell: tells };
      },
    },
    failures: { say: () => [] },
  });
}
