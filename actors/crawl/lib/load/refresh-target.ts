/** Reads the target of a page that redirects by itself: by a `meta` element or a header field Refresh. */
import { CRAWL_URL_CHARS_MAX } from "../../../../schemas/crawl/limits.ts";
import { redirectTarget } from "./redirect-target.ts";

/**
 * A refresh after at most this many seconds counts as a redirect: redirecting pages wait 5 s, some 10 s. A page with
 * a later refresh counts as a normal page.
 */
export const REFRESH_S_MAX = 10;

/**
 * Returns the absolute address without fragment. Undefined where the page reloads itself, waits longer than
 * REFRESH_S_MAX, or names no address of a page. The syntax is HTML's shared declarative refresh.
 */
export function refreshTarget(
  content: string,
  { url, base }: { url: string; base: string },
): string | undefined {
  const [, seconds, rest = ""] =
    /^\s*(\d+|(?=\.))[\d.]*(?:\s*[;,]\s*|\s+)(.*)$/s.exec(content) ?? [];
  if (seconds === undefined || Number(seconds) > REFRESH_S_MAX) return undefined;
  const address = rest.replace(/^url\s*=\s*/i, "");
  const quote = /^["']/.exec(address)?.[0];
  const named = quote === undefined ? address : (address.slice(1).split(quote, 1)[0] ?? "");
  const target = named.trim() === "" ? null : URL.parse(named, base);
  if (target === null || !/^https?:$/.test(target.protocol)) return undefined;
  target.hash = "";
  const { href } = target;
  return href.length > CRAWL_URL_CHARS_MAX || href === withoutFragment(url) ? undefined : href;
}

/** Returns the redirect target of a response, from its status and its header fields Location and Refresh. */
export function pageRedirect(
  from: string,
  status: number,
  headers: Headers,
): ReturnType<typeof redirectTarget> {
  const refresh = status < 300 ? headers.get("refresh") : null;
  if (refresh === null) return redirectTarget(from, status, headers);
  const content = Buffer.from(refresh, "latin1").toString();
  const url = refreshTarget(content, { url: from, base: from });
  return url === undefined ? undefined : { url };
}

function withoutFragment(url: string): string {
  return url.split("#", 1)[0] ?? url;
}
