/** A kind for tests of the runtime that checks each mail itself. It detects duplicate, lost and reordered mail. */
import { z } from "zod";
import { defineActor } from "../../actors/runtime/kinds/define-actor.ts";
import { defineContract, envelope } from "../../schemas/contract.ts";

/** The number of entries sent to each other ledger, or received from it, by that ledger's name. */
const Counts = z.record(z.string(), z.int());

const LedgerState = z.object({
  sent: Counts,
  received: Counts,
  /** Descriptions of violated invariants; must stay empty. */
  faults: z.array(z.string()),
  /** Number of reminders that were set (`set`) and that have fired (`rung`). */
  set: z.int(),
  rung: z.int(),
});

export const ledger = defineContract({
  kind: "ledger",
  messages: {
    /** Sends the next entry to another ledger. Its handler fails `stumbles` times before it accepts the entry. */
    post: {
      input: z.object({ to: z.string(), stumbles: z.int() }),
      reply: z.object({ number: z.int() }),
    },
    entry: { input: z.object({ from: z.string(), number: z.int(), stumbles: z.int() }) },
    /** Sets a reminder, unless one is already set. */
    remindIn: { input: z.object({ ms: z.int() }), reply: z.object({ set: z.int() }) },
    ring: { input: z.object({}) },
    read: { input: z.object({}), reply: LedgerState },
  },
});

// Counts failures outside of the state. Handlers must be pure, but this test kind must fail a number of times and
// then succeed.
const stumbled = new Map<string, number>();

export const ledgerActor = defineActor(ledger, {
  state: LedgerState,
  initial: { sent: {}, received: {}, faults: [], set: 0, rung: 0 },
  /** Rows repeat the numbers of `received`. They show whether rows and state are written together or not at all. */
  rows: z.int(),
  handlers: {
    post(state, { to, stumbles }, { key }) {
      const number = (state.sent[to] ?? 0) + 1;
      return {
        state: { ...state, sent: { ...state.sent, [to]: number } },
        reply: { number },
        send: [envelope(ledger, to, "entry", { from: key, number, stumbles })],
      };
    },

    entry(state, { from, number, stumbles }, { key, rows }) {
      const times = stumbled.get(`${key} ${from} ${number}`) ?? 0;
      stumbled.set(`${key} ${from} ${number}`, times + 1);
      if (times < stumbles) throw new Error("stumbled as asked");
      const before = state.received[from] ?? 0;
      const faults = [...state.faults];
      if (number !== before + 1) faults.push(`entry ${number} of ${from} came after ${before}`);
      const row = rows.get(from) ?? 0;
      if (row !== before) faults.push(`row ${from} is ${row}, not ${before}`);
      const received = { ...state.received, [from]: number };
      return { state: { ...state, received, faults }, rows: { [from]: number } };
    },

    remindIn(state, { ms }, { now }) {
      if (state.set > state.rung) return { state, reply: { set: state.set } };
      const set = state.set + 1;
      return { state: { ...state, set }, reply: { set }, remind: { ring: now + ms } };
    },

    ring(state) {
      const rung = state.rung + 1;
      const faults =
        rung > state.set ? [...state.faults, `reminder ${rung} came unasked`] : state.faults;
      return { state: { ...state, rung, faults } };
    },

    read: (state) => ({ state, reply: state }),
  },
});
