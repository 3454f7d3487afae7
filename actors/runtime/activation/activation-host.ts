/** The functions of the host that an activation uses. A test can provide its own. */
import type { Logger } from "pino";
import type { Clock } from "../lib/clock.ts";
import type { Answer, Delivery, IncomingCall, Waiting } from "../shards/incoming.ts";

export interface ActivationHost {
  clock: Clock;
  logger: Logger;
  /** Notifies the host that the activation has a change to commit. */
  markDirty(): void;
  /** Sends the answer after the host has verified that it still owns the shard; otherwise answers `misdirected`. */
  answerRead(respond: IncomingCall["respond"], answer: Answer): void;
  /** Publishes live updates to subscribers. An empty text says that an update is missing. */
  publishLive(texts: readonly string[]): void;
  /** Stores an undeliverable message as a dead letter for operators. Resolves when the letter is durable. */
  bury(delivery: Delivery, error: Error): Promise<void>;
  /** Replaces the ended activation by a new one, which takes the waiting messages. */
  restart(waiting: Waiting): void;
}
