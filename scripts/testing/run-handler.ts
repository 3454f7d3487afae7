/**
 * Runs one handler as a host does. It parses input, state and reply, freezes state and rows, and rejects unknown keys
 * in the result.
 */
import assert from "node:assert/strict";
import type { ActorDefinition, HandlerContext } from "../../actors/runtime/kinds/define-actor.ts";
import { deepFreeze } from "../../actors/runtime/lib/deep-freeze.ts";
import type { DeepReadonly, Envelope, Input, Messages, Reply } from "../../schemas/contract.ts";

const TRANSITION_KEYS = new Set(["state", "rows", "reply", "send", "remind", "live", "forget"]);

export interface Handled<S, P> {
  state: DeepReadonly<S>;
  /** Whether the handler returned another state or deleted the actor. */
  changed: boolean;
  reply: P;
  send: readonly Envelope[];
  rows: Readonly<Record<string, unknown>>;
  remind: Readonly<Record<string, number | null | undefined>>;
  live: unknown;
  /** State, rows and reminders are gone; `state` is the initial one. */
  forgotten: boolean;
}

/** Runs a handler. New ids are counted from 1, so that a test can predict them. */
export function runHandler<M extends Messages, S, R, N extends keyof M & string>(
  definition: ActorDefinition<M, S, R>,
  message: N,
  state: DeepReadonly<S>,
  input: Input<M[N]>,
  context: Partial<HandlerContext<R>> = {},
): Handled<S, Reply<M[N]>> {
  const schema = definition.contract.messages[message];
  assert(schema, `${definition.contract.kind} has no ${message}`);
  let ids = 0;
  const transition = definition.handlers[message](
    deepFreeze(state),
    // The cast is safe, because the type Input is derived from this same schema.
    schema.input.parse(input) as Input<M[N]>,
    {
      key: "key",
      now: 0,
      newId: () => (++ids).toString(16).padStart(32, "0"),
      trace: () => undefined,
      rows: new Map<string, DeepReadonly<R>>(),
      ...context,
    },
  );
  for (const key of Object.keys(transition)) assert(TRANSITION_KEYS.has(key), `stray "${key}"`);
  const { forget: forgotten = false } = transition;
  const next = forgotten ? definition.initial : transition.state;
  definition.state.parse(next);
  return {
    state: deepFreeze(next as DeepReadonly<S>),
    changed: next !== state || forgotten,
    forgotten,
    reply: schema.reply?.parse(transition.reply) as Reply<M[N]>,
    send: transition.send ?? [],
    rows: transition.rows ?? {},
    remind: transition.remind ?? {},
    live:
      transition.live === undefined ? undefined : definition.contract.live?.parse(transition.live),
  };
}
