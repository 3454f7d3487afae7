/** Work for those who fetch: the requests of a turn at a host, a robots.txt, data out of a page. */
import { z } from "zod";
import { defineTasks } from "../contract.ts";
import { Id } from "../values.ts";
import { CRAWL_URL_CHARS_MAX, TURN_REQUESTS_MAX } from "./limits.ts";
import { RobotsProgress, Scheme } from "./site.ts";

const Url = z.string().min(1).max(CRAWL_URL_CHARS_MAX);

/** One request of a turn. What shapes the page (parameters, formats, headers) is in the job's request, kept as a blob. */
export const TurnRequest = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("page"),
    /** Position of its record among the job's. */
    index: z.int().min(0),
    url: Url,
    /** 1 at the first try. */
    attempt: z.int().min(1),
    /** What ended its last try may have been another page beside it: it is the turn's only request, in a browser of its own. */
    alone: z.literal(true).optional(),
  }),
  z.object({
    type: z.literal("sitemap"),
    url: Url,
    /** 0 of a file robots.txt names, 1 of one that an index names. */
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
  messages: {
    /** Makes a turn's requests by HTTP alone. The job hears `turnReported` as pages come in, and `turnEnded` where that is not all. */
    fetchTurn: { lane: "fetch", input: Turn },
    /** The same in a browser, one context for a job and worker. */
    renderTurn: { lane: "browser", input: Turn },
    /** Fetches a robots.txt in a turn of the site's own; the site hears `robotsFetched`, or `robotsPaused`. */
    robots: {
      lane: "robots",
      input: z.object({
        host: z.string().min(1),
        scheme: Scheme,
        turn: Id,
        /** Where an earlier turn left it. */
        from: RobotsProgress.optional(),
      }),
    },
    /** Removes all blobs of a job whose results are kept no longer, or its request once it has ended; nobody hears of it. */
    purge: {
      lane: "purge",
      input: z.object({ job: Id, only: z.literal("request").optional() }),
    },
    /** Asks an AI model for the data of a page that has been fetched; the job hears `jsonExtracted`. */
    json: {
      lane: "json",
      input: z.object({
        account: Id,
        job: Id,
        index: z.int().min(0),
        url: Url,
        /** The outcome's `jsonSource`. */
        blob: z.string(),
      }),
    },
  },
});
