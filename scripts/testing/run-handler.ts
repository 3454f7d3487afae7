/** Runs one handler as a host does: input, state and reply parsed, state and rows frozen, stray keys refused. */
import assert from "node:assert/strict";
import type { ActorDefinition, HandlerContext } from "../../actors/runtime/kinds/define-actor.ts";
import { deepFreeze } from "../../actors/runtime/lib/deep-freeze.ts";
import type { DeepReadonly, Envelope, Input, Messages, Reply } from "../../schemas/contract.ts";

const TRANSITION_KEYS = new Set(["state", "rows", "reply", "send", "remind", "live", "forget"]);

export interface Handled<S, P> {
  state: DeepReadonly<S>;
  /** Whether there is anything to commit. */
  changed: boolean;
  reply: P;
  send: readonly Envelope[];
  rows: Readonly<Record<string, unknown>>;
  remind: Readonly<Record<string, number | null | undefined>>;
  live: unknown;
  /** State, rows and reminders are gone; `state` is the initial one. */
  forgotten: boolean;
}

/** Ids are counted from 1, so that a test can name them. */
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
    // Parsed by the very schema the type is made of.
    schema.input.parse(input) as Input<M[N]>,
    {
      key: "key",
      now: 0,
      newId: () => (++ids).toString(16).padStart(32, "0"),
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
