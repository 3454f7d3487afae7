/** A context for tests that call a worker's handler directly. It discards the handler's sends. */
import type { TaskContext } from "../../actors/runtime/workers/define-worker.ts";
import { ActorError } from "../../schemas/errors.ts";

export function taskContext(known: Partial<TaskContext> = {}): TaskContext {
  return {
    id: "task",
    key: "",
    signal: new AbortController().signal,
    lapsed: new AbortController().signal,
    isSure: () => true,
    setWaiting: () => {},
    setAnswering: () => {},
    attempt: 1,
    send: async () => {},
    tell: async () => true,
    tellByCall: async () => {},
    call: async ({ kind }) => {
      throw new ActorError("unavailable", `Cannot reach ${kind}: nobody is there`);
    },
    ...known,
  };
}
