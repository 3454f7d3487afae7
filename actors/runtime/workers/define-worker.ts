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
  /** The key of the task, as its caller named it. */
  key: string;
  /** Aborts when the caller left, the deadline passed, another worker was given the task, or this process stops. */
  signal: AbortSignal;
  /**
   * Aborts when the bus has been silent for so long that another worker may soon receive the task. The work may
   * continue, except for parts that two workers must not do at the same time.
   */
  lapsed: AbortSignal;
  /**
   * True while no other worker can have the task, according to the clock. Check this before each part that two
   * workers must not do at the same time.
   */
  isSure(): boolean;
  /**
   * Reports that the task only waits for the network, or that it computes again. While it waits, a lane that serves
   * keys in turn may let another task compute.
   */
  setWaiting(isWaiting: boolean): void;
  /**
   * Reports that the work is done, and that the task only has to send its result. A lane that serves keys in turn
   * then lets another task of the key begin, within limits.
   */
  setAnswering(): void;
  /** 1 at the first try. */
  attempt: number;
  /**
   * Sends messages before the task ends. Resolves when they are durable. If it rejects, let the error end the task,
   * so that the task is retried. If a later attempt sends the same messages, or messages under the same `id` (of
   * `[A-Za-z0-9_-]`), they have no second effect within two minutes.
   */
  send(envelopes: readonly Envelope[], options?: { id?: string }): Promise<void>;
  /**
   * Sends an actor a message that may arrive twice or out of order. First sends the message as a call, which is
   * cheap, and resolves with true if the call succeeds. If the call is refused or not answered soon, sends the
   * message as mail and resolves with false.
   */
  tell(envelope: Envelope): Promise<boolean>;
  /**
   * Sends an actor a message that has no reply as a call, and never as mail: mail is durable and could arrive long
   * after the task. Resolves when the message has had its effect. Rejects as `call` does.
   */
  tellByCall(envelope: Envelope): Promise<void>;
  /**
   * Calls an actor. Rejects with the actor's refusal. If the actor is busy or out of reach, it rejects with an error
   * that makes the task retry. The task's own signal also ends the call.
   */
  call: ActorClient["call"];
}

/** The messages of a finished task. If this is a function, it is called after the bytes are sent. */
export type Envelopes = readonly Envelope[] | (() => readonly Envelope[]);

/**
 * The result of a finished task: messages to send, and for a waiting caller a reply with bytes after it. `tell` is for
 * messages that may arrive twice or out of order: they are sent as by `TaskContext.tell`, which is cheaper.
 */
export type Outcome<M extends TaskSchema> = {
  send?: Envelopes;
  tell?: Envelopes;
} & (M extends { reply: infer P extends z.ZodType }
  ? { reply: DeepReadonly<z.input<P>>; chunks?: AsyncIterable<Uint8Array> }
  : { reply?: never; chunks?: never });

export interface WorkerDefinition<M extends TaskMessages> {
  contract: TaskContract<M>;
  /** How many tasks of each lane run at the same time. The worker does not serve a lane that is missing here. */
  slots: Record<string, number>;
  /**
   * The limits of the slots, for lanes that serve keys in turn. Without these limits, one key may occupy all slots of
   * its lane.
   */
  turns?: Record<string, Omit<TurnLimits, "places">>;
  /** How long one of its tasks may take. Default: TASK_RUN_MS_MAX. */
  runMsMax?: number;
  handlers: {
    [N in keyof M]: (input: Input<M[N]>, context: TaskContext) => Promise<Outcome<M[N]>>;
  };
  /**
   * Returns the messages to send when the task is given up: its handler refused it, it has no tries left, its
   * deadline passed, or its caller left.
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

export const envelopesOf = (envelopes: Envelopes = []): readonly Envelope[] =>
  typeof envelopes === "function" ? envelopes() : envelopes;

/**
 * Binds a task contract to its handlers. A task whose handler throws ActorError is not retried. After any other error
 * the task is retried later, on any worker, up to TASK_TRIES_MAX tries. A task may run more than once, so repeated
 * messages of a task must do no harm.
 */
export function defineWorker<M extends TaskMessages>(
  contract: TaskContract<M>,
  parts: Omit<WorkerDefinition<M>, "contract">,
): WorkerDefinition<M> {
  return { ...parts, contract };
}
