/**
 * Messages of the actor site: it knows the robots.txt of one host, and decides who may send the next request to the
 * host. The key is the host, with the port unless it is the default.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { EpochMs, Id } from "../values.ts";
import { ContentUse, CrawlPurpose } from "./content-signal.ts";
import {
  CRAWL_URL_CHARS_MAX,
  HOST_REQUESTS_IN_FLIGHT_MAX,
  ROBOTS_REDIRECTS_MAX,
  ROBOTS_TRIES_MAX,
  TURN_REQUESTS_MAX,
} from "./limits.ts";
import { RobotsRules } from "./robots-rules.ts";

/** Each scheme has its own robots.txt (RFC 9309, section 2.3). Both share the host's pace. */
export const Scheme = z.enum(["http", "https"]);
export type Scheme = z.infer<typeof Scheme>;

/** The purpose of a crawl. A site's content signal allows or forbids it. */
export const CrawlIntent = z.object({
  purposes: z.array(CrawlPurpose).min(1),
  /** How the crawl will use the content. Without this field it counts as `full`, as in the public API. */
  contentUse: ContentUse.exclude(["immediate"]).optional(),
});
export type CrawlIntent = z.infer<typeof CrawlIntent>;

const Url = z.string().min(1).max(CRAWL_URL_CHARS_MAX);
const Reason = z.string().min(1);
/** robots.txt did not forbid the page: the host did not respond to the request for its robots.txt. */
const unreachable = z.literal(true).optional();
/**
 * The number of a request within its turn, where a turn makes its requests one after another. The first is 0. A turn
 * without numbers has one request.
 */
const nth = z.int().min(0).max(TURN_REQUESTS_MAX).optional();

/** Whether a crawl may fetch an address; `reason` explains a refusal in the record. */
export const PageVerdict = z.discriminatedUnion("allowed", [
  z.object({ allowed: z.literal(true) }),
  z.object({ allowed: z.literal(false), reason: Reason, unreachable }),
]);
export type PageVerdict = z.infer<typeof PageVerdict>;

/** The result of a robots.txt fetch, after redirects and retries. */
export const RobotsOutcome = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("rules"), rules: RobotsRules }),
  z.object({ kind: z.literal("allow_all"), because: Reason }),
  z.object({ kind: z.literal("disallow_all"), because: Reason, unreachable }),
]);
export type RobotsOutcome = z.infer<typeof RobotsOutcome>;

/** The progress of a robots.txt fetch: the address of its next request, the redirects so far, and the attempt. */
export const RobotsProgress = z.object({
  url: Url,
  hops: z.int().min(0).max(ROBOTS_REDIRECTS_MAX),
  attempt: z.int().min(1).max(ROBOTS_TRIES_MAX),
  /** Number of turns in a row in which the lookup of the host's name could not start, or that no worker has begun. */
  waits: z.int().min(1).optional(),
});
export type RobotsProgress = z.infer<typeof RobotsProgress>;

/** Returns the progress of a fetch that begins. */
export const firstProgress = (host: string, scheme: Scheme): RobotsProgress => ({
  ...{ url: `${scheme}://${host}/robots.txt`, hops: 0, attempt: 1 },
});

export const site = defineContract({
  kind: "site",
  isShared: true,
  /** Published when the site has learned a robots.txt. The message does not contain the file. */
  live: z.object({}),
  messages: {
    /**
     * Returns whether the content signal in robots.txt allows a crawl that starts at this host. If the file is
     * unknown, the site fetches it and publishes a live message when it has the file. Then the caller must call
     * again.
     */
    consult: {
      input: z.object({
        scheme: Scheme,
        intent: CrawlIntent,
        /** The account of the crawl. A fetch that begins counts for it. */
        account: Id.optional(),
      }),
      reply: z.discriminatedUnion("known", [
        z.object({ known: z.literal(false) }),
        z.object({
          known: z.literal(true),
          /** Present where the content signal forbids the whole crawl. */
          refusal: Reason.optional(),
        }),
      ]),
    },
    /**
     * Sets the number of requests that a job wants at this host, in place of the number before. 0 removes the job.
     * The site sends `robotsLearned` for each scheme in `tell`, and `turnGranted` for each turn.
     */
    want: {
      input: z.object({
        account: Id,
        job: Id,
        wants: z.int().min(0),
        /** Schemes whose robots.txt the job has not received yet. */
        tell: z.array(z.object({ scheme: Scheme, intent: CrawlIntent })).max(2),
      }),
    },
    /**
     * Asks when the next request of a turn may leave. The reply is `go`, `wait` (call again later), or `gone` (the
     * turn has ended). The site judges every address again. If none is allowed, the turn ends and no time of the host
     * is used. At a host with a delay, a request must leave between `waitMs` after the reply arrived and `waitMs` +
     * TURN_LATE_MS after the call. A worker that is late must not send the request; it calls again and ignores the
     * earlier reply. A worker that is still connecting may continue if the new reply is `go` without a wait. For a
     * redirect within the host, the worker calls again in the same turn. A turn ends TURN_MS_MAX after its last `go`.
     * A turn with several requests makes them one after another, until another job wants requests. The first call
     * names all addresses. Each later call names one request and its number, after the site has recorded that the
     * request before has left. The end of each request is reported separately.
     */
    begin: {
      input: z.object({
        turn: Id,
        nth,
        urls: z.array(Url).min(1).max(TURN_REQUESTS_MAX),
        intent: CrawlIntent,
        /**
         * Id of the caller. Two workers may have the same task. The turn belongs to the worker that calls first; the
         * other gets the reply `gone`.
         */
        by: Id.optional(),
      }),
      reply: z.discriminatedUnion("state", [
        z.object({ state: z.literal("gone") }),
        z.object({ state: z.literal("wait"), askAgainInMs: z.int().min(0) }),
        z.object({
          state: z.literal("go"),
          /** Wait before the first request, by the worker's own clock. */
          waitMs: z.int().min(0),
          atOnce: z.int().min(1).max(HOST_REQUESTS_IN_FLIGHT_MAX),
          /** Present if the host has a delay. `waitMs` is then only for the first allowed request. */
          spaced: z.literal(true).optional(),
          /**
           * The time of this reply and the id of the clock that showed it. A worker that has the same clock counts
           * the wait from this time.
           */
          told: z.object({ at: EpochMs, clock: z.string() }).optional(),
          /** Verdicts in the order of the addresses. */
          verdicts: z.array(PageVerdict),
        }),
      ]),
    },
    /**
     * Returns verdicts for pages that a crawl may take from the cache. If the robots.txt is unknown, there are no
     * verdicts, and no fetch begins; the next turn starts the fetch.
     */
    judge: {
      input: z.object({
        urls: z.array(Url).min(1).max(TURN_REQUESTS_MAX),
        intent: CrawlIntent,
      }),
      reply: z.object({ verdicts: z.array(PageVerdict).optional() }),
    },
    /**
     * Creates a turn for one robots.txt request that another host redirects to this host. Such turns and the turns of
     * jobs alternate. The worker makes the turn's id. If too many such turns are open, none is created, and `begin`
     * replies `gone`.
     */
    visit: { input: z.object({ turn: Id }), reply: z.object({}) },
    /**
     * Reports that a request has left. The delay before the next request counts from its departure. Needed only at
     * hosts with a delay.
     */
    requestStarted: {
      input: z.object({
        turn: Id,
        nth,
        /** One more request was sent for the same address, for example because the browser repeated it. */
        again: z.boolean().optional(),
        /**
         * Upper bound of the time between the request's start time and its departure. The start time is counted from
         * the worker's call.
         */
        lateMs: z.int().min(0).optional(),
      }),
      reply: z.object({}),
    },
    /** Reports that the worker has made the turn's requests or returns the turn. */
    turnFinished: {
      input: z.object({
        turn: Id,
        /** Pause that the host asked for (429 or 503, Retry-After), in milliseconds; 0 where it named no time. */
        awayMs: z.int().min(0).optional(),
        /** Ends only this request. Without it all remaining requests of the turn end. */
        nth,
        /** Another process returns the turn. Its worker may still send a request that it was allowed to make. */
        lost: z.boolean().optional(),
      }),
    },
    robotsFetched: { input: z.object({ scheme: Scheme, turn: Id, outcome: RobotsOutcome }) },
    /**
     * The next request of the fetch is too far in the future for a worker to wait, a host asked for a pause, or no
     * lookup of the host's name could start. The fetch continues in another turn.
     */
    robotsPaused: {
      input: z.object({
        scheme: Scheme,
        turn: Id,
        next: RobotsProgress,
        /** Wait before the next turn: the host of a redirect asked for a pause, or no lookup could start. */
        waitMs: z.int().min(0).optional(),
      }),
    },
    /** Reminder for overdue or lost turns and for robots.txt files to fetch. */
    look: { input: z.object({}) },
  },
});
