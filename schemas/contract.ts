/** Defines contracts: a kind, its messages, and a schema for each; and the envelope that carries one message. */
import type { z } from "zod";

/**
 * A message with `reply` is a call: its caller waits for the reply. A message without `reply` is a send: it is
 * durable and is handled once.
 */
export interface MessageSchema {
  input: z.ZodType;
  reply?: z.ZodType;
}
export type Messages = Record<string, MessageSchema>;

/** The live updates of a kind, if it has any. */
export type LiveSchema = z.ZodType | undefined;

export interface Contract<M extends Messages = Messages, L extends LiveSchema = LiveSchema> {
  kind: string;
  messages: M;
  /**
   * The schema of live updates for subscribers of an actor. The actor does not wait for subscribers, and a subscriber
   * may miss an update.
   */
  live?: L;
  /**
   * True if an actor of the kind answers one sender when another one reports, for example when a place becomes free.
   * Then its sends carry no request id: that request is not theirs, and if the actor serves all accounts, another
   * account could read the steps of that request.
   */
  isShared?: true;
}

/**
 * A task message: the lane in which it is queued, and the reply if a caller waits for the task (see ActorClient.run).
 */
export interface TaskSchema<L extends string = string> extends MessageSchema {
  lane: L;
}
export type TaskMessages<L extends string = string> = Record<string, TaskSchema<L>>;

/**
 * The tasks of a worker kind. Each lane has its own queue, so that tasks of one lane never wait for tasks of another.
 */
export interface TaskContract<M extends TaskMessages = TaskMessages> {
  kind: string;
  lanes: readonly string[];
  /**
   * True if the lanes serve the keys of their tasks alternately (`TaskTurns`). Otherwise tasks run in the order in
   * which they were queued.
   */
  inTurns?: true;
  messages: M;
}

export type Input<S extends MessageSchema> = z.output<S["input"]>;
export type Reply<S extends MessageSchema> = S extends { reply: infer R extends z.ZodType }
  ? z.output<R>
  : never;
/** The names of the messages that have a reply. */
export type Calls<M extends Messages> = {
  [N in keyof M]: M[N] extends { reply: z.ZodType } ? N : never;
}[keyof M] &
  string;
/** The names of the messages that have no reply. */
export type Sends<M extends Messages> = Exclude<keyof M & string, Calls<M>>;

/** A type whose values cannot be modified, at any depth. */
export type DeepReadonly<T> = T extends (...parameters: never[]) => unknown
  ? T
  : T extends object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T;

/** One message that is sent. It is stored as JSON in outboxes, so every field is plain data. */
export interface Envelope {
  /**
   * `actor`: mail, which reaches the actor through its shard. `worker`: a task, which waits in a lane for a worker.
   */
  to: "actor" | "worker";
  kind: string;
  key: string;
  message: string;
  input: unknown;
  /** The lane of a task; absent for messages to actors. */
  lane?: string;
  /** True for tasks of a lane that serves its keys alternately. */
  inTurns?: true;
  /** The request for which the message is sent, if it is not that of the message which the sender now handles. */
  trace?: Readonly<Record<string, string>>;
}

// Names that no kind may have, because the runtime uses them in the same buckets and subjects.
const RESERVED_KINDS = new Set([
  "lease",
  "epoch",
  "outbox",
  "remind",
  "fired",
  "journal",
  "checkpoint",
]);
const KIND = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/;

/** Declares the messages and replies of an actor kind. Throws if the kind is not kebab-case or is reserved. */
export function defineContract<const M extends Messages, L extends LiveSchema = undefined>(
  contract: Contract<M, L>,
): Contract<M, L> {
  checkKind(contract.kind);
  return contract;
}

/**
 * Declares the tasks of a worker kind. The compiler refuses a message whose lane is not in the contract. Throws if
 * the kind is not kebab-case or is reserved.
 */
export function defineTasks<const L extends string, const M extends TaskMessages<L>>(contract: {
  kind: string;
  lanes: readonly L[];
  inTurns?: true;
  messages: M;
}): TaskContract<M> {
  checkKind(contract.kind);
  return contract;
}

/**
 * Makes a message to an actor or a task for a worker. The compiler checks it against the receiver's contract; when it
 * arrives, the receiver's schema checks it again. `key` is the key of the actor; for a task it identifies what the
 * task is about, such as a client or an account.
 */
export function envelope<M extends TaskMessages, N extends Exclude<keyof M & string, Calls<M>>>(
  contract: TaskContract<M>,
  key: string,
  message: N,
  input: DeepReadonly<z.input<M[N]["input"]>>,
): Envelope;
export function envelope<M extends Messages, N extends Sends<M>>(
  contract: Contract<M>,
  key: string,
  message: N,
  input: DeepReadonly<z.input<M[N]["input"]>>,
): Envelope;
export function envelope(
  contract: Contract | TaskContract,
  key: string,
  message: string,
  input: unknown,
): Envelope {
  const address = { kind: contract.kind, key, message, input };
  if (!("lanes" in contract)) return { to: "actor", ...address };
  const lane = contract.messages[message]?.lane;
  if (lane === undefined) throw new Error(`Cannot send task: ${contract.kind} has no ${message}`);
  const { inTurns } = contract;
  return { to: "worker", ...address, lane, ...(inTurns && { inTurns }) };
}

function checkKind(kind: string): void {
  if (!KIND.test(kind) || RESERVED_KINDS.has(kind)) {
    throw new Error(`Cannot define contract: "${kind}" is reserved or not kebab-case`);
  }
}
