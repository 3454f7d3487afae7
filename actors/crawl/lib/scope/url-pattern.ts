/** Address patterns: `*` matches any characters but `/`, and `**` any characters. */
import { crawlUrlKey } from "./crawl-url.ts";
import { wildcardMatcher } from "./wildcard-matcher.ts";

/** Whether the pattern matches an address in the form of `crawlUrl`. */
export type UrlPattern = (url: string) => boolean;

/**
 * Compiles a pattern. With a scheme it must match the whole address. Any other pattern must match the host and path,
 * or an end of the path, with or without the query. So `example.com/docs/**`, `/docs/*` and `docs/*` mean what they
 * look like.
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

/** Percent-encodes the characters of a pattern that are always encoded in addresses. */
function normalPattern(pattern: string): string {
  const encoded = pattern
    .toWellFormed()
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
    .replace(/[\u0000- "<>\u007f-\u{10ffff}]/gu, encodeURIComponent);
  return crawlUrlKey(encoded);
}

/** Hosts are case-insensitive, paths are not. */
function lowerHost(pattern: string, start: number): string {
  const slash = pattern.indexOf("/", start);
  const end = slash < 0 ? pattern.length : slash;
  return pattern.slice(0, end).toLowerCase() + pattern.slice(end);
}
