/** The change log of a client: who changed which value when, with the old and new values. */
import { ActorError } from "../../../schemas/errors.ts";
import { AUDIT_VALUE_CHARS_MAX } from "../../../schemas/oauth/limits.ts";
import type { AuditAction, Author } from "../../../schemas/oauth/oauth-client.ts";
import {
  REGISTRATION_FIELDS,
  type Registration,
  wireName,
} from "../../../schemas/oauth/oauth-client-settings.ts";
import { type ChangeRow, changeRow, type LiveClient } from "./oauth-client-state.ts";

/**
 * Limits the log entries, lookups of the domain and fetches of the logo that one author may cause for one client
 * within a day. A person who tries out the settings causes about twenty.
 */
export const CLIENT_CHANGES_PER_DAY_MAX = 40;
/**
 * Limits those of all authors together. It leaves some to the owner of the client, who must undo the changes of an
 * intruder with a stolen token.
 */
export const CLIENT_CHANGES_OF_ALL_PER_DAY_MAX = 50;
/**
 * Limits those of all authors together for a person who is signed in. It leaves some even if an intruder with a stolen
 * token has created further tokens.
 */
export const CLIENT_CHANGES_BY_SESSION_PER_DAY_MAX = 60;
/**
 * Limits the entries in the log of one client. At CLIENT_CHANGES_BY_SESSION_PER_DAY_MAX entries a day, the log covers
 * at least ten days.
 */
export const AUDIT_ENTRIES_MAX = 600;

const DAY_MS = 86_400_000;

export interface LoggedChange {
  action: AuditAction;
  changes?: ChangeRow["changes"];
}

/** The author of changes that the platform makes without a request, such as results of DNS lookups. */
export const SYSTEM: Author = { type: "system", id: "" };

/**
 * Returns the state with the new entry count, and the rows of the new entries. Each new row replaces the oldest row
 * when the log is full.
 */
export function logged(
  state: LiveClient,
  logs: readonly LoggedChange[],
  { by, at }: { by: Author; at: number },
): { state: LiveClient; rows: Record<string, ChangeRow | null> } {
  const rows: Record<string, ChangeRow | null> = {};
  let number = state.nextChange;
  for (const { action, changes = [] } of logs) {
    rows[changeRow(number)] = { number, at, by, action, changes };
    if (number >= AUDIT_ENTRIES_MAX) rows[changeRow(number - AUDIT_ENTRIES_MAX)] = null;
    number++;
  }
  return { state: { ...state, nextChange: number }, rows };
}

/**
 * Returns the state with `entries` more changes counted. Throws `rate_limited` if a daily limit is reached. Otherwise
 * a person could push their own earlier changes out of the log, and fill lanes that all accounts share.
 */
export function counted(
  state: LiveClient,
  entries: number,
  { by, at: now }: { by: Author; at: number },
): LiveClient {
  const { lately } = state;
  const isSameDay = lately !== undefined && now < lately.since + DAY_MS;
  const { since, entries: before, authors = {} } = isSameDay ? lately : { since: now, entries: 0 };
  const author = [by.type, by.id, by.clientId].join(" ");
  const own = authors[author] ?? 0;
  const isSession = by.type === "user" && by.clientId === undefined;
  const most = isSession
    ? CLIENT_CHANGES_BY_SESSION_PER_DAY_MAX
    : CLIENT_CHANGES_OF_ALL_PER_DAY_MAX;
  if (own >= CLIENT_CHANGES_PER_DAY_MAX || before >= most) {
    const text = `Cannot change client: you changed it ${own} times and others ${before - own} times within a day`;
    const retryAfterS = Math.ceil((since + DAY_MS - now) / 1_000);
    throw new ActorError("rate_limited", text, { retryAfterS });
  }
  const next = { ...authors, [author]: own + entries };
  return { ...state, lately: { since, entries: before + entries, authors: next } };
}

/** Returns the fields of a registration that changed. */
export function differences(before: Partial<Registration>, after: Registration) {
  return REGISTRATION_FIELDS.flatMap((field) => {
    const from = shown(before[field]);
    const to = shown(after[field]);
    const same = JSON.stringify(before[field]) === JSON.stringify(after[field]);
    return same ? [] : [{ field: wireName(field), from, to }];
  });
}

/** Returns one page of entries, the newest first, starting after the cursor. */
export function pageOfChanges(
  rows: ReadonlyMap<string, ChangeRow>,
  { cursor, count }: { cursor?: string | undefined; count: number },
) {
  const before = cursor === undefined ? Number.POSITIVE_INFINITY : numberOf(cursor);
  const newestFirst = [...rows.values()]
    .filter(({ number }) => number < before)
    .sort((one, other) => other.number - one.number);
  const entries = newestFirst.slice(0, count);
  const last = newestFirst.length > count ? entries.at(-1) : undefined;
  return { entries, ...(last !== undefined && { cursor: String(last.number) }) };
}

function numberOf(cursor: string): number {
  if (/^\d{1,15}$/.test(cursor)) return Number(cursor);
  throw new ActorError(
    "invalid_request",
    "Cannot list changes: the cursor is not one of this list",
  );
}

/** Returns a value as JSON. If it is too long, it is cut and its last character is "…". */
function shown(value: unknown): string | null {
  if (value === undefined) return null;
  const text = JSON.stringify(value);
  if (text.length <= AUDIT_VALUE_CHARS_MAX) return text;
  return `${text.slice(0, AUDIT_VALUE_CHARS_MAX - 1).toWellFormed()}…`;
}
