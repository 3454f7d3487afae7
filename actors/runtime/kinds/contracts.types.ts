/**
 * Code that the compiler must refuse in contracts, actors, workers and their callers: checked by `tsc`, never run.
 */
import { z } from "zod";
import { defineContract, defineTasks, envelope } from "../../../schemas/contract.ts";
import type { LiveUpdates } from "../bus/live.ts";
import type { ActorClient } from "../calls/actor-client.ts";
import { defineWorker } from "../workers/define-worker.ts";
import { defineActor } from "./define-actor.ts";

const Status = z.object({ status: z.enum(["idle", "running"]) });

export const door = defineContract({
  kind: "door",
  messages: {
    open: { input: z.object({ by: z.string() }), reply: Status },
    get: { input: z.object({}), reply: Status },
    slammed: { input: z.object({ at: z.int() }) },
    creak: { input: z.object({}) },
  },
  live: z.object({ open: z.boolean() }),
});

/** Shows nothing. */
const wall = defineContract({ kind: "wall", messages: { paint: { input: z.object({}) } } });

const paint = defineTasks({
  kind: "paint",
  lanes: ["quick", "slow"],
  messages: {
    coat: {
      lane: "quick",
      input: z.object({ colour: z.string() }),
      reply: z.object({ dry: z.boolean() }),
    },
    strip: { lane: "slow", input: z.object({ deep: z.boolean() }) },
  },
});

defineTasks({
  kind: "broken",
  lanes: ["quick"],
  // @ts-expect-error a message in a lane that the contract does not have
  messages: { coat: { lane: "slow", input: z.object({}) } },
});

const State = z.object({
  status: z.enum(["idle", "running"]),
  log: z.array(z.object({ by: z.string() })),
});
const initial = { status: "idle" as const, log: [] };

const doorActor = defineActor(door, {
  state: State,
  initial,
  rows: z.object({ size: z.int() }),
  handlers: {
    open(state, { by }, { rows, key }) {
      // @ts-expect-error state is not changed in place
      state.status = "running";
      // @ts-expect-error at no depth
      state.log.push({ by });
      for (const entry of state.log) {
        // @ts-expect-error at no depth
        entry.by = "me";
      }
      // @ts-expect-error nor are rows
      rows.set("a", { size: 1 });
      // @ts-expect-error nor what is in them
      for (const row of rows.values()) row.size = 2;
      return {
        state: { ...state, log: [...state.log, { by }] },
        rows: { a: { size: 1 }, b: null },
        reply: { status: "running" as const },
        send: [
          envelope(door, key, "slammed", { at: 1 }),
          envelope(paint, key, "strip", { deep: true }),
        ],
        remind: { creak: 1 },
        live: { open: true },
      };
    },
    get: (state) => ({ state, reply: { status: state.status } }),
    slammed: (state) => ({ state }),
    creak: (state) => ({ state }),
  },
});

const handlers = doorActor.handlers;

// @ts-expect-error a handler is forgotten
defineActor(door, { state: State, initial, handlers: { open: handlers.open, get: handlers.get } });

defineActor(door, {
  state: State,
  rows: z.object({ size: z.int() }),
  // @ts-expect-error an initial state that the schema does not have
  initial: { status: "ajar", log: [] },
  handlers,
});

defineActor(door, {
  state: State,
  initial,
  handlers: {
    // @ts-expect-error a reply is forgotten
    open: (state) => ({ state }),
    // @ts-expect-error a reply of another type
    get: (state) => ({ state, reply: { status: 1 } }),
    // @ts-expect-error a send is not answered
    slammed: (state) => ({ state, reply: { status: "idle" } }),
    // @ts-expect-error a state that the schema does not have
    creak: (state) => ({ state: { ...state, status: "ajar" } }),
  },
});

defineActor(door, {
  state: State,
  initial,
  handlers: {
    // @ts-expect-error a reminder nobody handles
    open: (state) => ({ state, reply: { status: "idle" }, remind: { squeak: 1 } }),
    // @ts-expect-error a reminder comes without input, and this one needs some
    get: (state) => ({ state, reply: { status: "idle" }, remind: { slammed: 1 } }),
    // @ts-expect-error a call is no reminder
    slammed: (state) => ({ state, remind: { get: 1 } }),
    // @ts-expect-error a row of another type
    creak: (state) => ({ state, rows: { a: { size: "x" } } }),
  },
});

defineActor(door, {
  state: State,
  initial,
  handlers: {
    ...handlers,
    // @ts-expect-error those who watch are shown something of another type
    creak: (state) => ({ state, live: { open: "wide" } }),
  },
});

defineActor(door, {
  state: State,
  initial,
  rows: z.object({ size: z.int() }),
  handlers: {
    open: () => ({ forget: true, reply: { status: "idle" as const } }),
    // @ts-expect-error who forgets answers all the same
    get: () => ({ forget: true }),
    // @ts-expect-error what forgets has no state
    slammed: (state) => ({ forget: true, state }),
    // @ts-expect-error and no rows
    creak: () => ({ forget: true, rows: { a: { size: 1 } } }),
  },
});

defineActor(wall, {
  state: z.object({}),
  initial: {},
  // @ts-expect-error a kind that shows nothing
  handlers: { paint: (state) => ({ state, live: { open: true } }) },
});

export async function watchers(live: LiveUpdates, signal: AbortSignal): Promise<void> {
  for await (const update of await live.subscribe(door, "front", signal)) {
    if ("value" in update) update.value.open satisfies boolean;
  }
  // @ts-expect-error a kind that shows nothing
  await live.subscribe(wall, "north", signal);
}

// @ts-expect-error a message misspelled
envelope(door, "front", "slamed", { at: 1 });
// @ts-expect-error an input of another type
envelope(door, "front", "slammed", { at: "noon" });
// @ts-expect-error an input with a field missing
envelope(door, "front", "slammed", {});
// @ts-expect-error a call cannot be sent
envelope(door, "front", "open", { by: "me" });
// @ts-expect-error nor can a task that is waited for
envelope(paint, "front", "coat", { colour: "red" });

export async function callers(actors: ActorClient, signal: AbortSignal): Promise<void> {
  const { status } = await actors.call(door, "front", "open", { by: "me" });
  status satisfies "idle" | "running";
  // @ts-expect-error a message misspelled
  await actors.call(door, "front", "opn", { by: "me" });
  // @ts-expect-error an input of another type
  await actors.call(door, "front", "open", { by: 1 });
  // @ts-expect-error a send is not called
  await actors.call(door, "front", "slammed", { at: 1 });
  // @ts-expect-error a call is not sent
  await actors.send(door, "front", "open", { by: "me" });
  await actors.send(door, "front", "slammed", { at: 1 });
  const options = { deadlineMs: 1, signal };
  const { reply } = await actors.run(paint, "front", "coat", { colour: "red" }, options);
  reply.dry satisfies boolean;
  // @ts-expect-error `run` takes only tasks with a reply
  await actors.run(paint, "front", "strip", { deep: true }, options);
  // @ts-expect-error a caller that waits must pass `deadlineMs`
  await actors.run(paint, "front", "coat", { colour: "red" });
  // @ts-expect-error an actor's call is not a task
  await actors.run(door, "front", "open", { by: "me" }, options);
}

defineWorker(paint, {
  slots: { quick: 1 },
  handlers: {
    // @ts-expect-error a reply is forgotten
    coat: async () => ({}),
    // @ts-expect-error a task without a reply may not return one
    strip: async () => ({ reply: { dry: true } }),
  },
  failures: { coat: () => [], strip: () => [] },
});

defineWorker(paint, {
  slots: {},
  // @ts-expect-error a handler is forgotten
  handlers: { strip: async () => ({}) },
  // @ts-expect-error and what its asker hears of a failure
  failures: { strip: () => [] },
});
