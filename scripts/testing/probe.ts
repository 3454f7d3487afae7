/**
 * A kind for tests of the runtime whose messages do what no correct kind does, and a second kind that is not durable.
 */
import { z } from "zod";
import { defineActor } from "../../actors/runtime/kinds/define-actor.ts";
import { defineContract, envelope } from "../../schemas/contract.ts";
import { ActorError } from "../../schemas/errors.ts";
import { echo } from "./echo.ts";

const Log = z.object({ log: z.array(z.string()) });
const Nothing = z.object({});

export const probe = defineContract({
  kind: "probe",
  messages: {
    get: { input: Nothing, reply: Log },
    append: { input: z.strictObject({ text: z.string() }), reply: Log },
    /** The same by mail. */
    note: { input: z.strictObject({ text: z.string() }) },
    /**
     * Mail that fails `times` times before it appends `text` to the log. With a negative number the mail is always
     * refused.
     */
    falter: { input: z.object({ text: z.string(), times: z.int() }) },
    /** Mail that sets the length of the state. */
    swell: { input: z.object({ characters: z.int() }) },
    mutate: { input: Nothing, reply: Log },
    mutateRows: { input: Nothing, reply: Log },
    misspell: { input: Nothing, reply: Log },
    /** Returns a state that JSON cannot represent. */
    cycle: { input: Nothing, reply: Log },
    /** Returns a state, or with `row` a row, that violates its schema. */
    misfit: { input: z.object({ row: z.boolean() }), reply: Log },
    /** A reply of this many characters. */
    answer: { input: z.object({ characters: z.int() }), reply: z.object({ text: z.string() }) },
    /** Returns a reply that violates its schema and contains a value that must not leave the host. */
    leak: { input: Nothing, reply: Log },
    /** A refusal with details. */
    refuse: { input: z.object({ text: z.string() }), reply: Log },
    /** Sends a note with `text`, repeated `times` times, to each key in `to`. */
    scatter: {
      input: z.object({ to: z.array(z.string()), text: z.string(), times: z.int().optional() }),
      reply: Log,
    },
    /** Creates `count` rows of `characters` characters each. */
    fillRows: {
      input: z.object({ from: z.int(), count: z.int(), characters: z.int() }),
      reply: z.object({ rows: z.int() }),
    },
    getRow: {
      input: z.object({ row: z.string() }),
      reply: z.object({ value: z.string().nullable() }),
    },
    /** Changes one row by name. */
    setRow: {
      input: z.object({ row: z.string(), value: z.string().nullable() }),
      reply: z.object({ rows: z.int() }),
    },
    /** Sets the two reminders. Each is noted in the log when it fires. */
    remind: {
      input: z.object({ early: z.int().nullish(), late: z.int().nullish() }),
      reply: Log,
    },
    early: { input: Nothing },
    late: { input: Nothing },
    /** Sends one echo task for each text to workers. */
    ask: { input: z.object({ texts: z.array(z.string()), failing: z.int() }), reply: Log },
    echoed: { input: z.object({ text: z.string() }) },
    echoFailed: { input: z.object({ text: z.string(), code: z.string() }) },
    /** Forgets the whole state, sends a note to the key `to`, and publishes an update to the subscribers. */
    forget: { input: z.object({ to: z.string() }), reply: Log },
    /** The same by mail. */
    forgetLater: { input: Nothing },
    /** Publishes a live update of `text` and `characters` more characters. With `note` it also adds `text` to the log. */
    show: {
      input: z.object({ text: z.string(), characters: z.int().default(0), note: z.boolean() }),
      reply: Log,
    },
  },
  live: z.object({ text: z.string(), count: z.int() }),
});

const faltered = new Map<string, number>();

export const probeActor = defineActor(probe, {
  state: z.object({
    log: z.array(z.string()),
    padding: z.string().optional(),
    odd: z.unknown().optional(),
  }),
  initial: { log: [] },
  rows: z.string(),
  handlers: {
    get: (state) => ({ state, reply: { log: [...state.log] } }),
    append(state, { text }) {
      const log = [...state.log, text];
      return { state: { ...state, log }, reply: { log } };
    },
    note: (state, { text }) => ({ state: { ...state, log: [...state.log, text] } }),
    falter(state, { text, times }, { key }) {
      const before = faltered.get(`${key} ${text}`) ?? 0;
      faltered.set(`${key} ${text}`, before + 1);
      if (times < 0) throw new ActorError("conflict", "Cannot note: refused as asked");
      if (before < times) throw new Error("faltered as asked");
      return { state: { ...state, log: [...state.log, text] } };
    },
    swell: (state, { characters }) => ({ state: { ...state, padding: "x".repeat(characters) } }),
    mutate(state) {
      // A cast or a library can modify the state, although its types are read-only.
      (state.log as string[]).push("changed in place");
      return { state, reply: { log: [...state.log] } };
    },
    mutateRows(state, _, { rows }) {
      (rows as Map<string, string>).set("changed", "in place");
      return { state, reply: { log: [...state.log] } };
    },
    misspell(state) {
      const misspelled = { sends: [] };
      const log = [...state.log, "misspelled"];
      return { state: { ...state, log }, reply: { log }, ...misspelled };
    },
    cycle(state) {
      const odd: { self?: unknown } = {};
      odd.self = odd;
      return { state: { ...state, odd }, reply: { log: [] } };
    },
    misfit(state, { row }) {
      const odd = 5 as unknown as string;
      const next = row ? state : { ...state, log: [...state.log, odd] };
      return { state: next, reply: { log: [] }, ...(row && { rows: { odd } }) };
    },
    answer: (state, { characters }) => ({ state, reply: { text: "x".repeat(characters) } }),
    leak: (state) => ({ state, reply: { log: "secret of the house" } as never }),
    refuse(_, { text }) {
      throw new ActorError("rate_limited", text, { retryAfterS: 7, browserMs: 12 });
    },
    scatter(state, { to, text, times = 1 }) {
      const send = to.flatMap((key) =>
        Array.from({ length: times }, () => envelope(probe, key, "note", { text })),
      );
      return { state, reply: { log: [] }, send };
    },
    fillRows(state, { from, count, characters }, { rows }) {
      const made = Array.from(
        { length: count },
        (_, index) => [`row${from + index}`, "x".repeat(characters)] as const,
      );
      return { state, rows: Object.fromEntries(made), reply: { rows: rows.size } };
    },
    getRow: (state, { row }, { rows }) => ({ state, reply: { value: rows.get(row) ?? null } }),
    setRow: (state, { row, value }, { rows }) => ({
      state,
      rows: { [row]: value },
      reply: { rows: rows.size },
    }),
    remind: (state, { early, late }) => ({
      state,
      remind: { ...(early !== undefined && { early }), ...(late !== undefined && { late }) },
      reply: { log: [...state.log] },
    }),
    early: (state) => ({ state: { ...state, log: [...state.log, "early"] } }),
    late: (state) => ({ state: { ...state, log: [...state.log, "late"] } }),
    ask(state, { texts, failing }, { key }) {
      const send = texts.map((text) => envelope(echo, key, "tell", { text, failing }));
      return { state, send, reply: { log: [...state.log] } };
    },
    echoed: (state, { text }) => ({ state: { ...state, log: [...state.log, text] } }),
    echoFailed: (state, { text, code }) => ({
      state: { ...state, log: [...state.log, `${text}: ${code}`] },
    }),
    forget: (state, { to }) => ({
      forget: true,
      reply: { log: [...state.log] },
      send: [envelope(probe, to, "note", { text: "forgotten" })],
      live: { text: "forgotten", count: 0 },
    }),
    forgetLater: () => ({ forget: true }),
    show(state, { text, characters, note }) {
      const next = note ? { ...state, log: [...state.log, text] } : state;
      const live = { text: text + "x".repeat(characters), count: next.log.length };
      return { state: next, reply: { log: [...next.log] }, live };
    },
  },
});

const Tally = z.object({ count: z.int() });

export const tally = defineContract({
  kind: "tally",
  messages: { add: { input: Nothing, reply: Tally }, addLater: { input: Nothing } },
});

/** Counts in memory only, because the kind is not durable. */
export const tallyActor = defineActor(tally, {
  state: Tally,
  initial: { count: 0 },
  durable: false,
  handlers: {
    add({ count }) {
      return { state: { count: count + 1 }, reply: { count: count + 1 } };
    },
    addLater: ({ count }) => ({ state: { count: count + 1 } }),
  },
});
