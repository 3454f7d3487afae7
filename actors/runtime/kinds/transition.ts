/** Reads what a handler returned, and checks it against the limits before any of it takes effect. */
import { strict as assert } from "node:assert";
import {
  KEY_CHARS_MAX,
  REMINDER_AT_MAX,
  ROW_BYTES_MAX,
  TRANSITION_ROW_BYTES_MAX,
  TRANSITION_ROWS_MAX,
  TRANSITION_SEND_BYTES_MAX,
} from "../../../schemas/limits.ts";
import { addressOf, encodeKey } from "../../../schemas/subjects.ts";
import { currentTrace } from "../lib/trace.ts";
import { type Unsent, unsent } from "../shards/outbox.ts";
import type { AnyActorDefinition, Transition } from "./define-actor.ts";

/** Limits the sends of one transition, because all sends of a shard wait in its outbox, which is one stored value. */
export const TRANSITION_SENDS_MAX = 256;
/** Limits the reminders that one transition sets. */
export const TRANSITION_REMINDERS_MAX = 16;

export interface Effects {
  rows: [row: string, written: { value: unknown; text: string | null; bytes: number }][];
  remind: [message: string, at: number | null][];
  sends: Unsent[];
  forget: boolean;
}

// biome-ignore lint/suspicious/noExplicitAny: handlers of every kind end here.
type AnyTransition = Transition<any, any, any, any, any>;

const KEYS = new Set(["state", "rows", "reply", "send", "remind", "live", "forget"]);

/** Returns the effects besides state and reply, or undefined if there are none. Throws an Error past a limit. */
export function readTransition(
  definition: AnyActorDefinition,
  address: string,
  transition: AnyTransition,
): Effects | undefined {
  // The compiler does not find every misspelled key. Without this check, a misspelled `send` would silently lose its
  // messages.
  for (const key in transition) assert(KEYS.has(key), `A transition has no "${key}"`);
  const { rows, send, remind, forget = false } = transition;
  assert(forget === (transition.state === undefined), "A transition has a state, or forgets it");
  assert(!forget || (!rows && !remind), "What forgets has no rows and no reminders");
  if (!rows && !send?.length && !remind && !forget) return undefined;
  assert(definition.durable, `${definition.contract.kind} is not durable: it has only a state`);
  return {
    rows: readRows(definition, rows ?? {}),
    remind: readReminders(definition, remind ?? {}),
    sends: readSends(definition, address, send ?? []),
    forget,
  };
}

function readRows(definition: AnyActorDefinition, rows: Record<string, unknown>): Effects["rows"] {
  const entries = Object.entries(rows);
  within("rows", entries.length, TRANSITION_ROWS_MAX);
  assert(entries.length === 0 || definition.rows, `${definition.contract.kind} has no rows`);
  let total = 0;
  return entries.map(([row, value]) => {
    assert(row !== "", "A row has a name");
    assert(value !== undefined, `Row ${row} has a value, or null`);
    within("characters of a row's name", encodeKey(row).length, KEY_CHARS_MAX);
    // A row that could not be loaded again would make the whole actor unreadable.
    if (value !== null) definition.rows?.parse(value);
    const text = value === null ? null : JSON.stringify(value);
    const bytes = text === null ? 0 : Buffer.byteLength(text);
    within(`bytes of row ${row}`, bytes, ROW_BYTES_MAX);
    total += bytes;
    within("bytes of rows", total, TRANSITION_ROW_BYTES_MAX);
    return [row, { value, text, bytes }];
  });
}

function readReminders(
  { contract }: AnyActorDefinition,
  remind: Record<string, number | null | undefined>,
): Effects["remind"] {
  const entries = Object.entries(remind).filter(
    (entry): entry is [string, number | null] => entry[1] !== undefined,
  );
  within("reminders", entries.length, TRANSITION_REMINDERS_MAX);
  for (const [message, at] of entries) {
    assert(Object.hasOwn(contract.messages, message), `${contract.kind} has no message ${message}`);
    const valid = at === null || (Number.isInteger(at) && at > 0 && at <= REMINDER_AT_MAX);
    assert(valid, `Reminder ${message} has a time in whole epoch ms, not ${at}`);
  }
  return entries;
}

function readSends(
  { contract }: AnyActorDefinition,
  address: string,
  send: AnyTransition["send"] & object,
): Unsent[] {
  within("sends", send.length, TRANSITION_SENDS_MAX);
  let total = 0;
  const trace = contract.isShared ? undefined : currentTrace();
  return send.map((envelope) => {
    assert(envelope.key !== "", "A send has a key");
    const target = addressOf(envelope.kind, envelope.key);
    within("characters of an address", target.length, KEY_CHARS_MAX);
    const written = unsent({ from: address, ...(trace && { trace }), ...envelope });
    total += written.bytes;
    within("bytes of sends", total, TRANSITION_SEND_BYTES_MAX);
    return written;
  });
}

function within(what: string, count: number, max: number): void {
  if (count > max) throw new Error(`Cannot commit transition: ${count} ${what}, at most ${max}`);
}
