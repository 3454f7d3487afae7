/** Decides which addresses belong to a crawl, and says why the others do not. */
import { getDomain } from "tldts";
import { crawlUrlKey } from "./crawl-url.ts";
import { type UrlPattern, urlPattern } from "./url-pattern.ts";

export interface ScopeOptions {
  includeExternalLinks?: boolean | undefined;
  includeSubdomains?: boolean | undefined;
  includePatterns?: readonly string[] | undefined;
  excludePatterns?: readonly string[] | undefined;
}

export type ScopeVerdict = { allowed: true } | { allowed: false; reason: string };

/** Takes addresses in the form `crawlUrl` gives. Make it once for many: its patterns are compiled. */
export function crawlScope(startUrl: string, options: ScopeOptions): (url: string) => ScopeVerdict {
  const start = new URL(startUrl);
  const startKey = crawlUrlKey(startUrl);
  const includes = compiled(options.includePatterns);
  const excludes = compiled(options.excludePatterns);

  return (url) => {
    if (crawlUrlKey(url) === startKey) return { allowed: true };
    const host = hostRefusal(start, new URL(url), options);
    if (host !== undefined) return { allowed: false, reason: host };
    const excluded = excludes.find(({ matches }) => matches(url));
    if (excluded !== undefined) {
      return { allowed: false, reason: `excludePatterns has "${excluded.pattern}"` };
    }
    if (includes.length === 0 || includes.some(({ matches }) => matches(url))) {
      return { allowed: true };
    }
    return { allowed: false, reason: "includePatterns has no pattern that matches" };
  };
}

function hostRefusal(start: URL, url: URL, options: ScopeOptions): string | undefined {
  // Default ports are not part of a host, so http and https are the same place.
  if (options.includeExternalLinks === true || url.host === start.host) return undefined;
  if (options.includeSubdomains !== true) return `the host is ${url.host}, not ${start.host}`;
  if (url.port === start.port && areRelated(start.hostname, url.hostname)) return undefined;
  return `the host ${url.host} shares no domain with ${start.host}`;
}

/** Hosts whose registrable domain is one: who registered example.co.uk has all below it, but not all of co.uk. */
function areRelated(one: string, other: string): boolean {
  const domain = getDomain(one, DOMAIN_OPTIONS);
  if (domain !== null) return domain === getDomain(other, DOMAIN_OPTIONS);
  // Names outside the public suffixes, such as localhost; of an address nothing is below.
  return other.endsWith(`.${one}`);
}

/** Of a site at github.io its neighbours are strangers. */
const DOMAIN_OPTIONS = { allowPrivateDomains: true };

function compiled(patterns: readonly string[] = []): { pattern: string; matches: UrlPattern }[] {
  return patterns.map((pattern) => ({ pattern, matches: urlPattern(pattern) }));
}
