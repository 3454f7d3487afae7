/** A task as it waits in its lane. */
import { z } from "zod";

const SUBJECT_TOKEN = /^[\w-]{1,128}$/;
const INBOX = /^_INBOX\.[\w-]{1,128}$/;

export const Task = z.object({
  // Both become subjects of the bus.
  id: z.string().regex(SUBJECT_TOKEN),
  /** Who asked, for those who read logs. */
  from: z.string(),
  key: z.string(),
  message: z.string(),
  input: z.unknown().optional(),
  /** Where somebody waits for the result: a subject prefix of that process, and how long it waits. */
  caller: z
    .object({ inbox: z.string().regex(INBOX), inputChunks: z.number().optional() })
    .optional(),
  deadlineAt: z.number().optional(),
  trace: z.record(z.string(), z.string()).optional(),
  /** Tries of it before it was handed back by a worker that stopped. */
  triesBefore: z.number().optional(),
});
export type Task = z.infer<typeof Task>;

export function encodeTask(task: Task): string {
  const { id, from, key, message, input, caller, deadlineAt, trace, triesBefore } = task;
  return JSON.stringify({ id, from, key, message, input, caller, deadlineAt, trace, triesBefore });
}
