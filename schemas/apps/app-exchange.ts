/** Requests and responses of apps on the bus: the HTTP fields that the gateway passes on, and nothing else. */
import { z } from "zod";

export const InlineBody = z.union([
  z.object({ text: z.string() }),
  z.object({ base64: z.string() }),
]);
export type InlineBody = z.infer<typeof InlineBody>;

/** A small body stands in the message, a larger one in a blob that its reader removes. */
export const Body = z.union([...InlineBody.options, z.object({ blob: z.string() })]);
export type Body = z.infer<typeof Body>;

// Without this option the decoder would remove a byte order mark at the start.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON takes six characters for each.
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f]/;

/** The body as a message holds it: as text if that is exact and shorter in JSON than base64, else as base64. */
export function inlineBody(bytes: Uint8Array): InlineBody {
  const text = exactText(bytes);
  if (text !== undefined && !CONTROLS.test(text)) return { text };
  const { buffer, byteOffset, byteLength } = bytes;
  return { base64: Buffer.from(buffer, byteOffset, byteLength).toString("base64") };
}

export const inlineBytes = (body: InlineBody): Buffer =>
  "text" in body ? Buffer.from(body.text) : Buffer.from(body.base64, "base64");

/** Returns the text of these UTF-8 bytes, with its byte order mark, or undefined if they are not UTF-8. */
export function exactText(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined; // Not UTF-8.
  }
}

/**
 * Names in lower case, in order; a name may come several times. Looked at where it stands: every request has some
 * dozens of pairs.
 */
export const HeaderList = z.custom<[name: string, value: string][]>(
  (value) => Array.isArray(value) && value.every(isPairOfStrings),
  "expected a list of pairs of strings",
);
export type HeaderList = z.infer<typeof HeaderList>;

const isPairOfStrings = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.length === 2 &&
  typeof value[0] === "string" &&
  typeof value[1] === "string";

export const AppRequest = z.object({
  method: z.string(),
  /**
   * The URL as the client wrote it, with scheme and host of the app's own address, without the prefix that led to the
   * app.
   */
  url: z.string(),
  headers: HeaderList,
  body: Body.optional(),
});
export type AppRequest = z.infer<typeof AppRequest>;

/** RFC 9110 section 9.2.1: what may run again, since it changes nothing. */
export const isSafeMethod = (method: string): boolean => SAFE_METHODS.has(method);
const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

/** The stream with the rest of a body that the app is still making: see answer-stream.ts. */
export const AnswerStream = z.object({ subject: z.string(), stream: z.string() });
export type AnswerStream = z.infer<typeof AnswerStream>;

export const AppAnswer = z.object({
  status: z.int().min(200).max(599),
  headers: HeaderList,
  body: Body.optional(),
  /** The rest after `body`. */
  rest: AnswerStream.optional(),
});
export type AppAnswer = z.infer<typeof AppAnswer>;
