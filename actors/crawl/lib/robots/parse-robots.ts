/** Reads the part of a robots.txt that concerns one crawler (RFC 9309), with the extensions that sites use. */
import type { ContentSignal } from "../../../../schemas/crawl/content-signal.ts";
import {
  CRAWL_DELAY_MS_MAX,
  CRAWL_URL_CHARS_MAX,
  ROBOTS_BYTES_MAX,
  ROBOTS_SITEMAPS_MAX,
} from "../../../../schemas/crawl/limits.ts";
import type { RobotsRules } from "../../../../schemas/crawl/robots-rules.ts";
import { readContentSignal } from "./read-content-signal.ts";
import { type RobotsRecord, robotsRecords } from "./robots-lines.ts";
import { robotsPatternOf } from "./robots-path.ts";
import { formatRule } from "./robots-rule.ts";

/**
 * Maximum number of rules with a wildcard. Each is matched against every address: 5,000 on 8 KiB take about 0.1 s.
 */
export const ROBOTS_WILDCARDS_MAX = 5_000;

/**
 * Maximum characters of rules and sitemaps that are kept of one file. All rules of a file of 500 KiB fit, even if
 * they are the shortest ones. This many characters fit an actor's state.
 */
export const ROBOTS_KEPT_CHARS_MAX = 700_000;

export interface RobotsReader {
  /** Our product token: the name in the User-Agent header without its version. */
  productToken: string;
  /** Address of the file. Relative sitemaps are resolved against it. */
  url: string;
}

/** Parses a file. Never throws: unknown records are ignored, and bytes past the limit are not read. */
export function parseRobots(bytes: Uint8Array, reader: RobotsReader): RobotsRules {
  const parser = new RobotsParser(reader);
  for (const record of robotsRecords(bytes)) parser.take(record);
  return parser.rules(bytes.length > ROBOTS_BYTES_MAX);
}

/** The records of one group, or of all groups for one agent. */
interface Group {
  rules: Map<string, string>;
  crawlDelayMs?: number;
  contentSignal: ContentSignal;
}

/**
 * Collects the records of two groups: the group of our crawler and the group of `*`. All groups for one agent count
 * as one (section 2.2.1). Only Allow and Disallow end a list of agents; other records belong to the agents named
 * before them (section 2.2.4).
 */
class RobotsParser {
  readonly #reader: RobotsReader;
  readonly #ours = emptyGroup();
  readonly #everyones = emptyGroup();
  /** Signals before the first group apply to all agents. A group's own signals override them. */
  readonly #preamble = emptyGroup();
  readonly #sitemaps = new Set<string>();
  #named = false;
  #inOurs = false;
  #inEveryones = false;
  #agentsEnded = false;
  #anyAgent = false;
  #kept = 0;
  #wildcards = 0;
  #truncated = false;

  constructor(reader: RobotsReader) {
    this.#reader = reader;
  }

  take(record: RobotsRecord): void {
    switch (record.name) {
      case "user-agent":
        this.#takeAgent(record.value);
        break;
      case "allow":
      case "disallow":
        this.#takeRule(record, record.name === "allow");
        break;
      case "sitemap":
        this.#takeSitemap(record.value);
        break;
      case "crawl-delay":
        this.#takeDelay(record.value);
        break;
      case "content-signal":
        this.#takeSignal(record.value);
        break;
      default:
        record.name satisfies never;
    }
  }

  rules(cut: boolean): RobotsRules {
    const group = this.#named ? this.#ours : this.#everyones;
    return {
      rules: [...group.rules.values()],
      ...(group.crawlDelayMs === undefined ? {} : { crawlDelayMs: group.crawlDelayMs }),
      contentSignal: { ...this.#preamble.contentSignal, ...group.contentSignal },
      sitemaps: [...this.#sitemaps],
      truncated: cut || this.#truncated,
    };
  }

  #takeAgent(value: string): void {
    if (this.#agentsEnded) {
      this.#inOurs = false;
      this.#inEveryones = false;
      this.#agentsEnded = false;
    }
    this.#anyAgent = true;
    if (/^\*(?:\s|$)/.test(value)) {
      this.#inEveryones = true;
      return;
    }
    // A product token has no other characters. The rest, such as a version, is not compared.
    const [token = ""] = /^[A-Za-z_-]*/.exec(value) ?? [];
    if (token.toLowerCase() !== this.#reader.productToken.toLowerCase()) return;
    this.#inOurs = true;
    this.#named = true;
  }

  #takeRule({ line, value }: RobotsRecord, allow: boolean): void {
    const group = this.#group();
    // A rule before the first agent applies to nobody.
    if (!this.#anyAgent) return;
    this.#agentsEnded = true;
    if (group === undefined || value === "") return;
    const pattern = this.#affordable(robotsPatternOf(value), allow);
    if (pattern === undefined) return;
    const key = `${allow ? "+" : "-"}${pattern}`;
    if (group.rules.has(key)) return;
    const rule = formatRule({ line, allow, pattern });
    if (this.#fits(rule)) group.rules.set(key, rule);
  }

  /**
   * Limits the number of wildcard rules, because each is matched against every address. Beyond the limit, a Disallow
   * rule is cut before its first wildcard, which forbids more, and an Allow rule is dropped.
   */
  #affordable(pattern: string, allow: boolean): string | undefined {
    const star = pattern.indexOf("*");
    if (star < 0) return pattern;
    this.#wildcards += 1;
    if (this.#wildcards <= ROBOTS_WILDCARDS_MAX) return pattern;
    this.#truncated = true;
    return allow ? undefined : pattern.slice(0, star) || "/";
  }

  #takeSitemap(value: string): void {
    const text = Buffer.from(value, "latin1").toString("utf8");
    const url = URL.parse(text, this.#reader.url);
    if (url === null || !/^https?:$/.test(url.protocol) || url.href.length > CRAWL_URL_CHARS_MAX) {
      return;
    }
    url.hash = "";
    if (this.#sitemaps.has(url.href)) return;
    if (this.#sitemaps.size >= ROBOTS_SITEMAPS_MAX) this.#truncated = true;
    else if (this.#fits(url.href)) this.#sitemaps.add(url.href);
  }

  #takeDelay(value: string): void {
    const group = this.#group();
    const [seconds] = /^(?:\d+(?:\.\d*)?|\.\d+)/.exec(value) ?? [];
    if (group === undefined || seconds === undefined) return;
    const delayMs = Math.min(Math.round(Number(seconds) * 1_000), CRAWL_DELAY_MS_MAX);
    // If a group has two delays, the longer one applies: it is never too short.
    group.crawlDelayMs = Math.max(delayMs, group.crawlDelayMs ?? 0);
  }

  #takeSignal(value: string): void {
    const group = this.#anyAgent ? this.#group() : this.#preamble;
    if (group !== undefined) Object.assign(group.contentSignal, readContentSignal(value));
  }

  /**
   * Returns the group to which the current records belong. If the current list of agents names our crawler and `*`,
   * this is our group.
   */
  #group(): Group | undefined {
    if (this.#inOurs) return this.#ours;
    return this.#inEveryones ? this.#everyones : undefined;
  }

  #fits(text: string): boolean {
    // Quotes and the comma. JSON escapes no character of the text itself.
    this.#kept += text.length + 3;
    if (this.#kept <= ROBOTS_KEPT_CHARS_MAX) return true;
    this.#truncated = true;
    return false;
  }
}

function emptyGroup(): Group {
  return { rules: new Map(), contentSignal: {} };
}
