/** What an activation needs of its host, and only this: a test can stand in for it. */
import type { Logger } from "pino";
import type { Activation } from "./activation.ts";
import type { Clock } from "./clock.ts";
import type { Answer, Delivery, IncomingCall, Waiting } from "./incoming.ts";

export interface ActivationHost {
  clock: Clock;
  logger: Logger;
  /** The activation has something to commit. */
  markDirty(activation: Activation): void;
  /** Answers once it is sure that this host still owns the shard. */
  answerRead(activation: Activation, respond: IncomingCall["respond"], answer: Answer): void;
  /** Shows it to those who watch; an empty text says that something is missing. */
  publishLive(activation: Activation, texts: readonly string[]): void;
  /** Keeps a delivery that cannot be handled for an operator. Resolves when that is durable. */
  bury(activation: Activation, delivery: Delivery, error: Error): Promise<void>;
  /** The activation has ended; what waited for it goes to the next one. */
  restart(activation: Activation, waiting: Waiting): void;
}
