/** Patterns that choose addresses: `*` is any characters but `/`, `**` is any characters. */
import { crawlUrlKey } from "./crawl-url.ts";
import { wildcardMatcher } from "./wildcard-matcher.ts";

/** Whether an address, in the form `crawlUrl` gives, is meant. */
export type UrlPattern = (url: string) => boolean;

/**
 * A pattern with a scheme is held against the whole address. Any other is held against host and path, and against the
 * path with anything before it, with the query or without: `example.com/docs/**`, `/docs/*` and `docs/*` all mean what
 * they look like.
 */
export function urlPattern(pattern: string): UrlPattern {
  const normal = normalPattern(pattern);
  if (/^[a-z*]+:\/\//i.test(normal)) {
    const matchesUrl = wildcardMatcher(lowerHost(normal, normal.indexOf("://") + 3));
    return (url) => matchesUrl(crawlUrlKey(url));
  }
  const matchesHostPath = wildcardMatcher(lowerHost(normal, 0));
  const matchesPathEnd = wildcardMatcher(`**${normal}`);
  return (url) => {
    const key = crawlUrlKey(url);
    const hostPath = key.slice(key.indexOf("://") + 3);
    const path = hostPath.slice(hostPath.indexOf("/"));
    const query = path.indexOf("?");
    if (matchesHostPath(hostPath) || matchesPathEnd(path)) return true;
    if (query < 0) return false;
    const queryless = hostPath.length - path.length + query;
    return matchesHostPath(hostPath.slice(0, queryless)) || matchesPathEnd(path.slice(0, query));
  };
}

/** As an address would write it: what no URL carries bare is percent-encoded. */
function normalPattern(pattern: string): string {
  const encoded = pattern
    .toWellFormed()
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
    .replace(/[\u0000- "<>\u007f-\u{10ffff}]/gu, encodeURIComponent);
  return crawlUrlKey(encoded);
}

/** Hosts have no case, paths do. */
function lowerHost(pattern: string, start: number): string {
  const slash = pattern.indexOf("/", start);
  const end = slash < 0 ? pattern.length : slash;
  return pattern.slice(0, end).toLowerCase() + pattern.slice(end);
}
