/** What a kind of actor is: the shape of its state, and one pure function for each message of its contract. */
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

/**
 * What a handler returns. The runtime commits all of it together, and only then answers and delivers.
 * Returning the state it was given, and nothing else but a reply, changes nothing and costs no commit.
 */
export type Transition<
  S,
  M extends MessageSchema,
  N extends string,
  R,
  L extends LiveSchema = LiveSchema,
> = (Next<S, N, R> | Forgetting) & {
  /** Messages to other actors and tasks for workers: delivered after the commit, whatever dies. */
  send?: readonly Envelope[];
  /**
   * Shown to those who watch this key, once the commit is durable. Some may miss it; one past LIVE_BYTES_MAX is not
   * shown, and they are told that something is missing.
   */
  live?: L extends z.ZodType ? DeepReadonly<z.input<L>> : never;
} & (M extends { reply: infer P extends z.ZodType }
    ? { reply: DeepReadonly<z.input<P>> }
    : { reply?: never });

interface Next<S, N extends string, R> {
  state: DeepReadonly<S>;
  /** Rows to write by name; `null` removes one. Every other row stays as it is. */
  rows?: Readonly<Record<string, DeepReadonly<R> | null>>;
  /** Messages of this contract to come back without input at a time (epoch ms); `null` takes one back. */
  remind?: { readonly [name in N]?: number | null };
  forget?: never;
}

/** State, rows and reminders are gone: the next message finds the initial state. */
interface Forgetting {
  forget: true;
  state?: never;
  rows?: never;
  remind?: never;
}

/** What a handler may know besides state and input. It reads no clock and makes no id of its own. */
export interface HandlerContext<R = never> {
  key: string;
  /** Epoch milliseconds of the host that runs it. */
  now: number;
  /** Id of the clock that says so. */
  clock?: string | undefined;
  /** 32 hex characters, random. */
  newId(): string;
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
  /** Stored bytes outlive the code: parsed at every load. Add optional fields only. */
  state: z.ZodType<S>;
  /** The state of a key nobody wrote yet. */
  initial: NoInfer<S>;
  /** Only kinds whose state is too big for one value have rows, all of one shape. */
  rows?: z.ZodType<R>;
  /** `false` keeps state in memory alone: it may vanish at any time. For counters that may start anew. */
  durable: boolean;
  handlers: { [N in keyof M]: Handler<S, M[N], Reminders<M>, R, L> };
}

/** A definition whose message, state and row types are known only to itself: what a host keeps. */
export interface AnyActorDefinition {
  contract: Contract;
  state: z.ZodType;
  initial: unknown;
  rows?: z.ZodType;
  durable: boolean;
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
    handlers: { [N in keyof M]: Handler<S, M[N], Reminders<M>, R, L> };
  },
): ActorDefinition<M, S, R, L> {
  return { durable: true, ...parts, contract };
}
