/** What running tasks hear from outside: that nobody waits for them, or that another worker has them by now. */
import { cancelSubject } from "../../../schemas/subjects.ts";
import type { Bus } from "../bus/bus.ts";
import { CallerGone } from "./task-caller.ts";

/** A worker that was not heard from for a while is taken for dead: this one was, and somebody else goes on. */
export class TaskTaken extends Error {}

interface Listener {
  id: string;
  attempt: number;
  controller: AbortController;
}

/** Of all tasks of a worker: a subscription for each would be two messages more of each. */
export class TaskNews {
  readonly #bus: Bus;
  /** To be called when nothing is running any more. */
  readonly stop: () => void;
  /** By the task's id: the same task may be here twice. */
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
   * Aborts the controller with CallerGone or TaskTaken. Workers say which try they run, when it is not the first and when
   * the bus is back; who runs a later one answers. Returns what ends the listening.
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

/** Undefined for the word of a caller that leaves, which has no text. */
const readAttempt = (text: string): number | undefined =>
  text === "" ? undefined : (JSON.parse(text) as { attempt: number }).attempt;
