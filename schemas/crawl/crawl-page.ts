/**
 * Tasks of the crawl worker: the requests of a turn, a robots.txt, the data of a page, and removal of blobs. The key of
 * a task is the account for which it is done, and accounts take turns in each lane.
 */
import { z } from "zod";
import { defineTasks } from "../contract.ts";
import { Id } from "../values.ts";
import { CRAWL_URL_CHARS_MAX, TURN_REQUESTS_MAX } from "./limits.ts";
import { RobotsProgress, Scheme } from "./site.ts";

const Url = z.string().min(1).max(CRAWL_URL_CHARS_MAX);

/** One request of a turn. The parameters, formats and headers are in the job's request, which is a blob. */
export const TurnRequest = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("page"),
    /** Index of the page's record in the job. */
    index: z.int().min(0),
    url: Url,
    /** The attempt, from 1. */
    attempt: z.int().min(1),
    /**
     * The turn or the browser of the last attempt broke off, perhaps because of another page. So this page is the
     * only request of its turn and has a browser of its own.
     */
    alone: z.literal(true).optional(),
  }),
  z.object({
    type: z.literal("sitemap"),
    url: Url,
    /** Levels of indexes and redirects above the sitemap: 0 for a file that robots.txt names. */
    nesting: z.int().min(0),
    attempt: z.int().min(1),
  }),
]);
export type TurnRequest = z.infer<typeof TurnRequest>;

const Turn = z.object({
  account: Id,
  job: Id,
  host: z.string().min(1),
  turn: Id,
  requests: z.array(TurnRequest).min(1).max(TURN_REQUESTS_MAX),
});
export type Turn = z.infer<typeof Turn>;

export const crawlPage = defineTasks({
  kind: "crawl-page",
  lanes: ["fetch", "browser", "robots", "json", "purge"],
  inTurns: true,
  messages: {
    /**
     * Makes a turn's requests by HTTP. The job gets `turnReported` while pages arrive, and `turnEnded` if some were
     * not reported.
     */
    fetchTurn: { lane: "fetch", input: Turn },
    /** Makes a turn's requests in a browser, in one context per job and worker. */
    renderTurn: { lane: "browser", input: Turn },
    /** Fetches a robots.txt in a turn of the site's own. The site gets `robotsFetched` or `robotsPaused`. */
    robots: {
      lane: "robots",
      input: z.object({
        host: z.string().min(1),
        scheme: Scheme,
        turn: Id,
        /** An account that needs the file. The lookup of the host's name counts for it. */
        account: Id.optional(),
        /** Progress of an earlier turn. */
        from: RobotsProgress.optional(),
      }),
    },
    /** Removes all blobs of an expired job, or only the request of an ended one. Nobody is notified. */
    purge: {
      lane: "purge",
      input: z.object({ job: Id, only: z.literal("request").optional() }),
    },
    /** Asks an AI model for the data of a fetched page. The job gets `jsonExtracted`. */
    json: {
      lane: "json",
      input: z.object({
        account: Id,
        job: Id,
        index: z.int().min(0),
        url: Url,
        /** The blob that the page's outcome named as `jsonSource`. */
        blob: z.string(),
      }),
    },
  },
});
