/**
 * Pauses this process's writes that change actors, and its purges, while a backup captures the streams at one moment.
 * The backup itself verifies that nobody wrote, so a process that misses the pause only makes the backup retry.
 */
import type { NatsConnection } from "@nats-io/transport-node";
import { HOLD_MS_MAX } from "../../../schemas/limits.ts";
import { HOLD_SUBJECT } from "../../../schemas/subjects.ts";

export class WriteHold {
  #hold: { ended: PromiseWithResolvers<void>; timer: NodeJS.Timeout } | undefined;

  constructor(connection: NatsConnection) {
    connection.subscribe(HOLD_SUBJECT, {
      // Ignore the error of a user that may not subscribe to this subject. Such a user makes no writes that a pause
      // concerns.
      callback: (error, message) => {
        if (!error) this.#begin(Number(message.string()));
      },
    });
    void connection.closed().then(() => this.#end());
  }

  /** Resolves when writes may continue; undefined while no pause is active. */
  get held(): Promise<void> | undefined {
    return this.#hold?.ended.promise;
  }

  /** Starts or ends the pause. A pause has a time limit, so a backup that dies blocks nobody. */
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
