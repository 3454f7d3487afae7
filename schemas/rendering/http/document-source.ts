/** The sources of a document: the address of a page, or its HTML. */
import { z } from "zod";
import { HTML_BYTES_MAX, URL_CHARS_MAX } from "../../limits.ts";

/** An absolute http or https address. */
export const HttpUrl = z
  .string()
  .max(URL_CHARS_MAX)
  .refine((text) => isHttpUrl(text), {
    error: "Expected an absolute URL that begins with http:// or https://",
  })
  .meta({ format: "uri" });

export const SubmittedHtml = z
  .string()
  .min(1)
  .refine((html) => Buffer.byteLength(html) <= HTML_BYTES_MAX, {
    error: `Expected at most ${HTML_BYTES_MAX} bytes`,
  });

function isHttpUrl(text: string): boolean {
  const protocol = URL.parse(text)?.protocol;
  return protocol === "http:" || protocol === "https:";
}
