/** What an activation needs of its host, and only this: a test can stand in for it. */
import type { Logger } from "pino";
import type { Clock } from "../lib/clock.ts";
import type { Answer, Delivery, IncomingCall, Waiting } from "../shards/incoming.ts";

export interface ActivationHost {
  clock: Clock;
  logger: Logger;
  /** The activation has something to commit. */
  markDirty(): void;
  /** Answers once it is sure that this host still owns the shard. */
  answerRead(respond: IncomingCall["respond"], answer: Answer): void;
  /** Shows it to those who watch; an empty text says that something is missing. */
  publishLive(texts: readonly string[]): void;
  /** Keeps a delivery that cannot be handled for an operator. Resolves when that is durable. */
  bury(delivery: Delivery, error: Error): Promise<void>;
  /** The activation has ended; what waited for it goes to the next one. */
  restart(waiting: Waiting): void;
}
