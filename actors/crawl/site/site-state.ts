/** What is kept of a site. */
import { z } from "zod";
import { ContentSignal } from "../../../schemas/crawl/content-signal.ts";
import { CrawlIntent, RobotsProgress, Scheme } from "../../../schemas/crawl/site.ts";
import { EpochMs, Id } from "../../../schemas/values.ts";
import { Pace } from "./pace-state.ts";

/** What robots.txt says, the rules and sitemaps themselves being in rows. */
export const Policy = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("rules"),
    /** Rows that hold them, and how many rules those are. */
    rows: z.int().min(0),
    rules: z.int().min(0),
    crawlDelayMs: z.int().min(0).optional(),
    contentSignal: ContentSignal,
    /** The file has more than is read or kept. */
    truncated: z.literal(true).optional(),
  }),
  z.object({ kind: z.literal("allow_all"), because: z.string() }),
  z.object({
    kind: z.literal("disallow_all"),
    because: z.string(),
    /** There was no answer over HTTP. */
    unreachable: z.literal(true).optional(),
  }),
]);
export type Policy = z.infer<typeof Policy>;

/** The robots.txt of one scheme. */
export const RobotsFile = z.object({
  /** As it was fetched last; used past its time only when it cannot be fetched anew. */
  policy: Policy.optional(),
  expiresAt: EpochMs,
  /** Somebody asked for it while it was not known, or too old. */
  wanted: z.boolean(),
  /** Under way, in a turn of its own; lost when it is not heard from by then. `begun`: a worker is at it. */
  fetch: z.object({ turn: Id, lostAt: EpochMs, begun: z.boolean().optional() }).optional(),
  /** Where a fetch in an earlier turn came to, and how many were lost on the way. */
  next: RobotsProgress.optional(),
  lost: z.int().min(0).optional(),
  /** The next fetch begins no earlier. */
  notBefore: EpochMs.optional(),
});
export type RobotsFile = z.infer<typeof RobotsFile>;

/** A job that must hear of robots.txt before it has a turn. */
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
  /** Jobs that wait in rows, for one of the others to be done. */
  waiting: z.int().min(0),
  /** When the reminder `look` comes. */
  lookAt: EpochMs.optional(),
});
export type SiteState = z.infer<typeof SiteState>;

/** A part of a robots.txt (`robots.<scheme>.<number>`), or a job that waits (`waiting.<job>`). */
export const SiteRow = z.union([
  z.object({ rules: z.array(z.string()), sitemaps: z.array(z.string()) }),
  Newcomer,
]);
export type SiteRow = z.infer<typeof SiteRow>;
