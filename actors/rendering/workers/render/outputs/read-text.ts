/** Reads values from a loaded page, and refuses values that are too large for a response. */
import { ActorError } from "../../../../../schemas/errors.ts";
import { META_TITLE_CHARS_MAX, RESULT_BYTES_MAX } from "../../../../../schemas/rendering/limits.ts";
import { readHtml } from "../../../lib/browser/read-html.ts";
import type { RenderContext } from "../../../lib/browser/render-context.ts";
import type { ReadAnswer } from "./output.ts";

export interface PageText {
  html: string;
  /** Address of the document after redirects. */
  url: string;
  /** Base of its relative addresses. */
  baseUrl: string;
  title: string;
}

/** Reads the document with its open shadow roots. */
export async function readText(context: RenderContext): Promise<PageText> {
  const taken = await readHtml(context);
  const html = taken.html ?? (await taken.rest());
  if (taken.truncated) throw tooLarge("HTML");
  const about = await context.evaluate(`({
    baseUrl: document.baseURI,
    title: document.title.slice(0, ${META_TITLE_CHARS_MAX}),
  })`);
  // Safe: our own script returns this value.
  const { baseUrl, title } = about as Pick<PageText, "baseUrl" | "title">;
  return { html, url: taken.url, baseUrl, title: title.toWellFormed() };
}

/**
 * Calls the function `read` in the page's isolated world. If the value has more characters than `charsMax`, `read`
 * must return `"large"` instead.
 */
export async function readValue<P, T>(
  context: Pick<RenderContext, "evaluate">,
  read: (parameters: P, charsMax: number) => T | "large",
  { parameters, what }: { parameters: P; what: string },
): Promise<T> {
  const call = `(${read})(${JSON.stringify(parameters)}, ${RESULT_BYTES_MAX})`;
  const value = (await context.evaluate(call)) as T | "large";
  if (value === "large") throw tooLarge(what);
  return value;
}

/** Returns the fields of a response's JSON object, without the braces. */
export function membersOf({ result, ...others }: ReadAnswer<unknown>): string {
  const json = JSON.stringify(result);
  const members = Object.entries(others).map(
    ([name, value]) => `,"${name}":${JSON.stringify(value)}`,
  );
  return `"result":${json}${members.join("")}`;
}

/** Throws a refusal if the text has more than RESULT_BYTES_MAX bytes. */
export function checkText(text: string, what: string): void {
  if (Buffer.byteLength(text) > RESULT_BYTES_MAX) throw tooLarge(what);
}

/** Throws a refusal if the value, encoded as JSON, has more than RESULT_BYTES_MAX bytes. */
export function checkJson(value: unknown, what: string): void {
  checkText(JSON.stringify(value), what);
}

export function tooLarge(what: string): ActorError {
  const reason = `its ${what} is larger than ${RESULT_BYTES_MAX} bytes`;
  return new ActorError("page_not_printable", `Cannot read the page: ${reason}`);
}
