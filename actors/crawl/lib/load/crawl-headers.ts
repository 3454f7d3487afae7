/** The header fields of a crawl's requests: those of the crawl request and those that never change. */
import type { CrawlRequest } from "../../../../schemas/crawl/http/crawl.ts";
import { CRAWLER_USER_AGENT } from "./user-agent.ts";

type Cookie = NonNullable<CrawlRequest["cookies"]>[number];
export type HeaderSource = Pick<
  CrawlRequest,
  "url" | "setExtraHTTPHeaders" | "cookies" | "authenticate" | "modifiedSince"
>;

/** Header fields that only our crawler sets. A caller's values for them are ignored. */
const OURS = new Set(["user-agent", "accept-encoding"]);

export class CrawlHeaders {
  readonly #common: Record<string, string> = {
    accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
  };
  readonly #startUrl: URL;
  readonly #cookies: readonly Cookie[];
  readonly #authorization: string | undefined;
  readonly #since: string | undefined;

  constructor(source: HeaderSource) {
    for (const [name, value] of callersFields(source)) this.#common[name.toLowerCase()] = value;
    this.#common["user-agent"] = CRAWLER_USER_AGENT;
    this.#startUrl = new URL(source.url);
    this.#cookies = source.cookies ?? [];
    this.#authorization = source.authenticate && basic(source.authenticate);
    const { modifiedSince } = source;
    this.#since =
      modifiedSince === undefined ? undefined : new Date(modifiedSince * 1_000).toUTCString();
  }

  /** Returns the fields of a page request. With `modifiedSince` the request is conditional. */
  forPage(address: string, now: number): Record<string, string> {
    const headers = this.forFile(address, now);
    if (this.#since !== undefined) headers["if-modified-since"] ??= this.#since;
    return headers;
  }

  /** Returns the header fields of an unconditional request: for sitemaps and the start page. */
  forFile(address: string, now: number): Record<string, string> {
    const headers = { ...this.#common };
    if (this.#cookies.length > 0 || this.#authorization !== undefined) {
      this.#addCredentials(headers, new URL(address), now);
    }
    return headers;
  }

  #addCredentials(headers: Record<string, string>, url: URL, now: number): void {
    const sent = this.#cookies
      .filter((cookie) => goesTo(cookie, url, this.#startUrl, now))
      .map(({ name, value }) => (name === "" ? value : `${name}=${value}`));
    if (sent.length > 0) {
      headers.cookie = [headers.cookie, ...sent].filter((one) => one !== undefined).join("; ");
    }
    // Credentials of one origin must not reach another.
    if (this.#authorization !== undefined && url.origin === this.#startUrl.origin) {
      headers.authorization = this.#authorization;
    }
  }
}

/** Returns the caller's own fields without those that callers cannot set. */
export function callersFields({
  setExtraHTTPHeaders = {},
}: Pick<HeaderSource, "setExtraHTTPHeaders">): [name: string, value: string][] {
  return Object.entries(setExtraHTTPHeaders).filter(([name]) => !OURS.has(name.toLowerCase()));
}

/** Basic authentication (RFC 7617) in UTF-8, which servers expect today. */
function basic({ username, password }: { username: string; password: string }): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}

/**
 * Whether a cookie is sent to an address (RFC 6265, section 5.4). A cookie without `domain` and `url` belongs to the
 * host of the start URL.
 */
function goesTo(cookie: Cookie, url: URL, startUrl: URL, now: number): boolean {
  const of = cookie.url === undefined ? startUrl : new URL(cookie.url);
  const secure = cookie.secure ?? (cookie.url !== undefined && of.protocol === "https:");
  if (secure && url.protocol !== "https:") return false;
  if (cookie.expires !== undefined && cookie.expires >= 0 && cookie.expires * 1_000 <= now) {
    return false;
  }
  const hostFits =
    cookie.domain === undefined
      ? url.hostname === of.hostname
      : domainMatches(url.hostname, cookie.domain);
  return hostFits && pathMatches(url.pathname, cookie.path ?? defaultPath(cookie, of));
}

function domainMatches(host: string, domain: string): boolean {
  const wanted = domain.replace(/^\./, "").toLowerCase();
  // An IP address has no parent domains.
  return host === wanted || (host.endsWith(`.${wanted}`) && !/^[\d.]+$|^\[/.test(host));
}

/** Returns the default path (section 5.1.4): the folder of the cookie's address. */
function defaultPath({ url }: Cookie, of: URL): string {
  if (url === undefined) return "/";
  const end = of.pathname.lastIndexOf("/");
  return end <= 0 ? "/" : of.pathname.slice(0, end);
}

function pathMatches(path: string, wanted: string): boolean {
  if (path === wanted) return true;
  return path.startsWith(wanted) && (wanted.endsWith("/") || path[wanted.length] === "/");
}
