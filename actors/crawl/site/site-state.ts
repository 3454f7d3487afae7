/** The stored state of a site. */
import { z } from "zod";
import { ContentSignal } from "../../../schemas/crawl/content-signal.ts";
import { CrawlIntent, RobotsProgress, Scheme } from "../../../schemas/crawl/site.ts";
import { EpochMs, Id } from "../../../schemas/values.ts";
import { Steady } from "../../runtime/lib/steady-clock.ts";
import { Pace } from "./pace-state.ts";

/** The policy of a robots.txt. Its rules and sitemaps are in rows. */
export const Policy = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("rules"),
    /** The number of rows, and the number of rules in them. */
    rows: z.int().min(0),
    rules: z.int().min(0),
    crawlDelayMs: z.int().min(0).optional(),
    contentSignal: ContentSignal,
    /** The file is longer than the limit. */
    truncated: z.literal(true).optional(),
  }),
  z.object({ kind: z.literal("allow_all"), because: z.string() }),
  z.object({
    kind: z.literal("disallow_all"),
    because: z.string(),
    /** The host did not respond over HTTP. */
    unreachable: z.literal(true).optional(),
  }),
]);
export type Policy = z.infer<typeof Policy>;

/** Lifetime of a robots.txt (RFC 9309, section 2.4). */
export const ROBOTS_KEPT_MS = 24 * 3_600_000;

/** The robots.txt of one scheme. */
export const RobotsFile = z.object({
  /** The last fetched policy. It is used after its expiry only while it cannot be fetched anew. */
  policy: Policy.optional(),
  expiresAt: EpochMs,
  /** A job needed the file while it was unknown or expired. */
  wanted: z.boolean(),
  /** The account that needed the file first. */
  account: Id.optional(),
  /** The running fetch and its turn. Without a report by `lostAt` it is lost. `begun`: a worker has begun. */
  fetch: z.object({ turn: Id, lostAt: EpochMs, begun: z.boolean().optional() }).optional(),
  /** The progress of earlier turns, and the number of lost fetches. */
  next: RobotsProgress.optional(),
  lost: z.int().min(0).optional(),
  /** The next fetch starts no earlier. */
  notBefore: EpochMs.optional(),
});
export type RobotsFile = z.infer<typeof RobotsFile>;

/** A job that waits for a robots.txt, or in a row for a free place. If it gets turns already, `wants` is 0 here. */
export const Newcomer = z.object({
  account: Id,
  job: Id,
  wants: z.int().min(0),
  tell: z.array(z.object({ scheme: Scheme, intent: CrawlIntent })),
});
export type Newcomer = z.infer<typeof Newcomer>;

export const SiteState = z.object({
  pace: Pace,
  robots: z.object({ http: RobotsFile.optional(), https: RobotsFile.optional() }),
  newcomers: z.array(Newcomer),
  /** Number of jobs that wait in rows for a free place. */
  waiting: z.int().min(0),
  /** Time of the reminder `look`. */
  lookAt: EpochMs.optional(),
  /** Tells whether the time of day was set after the other times were stored. */
  clock: Steady.optional(),
});
export type SiteState = z.infer<typeof SiteState>;

/** A part of a robots.txt (`robots.<scheme>.<number>`), or a waiting job (`waiting.<job>`). */
export const SiteRow = z.union([
  z.object({ rules: z.array(z.string()), sitemaps: z.array(z.string()) }),
  Newcomer,
]);
export type SiteRow = z.infer<typeof SiteRow>;
