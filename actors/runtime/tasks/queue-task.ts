/** Writes one task to its queue, and notifies the workers of a lane that serves its keys in turn. */
import { laneOf } from "../../../schemas/split-streams.ts";
import { queuedSubject } from "../../../schemas/subjects.ts";
import { writeAtomically } from "../bus/atomic-batch.ts";
import type { Bus } from "../bus/bus.ts";
import { encodeTask, type Task } from "./task.ts";

interface TaskQueue {
  kind: string;
  lane: string;
  /** True if the lane serves its keys alternately, one task of each (`TaskTurns`). */
  inTurns: boolean;
}

/**
 * Queues a task and resolves with its sequence. Within the stream's duplicate window, the stream stores a task with
 * the same id only once. Rejects with OutcomeUnknown, or with WriteRefused: its `full` is true if the queue is full,
 * and its `inFlight` if the outcome of an earlier try is not known yet.
 */
export async function queueTask(bus: Bus, queue: TaskQueue, task: Task): Promise<number> {
  const { subject: ofLane, turn } = laneOf(bus.layout, queue);
  const subject = queue.inTurns ? turn(task.key) : ofLane;
  const headers = { "Nats-Msg-Id": task.id };
  const sequence = await writeAtomically(bus, [{ subject, payload: encodeTask(task), headers }]);
  // Workers also poll for queues without a notification, so a lost notification costs only time.
  const { connection } = bus;
  if (queue.inTurns && !connection.isClosed() && !connection.isDraining()) {
    connection.publish(queuedSubject(queue.kind, queue.lane), task.key);
  }
  return sequence;
}
