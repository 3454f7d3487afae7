/** The news that running tasks receive: their caller has left, or another worker runs the task. */
import { cancelSubject } from "../../../schemas/subjects.ts";
import type { Bus } from "../bus/bus.ts";
import { CallerGone } from "./task-caller.ts";

/**
 * The abort reason of a task that another worker runs now. This worker was silent for a while and was presumed dead.
 */
export class TaskTaken extends Error {}

interface Listener {
  id: string;
  attempt: number;
  controller: AbortController;
}

/**
 * Receives the news of all tasks of a worker through one subscription. A subscription per task would cost two more
 * messages per task.
 */
export class TaskNews {
  readonly #bus: Bus;
  /** Ends the subscription. Call it when no task runs any more. */
  readonly stop: () => void;
  /** Listeners by the id of their task. The same task may run twice in this process. */
  readonly #listeners = new Map<string, Set<Listener>>();

  constructor(bus: Bus) {
    this.#bus = bus;
    const before = cancelSubject("").length;
    const subscription = bus.connection.subscribe(cancelSubject(">"), {
      callback: (error, message) => {
        if (!error) this.#take(message.subject.slice(before), message.string());
      },
    });
    const forget = bus.onReconnect(() => {
      for (const all of this.#listeners.values()) for (const one of all) this.#say(one);
    });
    this.stop = () => {
      forget();
      subscription.unsubscribe();
    };
  }

  /**
   * Aborts the controller with CallerGone or TaskTaken. A worker announces its try if this is not the first try, and
   * after each reconnection; a worker with a later try answers. Returns a function that ends the listening.
   */
  listen(listener: Listener): () => void {
    const { id, attempt } = listener;
    const all = this.#listeners.get(id) ?? new Set();
    this.#listeners.set(id, all.add(listener));
    if (attempt > 1) this.#say(listener);
    return () => {
      all.delete(listener);
      if (all.size === 0 && this.#listeners.get(id) === all) this.#listeners.delete(id);
    };
  }

  #take(id: string, text: string): void {
    const listeners = this.#listeners.get(id);
    if (!listeners) return;
    const other = readAttempt(text);
    for (const listener of listeners) {
      const { attempt, controller } = listener;
      if (other === undefined) controller.abort(new CallerGone());
      else if (other > attempt) controller.abort(new TaskTaken());
      else if (other < attempt) this.#say(listener);
    }
  }

  #say({ id, attempt }: Listener): void {
    const { connection } = this.#bus;
    if (connection.isClosed() || connection.isDraining()) return;
    connection.publish(cancelSubject(id), JSON.stringify({ attempt }));
  }
}

/** Returns the try that a worker announces; undefined for the message of a caller that leaves, which has no text. */
const readAttempt = (text: string): number | undefined =>
  text === "" ? undefined : (JSON.parse(text) as { attempt: number }).attempt;
