/** Hands a task back to its queue, so that this delivery does not count as a try. */
import { READER_RETRY_MS, TASK_LOSSES_MAX } from "../../../schemas/limits.ts";
import { parseJson } from "../../../schemas/parse-json.ts";
import { WriteRefused, writeAtomically } from "../bus/atomic-batch.ts";
import type { Bus } from "../bus/bus.ts";
import type { Clock } from "../lib/clock.ts";
import { encodeTask, Task } from "../tasks/task.ts";
import type { PulledMessage } from "./pulled-message.ts";

/**
 * Queues the task as another message, because the bus counts the deliveries of a message. Another worker takes it
 * immediately. Never rejects.
 */
export async function handBack(bus: Bus, message: PulledMessage, task: Task): Promise<void> {
  try {
    const payload = encodeTask({ ...task, triesBefore: triesOf(message, task) - 1 });
    // The id contains the sequence of the present message, because a task may be handed back many times.
    const headers = { "Nats-Msg-Id": `${task.id}-back-${message.seq}` };
    await writeAtomically(bus, [{ subject: message.subject, payload, headers }]);
    message.ack();
  } catch (error) {
    // If the lane is full, the same message is delivered again, which counts as one more try. Without a certain answer
    // the other message may be stored: then this one is delivered again only when its acknowledgement is overdue, so
    // that the two do not run at once.
    if (error instanceof WriteRefused && !error.inFlight) message.nak();
  }
}

interface LossyRun {
  task: Task;
  message: PulledMessage;
  /** The bus's number of lost connections when the run began. */
  disconnections: number;
  lease: { isSure(): boolean };
}

/**
 * True if the connection to the bus was lost during the run. Such a run does not count as a try, at most
 * TASK_LOSSES_MAX times, because the task may itself cause the loss.
 */
export function hasLostBus(bus: Bus, { task: { losses = 0 }, disconnections }: LossyRun): boolean {
  return bus.disconnections !== disconnections && losses < TASK_LOSSES_MAX;
}

/** Hands the task back when the bus is there again, unless another worker can receive it by then. */
export async function handBackAfterLoss(
  { bus, clock, stopping }: { bus: Bus; clock: Clock; stopping: AbortSignal },
  { task, message, lease }: LossyRun,
): Promise<void> {
  while (bus.isAway && lease.isSure() && !stopping.aborted) {
    await clock.wait(READER_RETRY_MS, stopping);
  }
  if (!lease.isSure()) return;
  await handBack(bus, message, { ...task, losses: (task.losses ?? 0) + 1 });
}

/** The number of this try: the deliveries of the message, and the tries before the task was queued again. */
export const triesOf = ({ info }: PulledMessage, { triesBefore = 0 }: Task): number =>
  triesBefore + info.deliveryCount;

/** Parses the task of a message; `success` is false if it is unreadable. */
export function readTask(message: PulledMessage): ReturnType<typeof Task.safeParse> {
  return Task.safeParse(parseJson(message.string()));
}
