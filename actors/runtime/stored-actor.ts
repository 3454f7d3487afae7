/** What the store holds of an actor: one JSON value an operator can read, and rows beside it. */
import { z } from "zod";
import { ActorError } from "../../schemas/errors.ts";
import { STATE_BYTES_MAX } from "../../schemas/limits.ts";
import type { AnyActorDefinition } from "./define-actor.ts";
import type { Delivery } from "./incoming.ts";
import { RememberedReplies, StoredReplies } from "./remembered-replies.ts";
import type { Effects } from "./transition.ts";

/** `mail`: the sequence in MAIL up to which this actor has had its mail. `reminders`: when each is due, epoch ms. */
const StoredActor = z.object({
  state: z.unknown().optional(),
  mail: z.number().default(0),
  reminders: z.record(z.string(), z.number()).default({}),
  replies: StoredReplies.default({}),
});

export interface LoadedActor {
  state: unknown;
  mail: number;
  reminders: Map<string, number>;
  replies: RememberedReplies;
  rows: Map<string, unknown>;
}

/** Throws what `encodeState` throws. */
export function encodeActor(address: string, actor: Omit<LoadedActor, "rows">): string {
  const state = encodeState(address, actor.state);
  const reminders = JSON.stringify(Object.fromEntries(actor.reminders));
  return `{"state":${state},"mail":${actor.mail},"reminders":${reminders},"replies":${actor.replies.toText()}}`;
}

/** Throws ActorError for a state past STATE_BYTES_MAX, and TypeError for one that JSON cannot carry. */
export function encodeState(address: string, state: unknown): string {
  const text = JSON.stringify(state);
  if (Buffer.byteLength(text) <= STATE_BYTES_MAX) return text;
  const message = `Cannot change ${address}: its state would be past ${STATE_BYTES_MAX} bytes`;
  throw new ActorError("limit_reached", message);
}

/** Throws ZodError or SyntaxError when the stored bytes are not of this kind: a fault of ours. */
export function decodeActor(
  definition: AnyActorDefinition,
  value: string | undefined,
  rowTexts: ReadonlyMap<string, string>,
): LoadedActor {
  const rows = new Map<string, unknown>();
  for (const [name, text] of rowTexts) {
    rows.set(name, deepFreeze(definition.rows?.parse(JSON.parse(text))));
  }
  const stored = StoredActor.parse(value === undefined ? {} : JSON.parse(value));
  return {
    state: deepFreeze(
      value === undefined ? definition.initial : definition.state.parse(stored.state),
    ),
    mail: stored.mail,
    reminders: new Map(Object.entries(stored.reminders)),
    replies: new RememberedReplies(stored.replies),
    rows,
  };
}

/** What a handler did to rows and reminders, in memory. */
export function applyEffects(actor: LoadedActor, { rows, remind }: Effects): void {
  for (const [row, { value, text }] of rows) {
    if (text === null) actor.rows.delete(row);
    else actor.rows.set(row, deepFreeze(value));
  }
  for (const [message, at] of remind) {
    if (at === null) actor.reminders.delete(message);
    else actor.reminders.set(message, at);
  }
}

/** True for mail that had its effect before, and a reminder that was taken back or set anew after it fired. */
export function isObsolete(actor: LoadedActor, { sequence, dueAt, message }: Delivery): boolean {
  if (dueAt !== undefined) return actor.reminders.get(message) !== dueAt;
  return sequence !== undefined && sequence <= actor.mail;
}

/** Freezes what is new of a value; what is frozen already was frozen through and through, so it is not walked again. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const member of Object.values(value)) deepFreeze(member);
  return value;
}
