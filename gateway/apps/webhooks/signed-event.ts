/**
 * A webhook's request while its signature is checked: its unchanged bytes, and the fields that can be parsed from
 * them.
 */
import { FORM_FIELDS_MAX } from "../../../schemas/apps/limits.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { JSON_DEPTH_MAX } from "../../../schemas/limits.ts";
import { parseJson } from "../../../schemas/parse-json.ts";

export interface SignedEvent {
  /** The body as it arrived. A body that was parsed and written again has another signature. */
  body: Buffer;
  /** Headers by name in lower case. If a name occurs several times, its first value counts. */
  headers: ReadonlyMap<string, string>;
  /** The URL that the sender called, because Twilio signs it. */
  url: string;
  /**
   * The body as parsed JSON, or as the fields of a form; undefined if it is neither. Parsed at the first use, because
   * parsing a large body blocks the thread, and anybody can send an event with a wrong signature.
   */
  readonly fields: unknown;
}

/** Creates the event of a request, whose fields are not parsed yet. */
export function signedEvent({
  body,
  headers,
  url,
}: Pick<SignedEvent, "body" | "headers" | "url">): SignedEvent {
  let parsed: { fields: unknown } | undefined;
  return {
    ...{ body, headers, url },
    get fields() {
      parsed ??= { fields: readFields(body, headers.get("content-type") ?? "") };
      return parsed.fields;
    },
  };
}

/** Returns the value that a JSON pointer refers to (RFC 6901, section 4), if any. */
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

/** Returns the text or the number at the pointer, as text. */
export function textAt(value: unknown, pointer: string): string | undefined {
  const found = valueAt(value, pointer);
  return typeof found === "string" || typeof found === "number" ? String(found) : undefined;
}

/** Parses the fields of a body. GitHub and Slack can send their JSON in the field `payload` of a form. */
function readFields(body: Buffer, contentType: string): unknown {
  if (!/^application\/x-www-form-urlencoded\b/i.test(contentType)) return readJson(body.toString());
  const form = formOf(body);
  const payload = form.get("payload");
  const inner = payload === null ? undefined : readJson(payload);
  return inner ?? Object.fromEntries(form);
}

/** Parses a form. Refuses a form with too many fields before it parses them. */
export function formOf(body: Buffer): URLSearchParams {
  let fields = 1;
  for (let at = body.indexOf("&"); at !== -1; at = body.indexOf("&", at + 1)) {
    fields += 1;
    if (fields > FORM_FIELDS_MAX) {
      const text = `Cannot accept event: expected a form of at most ${FORM_FIELDS_MAX} fields`;
      throw new ActorError("invalid_request", text);
    }
  }
  return new URLSearchParams(body.toString());
}

function readJson(text: string): unknown {
  // Nothing is thrown for JSON that is nested too deeply: the code that needs a field reports that it is missing.
  if (isTooDeep(text)) return undefined;
  const parsed = parseJson(text);
  // The text with quotes is parsed too. A function that revives each value takes up to thirty times as long.
  const isExact = parsed === undefined || !LONG_NUMBER.test(text);
  return isExact ? parsed : parseJson(text.replaceAll(STRING_OR_LONG_INTEGER, asWritten));
}

const LONG_NUMBER = /\d{16}/;
/** Only for valid JSON. Matches strings as a whole, so that it finds no number in them. */
const STRING_OR_LONG_INTEGER = /"[^"\\]*(?:\\.[^"\\]*)*"|(?<![\d.eE+-])-?[1-9]\d{15,}(?![\d.eE])/g;

/**
 * Quotes integers past 2^53. As numbers, different ids of 64 bits would become equal, and their events would count as
 * repeated.
 */
const asWritten = (token: string) =>
  token.startsWith('"') || Number.isSafeInteger(Number(token)) ? token : `"${token}"`;

/**
 * Returns whether JSON is nested too deeply. Brackets in strings count too, so valid JSON could be refused, but no
 * sender sends that number of brackets.
 */
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
