/** What a kind of worker is: an asynchronous function for each task, and what its asker hears when it fails. */
import type { z } from "zod";
import type {
  DeepReadonly,
  Envelope,
  Input,
  TaskContract,
  TaskMessages,
  TaskSchema,
} from "../../../schemas/contract.ts";
import type { ActorError } from "../../../schemas/errors.ts";
import type { ActorClient } from "../calls/actor-client.ts";
import type { TurnLimits } from "./task-turns.ts";

export interface TaskContext {
  /** The same at every try. */
  id: string;
  /** What the task is about, as its sender named it. */
  key: string;
  /** Aborted when the asker left, the deadline passed, the task was given to another worker, or we stop. */
  signal: AbortSignal;
  /**
   * Aborted when the bus was silent for so long that another worker may soon be given the task. What it does can go on,
   * but for what two workers must not do at a time.
   */
  lapsed: AbortSignal;
  /** Whether no other worker can have the task yet: by the clock, for what is about to begin. */
  isSure(): boolean;
  /**
   * Says that the task only waits for the network, or that it computes again: where the lane serves keys in turn, another
   * task may compute meanwhile.
   */
  setWaiting(isWaiting: boolean): void;
  /** 1 at the first try. */
  attempt: number;
  /** Epoch ms after which nobody waits for the result. */
  deadlineAt: number;
  /**
   * Sends before the task ends. Resolves when it is durable; rejects so that the task is tried again. A later try that
   * sends the same, or under the same `id` (of `[A-Za-z0-9_-]`), is not heard a second time within two minutes.
   */
  send(envelopes: readonly Envelope[], options?: { id?: string }): Promise<void>;
  /**
   * Sends an actor what does no harm where it is heard twice, and behind what was sent after it: by call, which costs a
   * fraction, and resolves with true; or by mail where that is refused or not answered soon, and resolves with false.
   */
  tell(envelope: Envelope): Promise<boolean>;
  /**
   * Asks an actor. Rejects with its refusal; an actor that cannot be reached, or is busy, rejects so that the task is
   * tried again. Ends with the task's own signal.
   */
  call: ActorClient["call"];
}

/**
 * What a finished task leaves: for one that is waited for, a reply and bytes after it; and messages to send. A function
 * is asked for them when the bytes have gone.
 */
export type Outcome<M extends TaskSchema> = {
  send?: readonly Envelope[] | (() => readonly Envelope[]);
} & (M extends { reply: infer P extends z.ZodType }
  ? { reply: DeepReadonly<z.input<P>>; chunks?: AsyncIterable<Uint8Array> }
  : { reply?: never; chunks?: never });

export interface WorkerDefinition<M extends TaskMessages> {
  contract: TaskContract<M>;
  /** Tasks at a time in each lane; a lane that is not named is not served by this worker. */
  slots: Record<string, number>;
  /** For lanes that serve keys in turn: the bounds of their slots. Without them, a key may have all slots of its lane. */
  turns?: Record<string, Omit<TurnLimits, "places">>;
  /** How long one of its tasks may take, where that is not TASK_RUN_MS_MAX. */
  runMsMax?: number;
  handlers: {
    [N in keyof M]: (input: Input<M[N]>, context: TaskContext) => Promise<Outcome<M[N]>>;
  };
  /** Sent when the task is given up: refused by the handler, out of tries, past its deadline, or its asker left. */
  failures: {
    [N in keyof M]: (
      input: Input<M[N]>,
      error: ActorError,
      context: { id: string; key: string },
    ) => Envelope[];
  };
}

// biome-ignore lint/suspicious/noExplicitAny: the one place where workers of different kinds meet.
export type AnyWorkerDefinition = WorkerDefinition<any>;

/**
 * Binds a task contract to what does it. A handler that throws ActorError is not tried again; anything else is,
 * later and elsewhere, until TASK_TRIES_MAX. A task may run more than once, so its messages must bear repetition.
 */
export function defineWorker<M extends TaskMessages>(
  contract: TaskContract<M>,
  parts: Omit<WorkerDefinition<M>, "contract">,
): WorkerDefinition<M> {
  return { ...parts, contract };
}
