/** Defines a kind of actor: the schema of its state, and one pure function for each message of its contract. */
import type { z } from "zod";
import type {
  Contract,
  DeepReadonly,
  Envelope,
  Input,
  LiveSchema,
  MessageSchema,
  Messages,
} from "../../../schemas/contract.ts";
import type { Steady } from "../lib/steady-clock.ts";

/**
 * The result of a handler. The runtime stores the whole result in one commit, and only then sends the reply and
 * delivers the messages. A handler that returns the given state and at most a reply changes nothing and needs no
 * commit.
 */
export type Transition<
  S,
  M extends MessageSchema,
  N extends string,
  R,
  L extends LiveSchema = LiveSchema,
> = (Next<S, N, R> | Forgetting) & {
  /** Messages to other actors and tasks for workers. They are delivered after the commit, even if the host dies. */
  send?: readonly Envelope[];
  /**
   * A live update for subscribers of this key. The runtime publishes it after the commit is durable, and some
   * subscribers may miss it. If it is larger than LIVE_BYTES_MAX, subscribers learn that an update is missing.
   */
  live?: L extends z.ZodType ? DeepReadonly<z.input<L>> : never;
} & (M extends { reply: infer P extends z.ZodType }
    ? { reply: DeepReadonly<z.input<P>> }
    : { reply?: never });

interface Next<S, N extends string, R> {
  state: DeepReadonly<S>;
  /** Rows to write, by name; `null` removes a row. All other rows stay unchanged. */
  rows?: Readonly<Record<string, DeepReadonly<R> | null>>;
  /**
   * Reminders: messages of this contract that the runtime delivers without input at a time (epoch ms). `null` cancels
   * a reminder.
   */
  remind?: { readonly [name in N]?: number | null };
  forget?: never;
}

/** Removes state, rows and reminders: the next message finds the initial state. */
interface Forgetting {
  forget: true;
  state?: never;
  rows?: never;
  remind?: never;
}

/** The facts that a handler may use besides state and input. A handler reads no clock and makes no ids itself. */
export interface HandlerContext<R = never> {
  key: string;
  /** Time in epoch milliseconds on the host that runs the handler. */
  now: number;
  /** Id of the clock of `now`. */
  clock?: string | undefined;
  /**
   * Compares `now` with a clock of the host process that is never set. The difference between two values of `aheadMs`
   * with the same `id` is how far the time of day was set between them. Absent in tests of handlers.
   */
  steady?: (() => Steady) | undefined;
  /** 32 hex characters, random. */
  newId(): string;
  /** Returns the request that caused the message, for work that is sent later (`Envelope.trace`). */
  trace(): Readonly<Record<string, string>> | undefined;
  /** The rows as they are now. */
  rows: ReadonlyMap<string, DeepReadonly<R>>;
}

type Handler<S, M extends MessageSchema, N extends string, R, L extends LiveSchema = LiveSchema> = (
  state: DeepReadonly<S>,
  input: Input<M>,
  context: HandlerContext<R>,
) => Transition<S, M, N, R, L>;

/** Messages that can be reminders: sends whose input may be `{}`. */
export type Reminders<M extends Messages> = {
  [N in keyof M]: M[N] extends { reply: z.ZodType }
    ? never
    : Record<never, never> extends z.input<M[N]["input"]>
      ? N
      : never;
}[keyof M] &
  string;

export interface ActorDefinition<
  M extends Messages,
  S,
  R = never,
  L extends LiveSchema = LiveSchema,
> {
  contract: Contract<M, L>;
  /**
   * The schema of the state. It parses stored bytes at every load. Stored bytes outlive the code, so add optional
   * fields only.
   */
  state: z.ZodType<S>;
  /** The state of a key that was never written. */
  initial: NoInfer<S>;
  /** The schema of rows. Only kinds whose state is too large for one value have rows, all of one schema. */
  rows?: z.ZodType<R>;
  /**
   * `false` keeps the state only in memory, where it may be lost at any time. Use it for counters that may restart at
   * zero.
   */
  durable: boolean;
  /**
   * Reminders that end a pause or a timeout, and do not wait for a date. If the time of day was set back, the bus would
   * fire them late by that time. So the host delivers them early, and their handlers must accept that.
   */
  mayComeEarly?: readonly Reminders<M>[];
  handlers: { [N in keyof M]: Handler<S, M[N], Reminders<M>, R, L> };
}

/** A definition in the form that a host keeps. The types of its messages, state and rows are hidden. */
export interface AnyActorDefinition {
  contract: Contract;
  state: z.ZodType;
  initial: unknown;
  rows?: z.ZodType;
  durable: boolean;
  mayComeEarly?: readonly string[];
  // biome-ignore lint/suspicious/noExplicitAny: the one place where handlers of different kinds meet.
  handlers: Record<string, (state: any, input: any, context: any) => any>;
}

/**
 * Binds a contract to its state and handlers. Handlers are pure and synchronous; they throw ActorError to refuse.
 * The compiler refuses a forgotten handler, a misspelled message and a wrong reply.
 */
export function defineActor<M extends Messages, S, R = never, L extends LiveSchema = undefined>(
  contract: Contract<M, L>,
  parts: {
    state: z.ZodType<S>;
    initial: NoInfer<S>;
    rows?: z.ZodType<R>;
    durable?: boolean;
    mayComeEarly?: readonly Reminders<M>[];
    handlers: { [N in keyof M]: Handler<S, M[N], Reminders<M>, R, L> };
  },
): ActorDefinition<M, S, R, L> {
  return { durable: true, ...parts, contract };
}
