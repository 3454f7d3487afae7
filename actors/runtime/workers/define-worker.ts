/** Defines a kind of worker: an asynchronous function for each task, and the messages that report its failure. */
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
  /** The id of the task, the same at every try. */
  id: string;
  /** The subject of the task, as its caller named it. */
  key: string;
  /** Aborts when the caller left, the deadline passed, another worker was given the task, or this process stops. */
  signal: AbortSignal;
  /**
   * Aborts when the bus was silent for so long that another worker may soon be given the task. The work may go on,
   * but for parts that two workers must not do at a time.
   */
  lapsed: AbortSignal;
  /** True while no other worker can have the task, by the clock. To be asked before such a part begins. */
  isSure(): boolean;
  /**
   * Says that the task only waits for the network, or that it computes again. In a lane that serves keys in turn
   * another task may compute meanwhile.
   */
  setWaiting(isWaiting: boolean): void;
  /** 1 at the first try. */
  attempt: number;
  /** Epoch ms after which nobody waits for the result. */
  deadlineAt: number;
  /**
   * Sends messages before the task ends. Resolves when they are durable. If it rejects, let the error end the task:
   * the task is retried. A later attempt that sends the same, or under the same `id` (of `[A-Za-z0-9_-]`), has no
   * second effect within two minutes.
   */
  send(envelopes: readonly Envelope[], options?: { id?: string }): Promise<void>;
  /**
   * Sends an actor a message that may arrive twice or out of order. Sends it as a call, which is cheap, and resolves
   * with true; or as mail where the call is refused or not answered soon, and resolves with false.
   */
  tell(envelope: Envelope): Promise<boolean>;
  /**
   * Calls an actor. Rejects with the actor's refusal. If the actor is busy or out of reach, it rejects with an error
   * that makes the task retry. Ends with the task's own signal.
   */
  call: ActorClient["call"];
}

/**
 * The result of a finished task: a reply with bytes after it, where a caller waits for it, and messages to send. A
 * function returns the messages once the bytes are sent.
 */
export type Outcome<M extends TaskSchema> = {
  send?: readonly Envelope[] | (() => readonly Envelope[]);
} & (M extends { reply: infer P extends z.ZodType }
  ? { reply: DeepReadonly<z.input<P>>; chunks?: AsyncIterable<Uint8Array> }
  : { reply?: never; chunks?: never });

export interface WorkerDefinition<M extends TaskMessages> {
  contract: TaskContract<M>;
  /** Tasks at a time in each lane. The worker does not serve a lane that is not named. */
  slots: Record<string, number>;
  /**
   * For lanes that serve keys in turn: the limits of their slots. Without them one key may have all slots of its lane.
   */
  turns?: Record<string, Omit<TurnLimits, "places">>;
  /** How long one of its tasks may take. Default: TASK_RUN_MS_MAX. */
  runMsMax?: number;
  handlers: {
    [N in keyof M]: (input: Input<M[N]>, context: TaskContext) => Promise<Outcome<M[N]>>;
  };
  /**
   * The messages to send when the task is given up: refused by its handler, out of tries, past its deadline, or its
   * caller left.
   */
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
 * Binds a task contract to its handlers. A task whose handler throws ActorError is not tried again. After any other
 * error it is, later and elsewhere, until TASK_TRIES_MAX. A task may run more than once, so its messages must bear
 * repetition.
 */
export function defineWorker<M extends TaskMessages>(
  contract: TaskContract<M>,
  parts: Omit<WorkerDefinition<M>, "contract">,
): WorkerDefinition<M> {
  return { ...parts, contract };
}
