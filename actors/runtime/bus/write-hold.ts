/**
 * Holds back the writes of this process while a backup captures the streams at one moment. The backup checks by itself
 * that nobody wrote, so a process that misses the request costs it a repetition, and nothing else.
 */
import type { NatsConnection } from "@nats-io/transport-node";
import { HOLD_MS_MAX } from "../../../schemas/limits.ts";
import { HOLD_SUBJECT } from "../../../schemas/subjects.ts";

export class WriteHold {
  #hold: { ended: PromiseWithResolvers<void>; timer: NodeJS.Timeout } | undefined;

  constructor(connection: NatsConnection) {
    connection.subscribe(HOLD_SUBJECT, {
      // A user of the bus that may not subscribe to this has nothing to hold back.
      callback: (error, message) => {
        if (!error) this.#begin(Number(message.string()));
      },
    });
    void connection.closed().then(() => this.#end());
  }

  /** Resolves when writes may go on; undefined while they are not held back. */
  get held(): Promise<void> | undefined {
    return this.#hold?.ended.promise;
  }

  /** A backup that dies holds nobody: the pause ends by itself. */
  #begin(ms: number): void {
    const ended = this.#hold?.ended ?? Promise.withResolvers<void>();
    clearTimeout(this.#hold?.timer);
    this.#hold = { ended, timer: setTimeout(() => this.#end(), Math.min(ms, HOLD_MS_MAX)) };
    if (!(ms > 0)) this.#end();
  }

  #end(): void {
    if (!this.#hold) return;
    clearTimeout(this.#hold.timer);
    this.#hold.ended.resolve();
    this.#hold = undefined;
  }
}
