/** The contract of a site: what its robots.txt says, and whose turn it is to ask it. The key is its host, with the port where it is not the scheme's own. */
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

/** Each scheme has a robots.txt of its own (RFC 9309, section 2.3), but they share the host's pace. */
export const Scheme = z.enum(["http", "https"]);
export type Scheme = z.infer<typeof Scheme>;

/** What a crawl is for, to be held against a site's content signal. */
export const CrawlIntent = z.object({
  purposes: z.array(CrawlPurpose).min(1),
  /** Without one a crawl may do anything with what it finds, as in the public API. */
  contentUse: ContentUse.exclude(["immediate"]).optional(),
});
export type CrawlIntent = z.infer<typeof CrawlIntent>;

const Url = z.string().min(1).max(CRAWL_URL_CHARS_MAX);
const Reason = z.string().min(1);
/** Nothing was forbidden: the host gave no answer over HTTP when it was asked for its robots.txt. */
const unreachable = z.literal(true).optional();
/** Which of a turn's requests, where they are made one after the other: the first is 0. Without it there is but one. */
const nth = z.int().min(0).max(TURN_REQUESTS_MAX).optional();

/** May a crawl have this address, and for a record's `reason` why not. */
export const PageVerdict = z.discriminatedUnion("allowed", [
  z.object({ allowed: z.literal(true) }),
  z.object({ allowed: z.literal(false), reason: Reason, unreachable }),
]);
export type PageVerdict = z.infer<typeof PageVerdict>;

/** How a fetch of robots.txt ended, after redirects were followed and tries were made. */
export const RobotsOutcome = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("rules"), rules: RobotsRules }),
  z.object({ kind: z.literal("allow_all"), because: Reason }),
  z.object({ kind: z.literal("disallow_all"), because: Reason, unreachable }),
]);
export type RobotsOutcome = z.infer<typeof RobotsOutcome>;

/** How far a fetch of robots.txt has come: where its next request goes, after how many redirects, in which try. */
export const RobotsProgress = z.object({
  url: Url,
  hops: z.int().min(0).max(ROBOTS_REDIRECTS_MAX),
  attempt: z.int().min(1).max(ROBOTS_TRIES_MAX),
});
export type RobotsProgress = z.infer<typeof RobotsProgress>;

export const site = defineContract({
  kind: "site",
  /** Shown when a robots.txt has become known; nothing is said of what it says. */
  live: z.object({}),
  messages: {
    /**
     * What robots.txt says to a crawl that would start here. While it is not known a fetch is under way: the site
     * speaks on its live subject once it is, and can then be asked again.
     */
    consult: {
      input: z.object({ scheme: Scheme, intent: CrawlIntent }),
      reply: z.discriminatedUnion("known", [
        z.object({ known: z.literal(false) }),
        z.object({
          known: z.literal(true),
          /** The content signal forbids the crawl as a whole. */
          refusal: Reason.optional(),
        }),
      ]),
    },
    /**
     * A job has so many requests to make here; it replaces what it wanted before, and 0 takes it off the list. The
     * job hears `robotsLearned` when it wants something of a scheme for the first time, and `turnGranted` for each turn.
     */
    want: {
      input: z.object({
        account: Id,
        job: Id,
        wants: z.int().min(0),
        /** Schemes of which the job was not told yet. */
        tell: z.array(z.object({ scheme: Scheme, intent: CrawlIntent })).max(2),
      }),
    },
    /**
     * A worker holds a turn and is ready to make its requests: it is told to go, to ask again later, or that the turn
     * is gone. Each address is judged anew; when none is allowed the turn is over and takes no place in time.
     *
     * At a host with a delay a request may leave from `waitMs` after the answer came until `waitMs` + TURN_LATE_MS after
     * it was asked for, and at no other time. Who is late asks again, and makes no use of what it was told before: also
     * who began to connect and takes long, which goes on when it is told to go without a wait. A redirect's next
     * request at the same host is asked for in the same turn. Every turn ends TURN_MS_MAX after its last `go`.
     *
     * There a turn's requests are made one after the other, until another job wants some: the first is asked for with all of
     * them, each other one alone and by its number, once the site has heard that the one before has left; and each is
     * finished by itself.
     */
    begin: {
      input: z.object({
        turn: Id,
        nth,
        urls: z.array(Url).min(1).max(TURN_REQUESTS_MAX),
        intent: CrawlIntent,
        /** Who asks: a task may be with two workers, and the turn is the first one's. To another it is gone. */
        by: Id.optional(),
      }),
      reply: z.discriminatedUnion("state", [
        z.object({ state: z.literal("gone") }),
        z.object({ state: z.literal("wait"), askAgainInMs: z.int().min(0) }),
        z.object({
          state: z.literal("go"),
          /** To be waited, by the worker's own clock, before the first request starts. */
          waitMs: z.int().min(0),
          atOnce: z.int().min(1).max(HOST_REQUESTS_IN_FLIGHT_MAX),
          /** The host has a delay: this is the moment of the first request that is allowed. */
          spaced: z.literal(true).optional(),
          /** When this was answered, and by which clock: a worker that has the same knows from when it is to wait. */
          told: z.object({ at: EpochMs, clock: z.string() }).optional(),
          /** In the order of the addresses. */
          verdicts: z.array(PageVerdict),
        }),
      ]),
    },
    /**
     * What robots.txt says of these addresses, for a crawl that needs no request to have them. No verdicts while it is
     * not known, which changes nothing: who begins a turn has it fetched.
     */
    judge: {
      input: z.object({
        urls: z.array(Url).min(1).max(TURN_REQUESTS_MAX),
        intent: CrawlIntent,
      }),
      reply: z.object({ verdicts: z.array(PageVerdict).optional() }),
    },
    /**
     * A worker that follows a robots.txt's redirect to this host takes a turn for that one request, under an id it made;
     * it begins and finishes like any other, ahead of them.
     */
    visit: { input: z.object({ turn: Id }), reply: z.object({}) },
    /** The turn's request has left: the next one's delay counts from here. Only hosts with a delay need to hear it. */
    requestStarted: {
      input: z.object({
        turn: Id,
        nth,
        /** One more has left for the turn's request: its browser sent it once more by itself. */
        again: z.boolean().optional(),
        /** By how much at most it left after the moment it was told, counted from when its worker asked for that. */
        lateMs: z.int().min(0).optional(),
      }),
      reply: z.object({}),
    },
    /** The worker has made the turn's requests, or gives it back. */
    turnFinished: {
      input: z.object({
        turn: Id,
        /** The host asked to be left alone for so long (429, 503 and Retry-After); 0 where it did not say how long. */
        awayMs: z.int().min(0).optional(),
        /** This request alone is over; without it all are that the turn has left. */
        nth,
        /** It is given back by another than its worker, which may be at it still: a request it was told to make may leave. */
        lost: z.boolean().optional(),
      }),
    },
    robotsFetched: { input: z.object({ scheme: Scheme, turn: Id, outcome: RobotsOutcome }) },
    /** The next request is too far off for a worker to wait: the fetch goes on from there in another turn. */
    robotsPaused: {
      input: z.object({
        scheme: Scheme,
        turn: Id,
        next: RobotsProgress,
        /** Not before so long: another host, to which it is redirected, asked to be left alone. */
        waitMs: z.int().min(0).optional(),
      }),
    },
    /** Reminder: a turn is overdue or lost, a robots.txt has to be fetched. */
    look: { input: z.object({}) },
  },
});
