/** What a running task hears from outside: that nobody waits for it, or that another worker has it by now. */
import { cancelSubject } from "../../schemas/subjects.ts";
import type { Bus } from "./bus.ts";
import { CallerGone } from "./task-caller.ts";

/** A worker that was not heard from for a while is taken for dead: this one was, and somebody else goes on. */
export class TaskTaken extends Error {}

/**
 * Aborts the controller with CallerGone or TaskTaken. Workers say which try they run, when it is not the first and when
 * the bus is back; who runs a later one answers. Returns what ends the listening.
 */
export function hearOfTask(
  bus: Bus,
  taskId: string,
  attempt: number,
  controller: AbortController,
): () => void {
  const { connection } = bus;
  const subject = cancelSubject(taskId);
  const say = () => {
    if (!connection.isClosed() && !connection.isDraining()) {
      connection.publish(subject, JSON.stringify({ attempt }));
    }
  };
  const subscription = connection.subscribe(subject, {
    callback: (error, msg) => {
      if (error) return;
      const other = readAttempt(msg.string());
      if (other === undefined) controller.abort(new CallerGone());
      else if (other > attempt) controller.abort(new TaskTaken());
      else if (other < attempt) say();
    },
  });
  if (attempt > 1) say();
  const forget = bus.onReconnect(say);
  return () => {
    forget();
    subscription.unsubscribe();
  };
}

/** Undefined for the word of a caller that leaves, which has no text. */
const readAttempt = (text: string): number | undefined =>
  text === "" ? undefined : (JSON.parse(text) as { attempt: number }).attempt;
