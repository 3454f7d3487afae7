/** The form of a task that waits in its lane. */
import { z } from "zod";

const SUBJECT_TOKEN = /^[\w-]{1,128}$/;
const INBOX = /^_(?:INBOX|TASK_[a-z]+)\.[\w-]{1,128}$/;

export const Task = z.object({
  // `id` and `caller.inbox` become parts of subjects on the bus.
  id: z.string().regex(SUBJECT_TOKEN),
  /** The client that queued it, for readers of logs. */
  from: z.string(),
  key: z.string(),
  message: z.string(),
  input: z.unknown().optional(),
  /**
   * The caller that waits for the result. `inbox` is the prefix of its subjects; `inputChunks` is the number of input
   * chunks that the worker fetches there.
   */
  caller: z
    .object({ inbox: z.string().regex(INBOX), inputChunks: z.number().optional() })
    .optional(),
  deadlineAt: z.number().optional(),
  /** How long the caller waits from the time when it queued the task. A run that takes longer is ended. */
  waitMs: z.number().optional(),
  trace: z.record(z.string(), z.string()).optional(),
  /**
   * Number of counted tries before the task was queued again. The try that a stopping worker handed back does not
   * count.
   */
  triesBefore: z.number().optional(),
  /** Number of runs that lost the bus and therefore do not count as tries. */
  losses: z.number().optional(),
});
export type Task = z.infer<typeof Task>;

export function encodeTask(task: Task): string {
  const { id, from, key, message, input, caller } = task;
  const { deadlineAt, waitMs, trace, triesBefore, losses } = task;
  const times = { deadlineAt, waitMs, trace, triesBefore, losses };
  return JSON.stringify({ id, from, key, message, input, caller, ...times });
}
