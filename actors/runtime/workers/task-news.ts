/** The news that running tasks receive: their caller has left, or another worker has them. */
import { cancelSubject } from "../../../schemas/subjects.ts";
import type { Bus } from "../bus/bus.ts";
import { CallerGone } from "./task-caller.ts";

/** This worker was silent for a while and was taken for dead; another worker goes on. */
export class TaskTaken extends Error {}

interface Listener {
  id: string;
  attempt: number;
  controller: AbortController;
}

/** One subscription for all tasks of a worker: one for each would cost two more messages a task. */
export class TaskNews {
  readonly #bus: Bus;
  /** Ends all listening; to be called when no task runs any more. */
  readonly stop: () => void;
  /** By the task's id; the same task may run here twice. */
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
   * Aborts the controller with CallerGone or TaskTaken. Workers announce which try they run, when it is not the first
   * and when the bus is back; a worker with a later try answers. Returns a function that ends the listening.
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

/** Undefined for the message of a caller that leaves, which has no text. */
const readAttempt = (text: string): number | undefined =>
  text === "" ? undefined : (JSON.parse(text) as { attempt: number }).attempt;
