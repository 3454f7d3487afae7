/** Defines contracts: a kind, its messages, and a schema for each; and the envelope that carries one message. */
import type { z } from "zod";

/**
 * A message with `reply` is a call, which its caller waits for. A message without is a send: durable, delivered once.
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
  /** The schema of live updates for the subscribers of a key. Nobody waits for them, and a subscriber may miss some. */
  live?: L;
  /** Actors of the kind serve all accounts. So their sends name no request: another account may read its steps. */
  isShared?: true;
}

/** A task message: the lane it queues in, and for one that is waited for (see ActorClient.run), its reply. */
export interface TaskSchema<L extends string = string> extends MessageSchema {
  lane: L;
}
export type TaskMessages<L extends string = string> = Record<string, TaskSchema<L>>;

/** The tasks of a kind of worker. Each lane is a queue of its own, so that no lane waits behind another. */
export interface TaskContract<M extends TaskMessages = TaskMessages> {
  kind: string;
  lanes: readonly string[];
  /**
   * The lanes serve the keys of their tasks in turn (`TaskTurns`). Otherwise tasks run in the order in which they were
   * queued.
   */
  inTurns?: true;
  messages: M;
}

export type Input<S extends MessageSchema> = z.output<S["input"]>;
export type Reply<S extends MessageSchema> = S extends { reply: infer R extends z.ZodType }
  ? z.output<R>
  : never;
/** Names of the messages that are answered. */
export type Calls<M extends Messages> = {
  [N in keyof M]: M[N] extends { reply: z.ZodType } ? N : never;
}[keyof M] &
  string;
/** Names of the messages that are not answered. */
export type Sends<M extends Messages> = Exclude<keyof M & string, Calls<M>>;

/** A value that cannot be changed in place, at any depth. */
export type DeepReadonly<T> = T extends (...parameters: never[]) => unknown
  ? T
  : T extends object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T;

/** One message on its way. It is JSON and kept in outboxes, so every field is plain data. */
export interface Envelope {
  /** Mail goes to an actor by its shard; a task waits in a lane for a worker. */
  to: "actor" | "worker";
  kind: string;
  key: string;
  message: string;
  input: unknown;
  /** Set for tasks only. */
  lane?: string;
  /** Set for tasks of a lane that serves its keys in turn. */
  inTurns?: true;
}

// Names that the runtime itself uses in the same buckets and subjects.
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

/** Declares the tasks of a worker kind. Throws if a message names a lane that the contract lacks. */
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
 * A message to an actor or a task for a worker. The compiler checks it here against the receiver's contract, and the
 * receiver's schema when it arrives. `key` addresses an actor; for a task it names the task's subject.
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
