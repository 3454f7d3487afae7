/** A webhook's request while it is held against its signature: its bytes as they came, and what can be read in them. */
import { JSON_DEPTH_MAX } from "../../../schemas/limits.ts";
import { parseJson } from "../../../schemas/parse-json.ts";

export interface SignedEvent {
  /** The body as it arrived. A body that was parsed and written again has another signature. */
  body: Buffer;
  /** Headers by name in lower case; the first of each name. */
  headers: ReadonlyMap<string, string>;
  /** The URL that the sender called, because Twilio signs it. */
  url: string;
  /** The body as JSON, or as the fields of a form; undefined where it is neither. */
  fields: unknown;
}

/** The value that a JSON pointer leads to (RFC 6901, section 4), if any. */
export function valueAt(value: unknown, pointer: string): unknown {
  let at = value;
  for (const step of pointer.split("/").slice(1)) {
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return undefined;
    if (Array.isArray(at) && !/^(0|[1-9]\d*)$/.test(name)) return undefined;
    at = (at as Record<string, unknown>)[name];
  }
  return at;
}

/** Text or a number, as text. */
export function textAt(value: unknown, pointer: string): string | undefined {
  const found = valueAt(value, pointer);
  return typeof found === "string" || typeof found === "number" ? String(found) : undefined;
}

/** GitHub and Slack can send their JSON as the field `payload` of a form. */
export function readFields(body: Buffer, contentType: string): unknown {
  if (!/^application\/x-www-form-urlencoded\b/i.test(contentType)) return readJson(body.toString());
  const form = formOf(body);
  const payload = form.get("payload");
  const inner = payload === null ? undefined : readJson(payload);
  return inner ?? Object.fromEntries(form);
}

export const formOf = (body: Buffer) => new URLSearchParams(body.toString());

function readJson(text: string): unknown {
  // The code that needs a field reports that it is missing.
  if (isTooDeep(text)) return undefined;
  return LONG_NUMBER.test(text) ? parseJson(text, asWritten) : parseJson(text);
}

const LONG_NUMBER = /\d{16}/;

/** Ids of 64 bits past 2^53 would be one and the same number, and events of theirs repeats: they stay text. */
const asWritten = (_name: string, value: unknown, context?: { source?: string }) =>
  Number.isInteger(value) && !Number.isSafeInteger(value) ? context?.source : value;

/** Brackets in strings count as well: then it is refused where it need not be, at depths that nobody sends. */
function isTooDeep(text: string): boolean {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const character = text.charCodeAt(i);
    if (character === 0x5b || character === 0x7b) depth += 1;
    else if (character === 0x5d || character === 0x7d) depth -= 1;
    if (depth > 8 * JSON_DEPTH_MAX) return true;
  }
  return false;
}
