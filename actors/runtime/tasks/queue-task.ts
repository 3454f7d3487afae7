/** Writes one task to its queue, and notifies the workers of a lane that serves its keys in turn. */
import { laneOf } from "../../../schemas/split-streams.ts";
import { queuedSubject } from "../../../schemas/subjects.ts";
import { writeAtomically } from "../bus/atomic-batch.ts";
import type { Bus } from "../bus/bus.ts";
import { encodeTask, type Task } from "./task.ts";

export interface TaskQueue {
  kind: string;
  lane: string;
  /** True if the lane serves its keys alternately, one task of each (`TaskTurns`). */
  inTurns: boolean;
}

/** Returns the subject of the queue of a key's tasks. Keys that are not served in turn share one queue. */
export function queueSubject({ layout }: Bus, queue: TaskQueue, key: string): string {
  const { subject, turn } = laneOf(layout, queue);
  return queue.inTurns ? turn(key) : subject;
}

/**
 * Queues a task and resolves with its sequence. Within the stream's duplicate window, the stream stores a task with
 * the same id only once. Rejects with OutcomeUnknown, or with WriteRefused: its `full` is true if the queue is full,
 * and its `inFlight` if the outcome of an earlier try is not known yet.
 */
export async function queueTask(bus: Bus, queue: TaskQueue, task: Task): Promise<number> {
  const subject = queueSubject(bus, queue, task.key);
  const headers = { "Nats-Msg-Id": task.id };
  const sequence = await writeAtomically(bus, [{ subject, payload: encodeTask(task), headers }]);
  // Workers also poll for queues without a notification, so a lost notification costs only time.
  const { connection } = bus;
  if (queue.inTurns && !connection.isClosed() && !connection.isDraining()) {
    connection.publish(queuedSubject(queue.kind, queue.lane), task.key);
  }
  return sequence;
}
