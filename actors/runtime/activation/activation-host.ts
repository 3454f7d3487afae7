/** The parts of its host that an activation uses. A test can stand in for it. */
import type { Logger } from "pino";
import type { Clock } from "../lib/clock.ts";
import type { Answer, Delivery, IncomingCall, Waiting } from "../shards/incoming.ts";

export interface ActivationHost {
  clock: Clock;
  logger: Logger;
  /** The activation has a change to commit. */
  markDirty(): void;
  /** Answers once it is sure that this host still owns the shard. */
  answerRead(respond: IncomingCall["respond"], answer: Answer): void;
  /** Shows a live update to subscribers; an empty text says that one is missing. */
  publishLive(texts: readonly string[]): void;
  /** Keeps a delivery that cannot be handled for an operator. Resolves when that is durable. */
  bury(delivery: Delivery, error: Error): Promise<void>;
  /** The activation has ended; the next one takes the messages that wait. */
  restart(waiting: Waiting): void;
}
