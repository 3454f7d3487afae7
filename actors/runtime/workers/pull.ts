/**
 * One request for tasks of a lane. The library's `fetch` (3.4.0) asks for a heartbeat twice in each request, and
 * cannot end early without the loss of tasks that are on their way.
 */
import { createInbox, type Msg, nanos, type Subscription } from "@nats-io/transport-node";
import type { Bus } from "../bus/bus.ts";
import { type Clock, OVER } from "../lib/clock.ts";
import { type PulledMessage, pulledMessage } from "./pulled-message.ts";

/** A request without an answer is lost after this time past its end. Its server or connection has ended. */
const PULL_LATE_MS = 500;
/** The server's status for a request that expired before it had all its tasks. */
const EXPIRED = 408;

interface PullParts {
  bus: Bus;
  clock: Clock;
  /** The names of the lane's stream and of its consumer there. */
  stream: string;
  consumer: string;
  /** How many tasks are requested. */
  count: number;
  /** How long the server keeps the request. */
  waitMs: number;
  /** Called for each task. */
  took(message: PulledMessage): void;
  /** Called once, when no further task of this request can arrive: with the tasks that are missing. */
  ended(missing: number, error?: Error): void;
}

export class Pull {
  readonly #parts: PullParts;
  readonly #over = new AbortController();
  readonly #subscription: Subscription;
  #missing: number;

  constructor(parts: PullParts) {
    const { bus, stream, consumer, count, waitMs, clock } = parts;
    this.#parts = parts;
    this.#missing = count;
    const reply = createInbox(bus.inboxes.answers);
    this.#subscription = bus.connection.subscribe(reply, {
      callback: (error, message) => this.#receive(error ?? undefined, message, reply),
    });
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`;
    const payload = JSON.stringify({ batch: count, expires: nanos(waitMs) });
    bus.connection.publish(subject, payload, { reply });
    // While the bus is away, the loss of the connection is the reason, which is logged once.
    const late = () =>
      bus.isAway ? undefined : new Error("Cannot pull tasks: the server sent no answer");
    void clock.wait(waitMs + PULL_LATE_MS, this.#over.signal).then(() => this.cancel(late()));
  }

  get waitMs(): number {
    return this.#parts.waitMs;
  }

  /** Ends the request, with this error if there is one. Tasks that the server has sent meanwhile still arrive. */
  async cancel(error?: Error): Promise<void> {
    const { connection } = this.#parts.bus;
    if (this.#over.signal.aborted) return;
    await Promise.race([this.#subscription.drain(), connection.closed()]).catch(() => {});
    this.#end(error);
  }

  #receive(error: Error | undefined, message: Msg, reply: string): void {
    if (this.#over.signal.aborted) return;
    if (error) {
      this.#end(error);
    } else if (message.subject === reply) {
      const { code = 0, description = "" } = message.headers ?? {};
      this.#end(
        code === EXPIRED ? undefined : new Error(`Cannot pull tasks: ${code} ${description}`),
      );
    } else {
      this.#missing -= 1;
      this.#parts.took(pulledMessage(this.#parts.bus.connection, message));
      if (this.#missing === 0) this.#end();
    }
  }

  #end(error?: Error): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort(OVER);
    this.#subscription.unsubscribe();
    this.#parts.ended(this.#missing, error);
  }
}
