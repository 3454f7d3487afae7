/**
 * A kind for tests and benchmarks of the runtime. It has a number, rows, mail and reminders, and messages that fail
 * in each possible way.
 */
import { z } from "zod";
import { defineActor } from "../../actors/runtime/kinds/define-actor.ts";
import { defineContract, envelope } from "../../schemas/contract.ts";
import { ActorError } from "../../schemas/errors.ts";

const Count = z.object({ count: z.int() });

export const counter = defineContract({
  kind: "counter",
  messages: {
    increment: { input: z.object({ by: z.int() }), reply: Count },
    get: { input: z.object({}), reply: Count },
    refuse: { input: z.object({}), reply: Count },
    break: { input: z.object({}), reply: Count },
    /** Subtracts from this counter and adds to another counter by mail. */
    give: { input: z.object({ to: z.string(), by: z.int() }), reply: Count },
    receive: { input: z.object({ by: z.int() }) },
    setRows: { input: z.object({ rows: z.record(z.string(), z.int().nullable()) }), reply: Count },
    getRows: { input: z.object({}), reply: z.object({ rows: z.record(z.string(), z.int()) }) },
    /** Sets a reminder that adds 1 to the counter at time `at`. Null removes the reminder. */
    remindAt: { input: z.object({ at: z.int().nullable() }), reply: Count },
    tick: { input: z.object({}) },
    /** Mail whose handler fails `times` times before it succeeds. With -1 the handler always refuses the mail. */
    stumble: { input: z.object({ times: z.int() }) },
    /** Sets the length of the state, in characters. */
    grow: { input: z.object({ characters: z.int() }), reply: Count },
  },
});

const CounterState = z.object({ count: z.int(), padding: z.string().optional() });

// Counts failures outside of the state. Handlers must be pure, but this test kind must fail a number of times and
// then succeed.
const stumbles = new Map<string, number>();

export const counterActor = defineActor(counter, {
  state: CounterState,
  initial: { count: 0 },
  rows: z.int(),
  handlers: {
    increment(state, { by }) {
      const next = { ...state, count: state.count + by };
      return { state: next, reply: next };
    },
    get: (state) => ({ state, reply: state }),
    refuse() {
      throw new ActorError("conflict", "Cannot count: refused as asked");
    },
    break() {
      throw new Error("broken as asked");
    },
    give(state, { to, by }) {
      const next = { ...state, count: state.count - by };
      return { state: next, reply: next, send: [envelope(counter, to, "receive", { by })] };
    },
    receive: (state, { by }) => ({ state: { ...state, count: state.count + by } }),
    setRows: (state, { rows }) => ({ state, rows, reply: state }),
    getRows: (state, _, { rows }) => ({ state, reply: { rows: Object.fromEntries(rows) } }),
    remindAt: (state, { at }) => ({ state, reply: state, remind: { tick: at } }),
    tick: (state) => ({ state: { ...state, count: state.count + 1 } }),
    stumble(state, { times }, { key }) {
      if (times === -1) throw new ActorError("conflict", "Cannot count: refused as asked");
      const before = stumbles.get(key) ?? 0;
      stumbles.set(key, before + 1);
      if (before < times) throw new Error("stumbled as asked");
      return { state: { ...state, count: state.count + 1 } };
    },
    grow(state, { characters }) {
      const next = { ...state, padding: "x".repeat(characters) };
      return { state: next, reply: next };
    },
  },
});
