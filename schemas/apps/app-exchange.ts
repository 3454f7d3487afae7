/** Requests and responses of apps on the bus. They contain only the HTTP fields that the gateway passes on. */
import { z } from "zod";

export const InlineBody = z.union([
  z.object({ text: z.string() }),
  z.object({ base64: z.string() }),
]);
export type InlineBody = z.infer<typeof InlineBody>;

/** A small body is part of the message. A larger body is in a blob; who deletes the blob depends on the message. */
export const Body = z.union([...InlineBody.options, z.object({ blob: z.string() })]);
export type Body = z.infer<typeof Body>;

// Without this option the decoder would remove a byte order mark at the start.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON takes six characters for each.
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f]/;

/**
 * Returns the body in the form for a message: as text if it is UTF-8 without control characters, and otherwise as
 * base64, which is shorter then.
 */
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
 * Pairs of a name in lower case and a value, in order. A name may occur several times. A custom check is used because
 * it creates no copy: every request has dozens of pairs.
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
   * The URL as the client wrote it, with the scheme and host of the app's own address. It does not contain the prefix
   * of the path that led to the app.
   */
  url: z.string(),
  headers: HeaderList,
  body: Body.optional(),
});
export type AppRequest = z.infer<typeof AppRequest>;

/** Returns whether a request may run again because its method changes nothing (RFC 9110, section 9.2.1). */
export const isSafeMethod = (method: string): boolean => SAFE_METHODS.has(method);
const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

/** The stream with the rest of a body that the app is still writing: see answer-stream.ts. */
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
