/** Decides which addresses belong to a crawl and why others do not. */
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

/** Compiles the scope of a crawl. The returned function takes addresses in the form of `crawlUrl`. */
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
  if (options.includeExternalLinks === true) return undefined;
  // Default ports are not part of a host, so http and https are the same site.
  const home = bareName(start.hostname);
  if (url.port === start.port && bareName(url.hostname) === home) return undefined;
  if (options.includeSubdomains !== true) return `the host is ${url.host}, not ${start.host}`;
  if (url.port === start.port && url.hostname.endsWith(`.${home}`)) return undefined;
  return `the host ${url.host} is no subdomain of ${start.host}`;
}

/**
 * By custom www.example.org and example.org are one site. This does not hold for domains with many owners, such as
 * github.io.
 */
function bareName(host: string): string {
  const bare = host.replace(/^www\./, "");
  return getDomain(bare, DOMAIN_OPTIONS) === null ? host : bare;
}

/** With this option a.github.io and b.github.io are two domains, because they have different owners. */
const DOMAIN_OPTIONS = { allowPrivateDomains: true };

function compiled(patterns: readonly string[] = []): { pattern: string; matches: UrlPattern }[] {
  return patterns.map((pattern) => ({ pattern, matches: urlPattern(pattern) }));
}
