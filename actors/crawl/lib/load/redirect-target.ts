/** Reads the target of a redirect. */
import { ANSWER_SHOWN_CHARS, CRAWL_URL_CHARS_MAX } from "../../../../schemas/crawl/limits.ts";
import { REDIRECTS } from "../../../egress/egress-fetch.ts";

/** Returns the target or a fault; undefined for a response that is not a redirect or has no Location. */
export function redirectTarget(
  from: string,
  status: number,
  headers: Headers,
): { url: string; fault?: never } | { url?: never; fault: string } | undefined {
  const location = REDIRECTS.has(status) ? headers.get("location") : null;
  if (location === null) return undefined;
  const shown = location.slice(0, ANSWER_SHOWN_CHARS);
  // Header fields arrive as bytes, and servers write addresses in UTF-8.
  const target = URL.parse(Buffer.from(location, "latin1").toString(), from);
  if (target === null || !/^https?:$/.test(target.protocol)) {
    return { fault: `it redirects to "${shown}", which is no address of a page` };
  }
  target.hash = "";
  const { length } = target.href;
  return length > CRAWL_URL_CHARS_MAX
    ? { fault: `it redirects to an address of ${length} characters, "${shown}…"` }
    : { url: target.href };
}
