/** Reads where a redirect leads. */
import { ANSWER_SHOWN_CHARS, CRAWL_URL_CHARS_MAX } from "../../../../schemas/crawl/limits.ts";
import { REDIRECTS } from "../../../egress/egress-fetch.ts";

/** Undefined of an answer that is no redirect: another status, or one without a Location. */
export function redirectTarget(
  from: string,
  status: number,
  headers: Headers,
): { url: string; fault?: never } | { url?: never; fault: string } | undefined {
  const location = REDIRECTS.has(status) ? headers.get("location") : null;
  if (location === null) return undefined;
  const shown = location.slice(0, ANSWER_SHOWN_CHARS);
  // Header fields come byte by byte; servers write addresses in UTF-8.
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
