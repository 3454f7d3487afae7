/** The crawl worker: fetches a turn's pages and sitemaps, fetches robots.txt, and extracts data from pages. */
import { type Envelope, envelope } from "../../../../schemas/contract.ts";
import { crawlPage, type Turn } from "../../../../schemas/crawl/crawl-page.ts";
import { site } from "../../../../schemas/crawl/site.ts";
import { ActorError, isPassing } from "../../../../schemas/errors.ts";
import { BrowserNotStartedError } from "../../../rendering/lib/browser/browser-died-error.ts";
import { RequestKeyNotOpened } from "../../../rendering/lib/request-keys/request-keys.ts";
import type { BlobStore } from "../../../runtime/store/blob-store.ts";
import { defineWorker, type TaskContext } from "../../../runtime/workers/define-worker.ts";
import type { TurnLimits } from "../../../runtime/workers/task-turns.ts";
import { fetchRobots, type RobotsFetchParts } from "./fetch-robots.ts";
import { type JsonTaskParts, jsonFailure, jsonTask } from "./json-task.ts";
import { turnEnded, turnFinished, turnLost } from "./turn-messages.ts";
import { type TurnWalkParts, walkTurn } from "./walk-turn.ts";

interface CrawlPageParts {
  /** The limits of the lanes that the worker serves. */
  lanes: Record<string, TurnLimits>;
  fetch: TurnWalkParts;
  browser: TurnWalkParts;
  robots: RobotsFetchParts;
  json: JsonTaskParts;
  blobs: Pick<BlobStore, "removeAll">;
}

export function crawlPageWorker(parts: CrawlPageParts) {
  const slots = Object.entries(parts.lanes).map(([lane, { places }]) => [lane, places]);
  return defineWorker(crawlPage, {
    slots: Object.fromEntries(slots),
    turns: parts.lanes,
    handlers: {
      fetchTurn: (turn, context) => walk(parts.fetch, turn, context),
      renderTurn: (turn, context) => walk(parts.browser, turn, context),
      async robots(task, context) {
        // The first worker may still be running, and a turn belongs to one worker. The site grants another turn.
        if (context.attempt > 1) return { send: [turnLost(task)] };
        return { send: await fetchRobots(parts.robots, task, context) };
      },
      async purge({ job, only }) {
        const removed = only === undefined ? `crawl.${job}` : `crawl.${job}.${only}`;
        // Any failure is retried later.
        await parts.blobs.removeAll(removed).catch((cause: unknown) => {
          throw new Error(`Cannot remove the blobs of ${job}`, { cause });
        });
        return {};
      },
      json: jsonTask(parts.json),
    },
    failures: {
      fetchTurn: abandonTurn,
      renderTurn: abandonTurn,
      robots: ({ host, scheme, turn }, { message: because }) => [
        envelope(site, host, "robotsFetched", {
          ...{ scheme, turn, outcome: { kind: "disallow_all", because } },
        }),
      ],
      // The task sends itself again, because otherwise the blobs would never be removed.
      purge: (purge, _error, { key }) => [envelope(crawlPage, key, "purge", purge)],
      json: jsonFailure,
    },
  });
}

async function walk(parts: TurnWalkParts, turn: Turn, context: TaskContext) {
  if (context.attempt > 1) {
    // The earlier attempt has reported its pages, or lost them with its worker. This attempt fetches nothing; the job
    // requeues the unreported pages.
    return { send: abandonTurn(turn, { message: "Cannot finish turn: its worker stopped in it" }) };
  }
  const walked = await walkTurn(parts, turn, context).catch((error: unknown) => {
    return { unsent: [], isReported: false, failure: { error } };
  });
  const { unsent, isReported, failure } = walked;
  if (failure === undefined) return { send: isReported ? unsent : [...unsent, turnEnded(turn)] };
  const fault = lastingFault(failure.error);
  if (fault !== undefined || wasUnavailable(failure.error)) {
    const ended = turnEnded(turn, fault === undefined ? {} : { fault });
    return { send: [...unsent, turnFinished(turn), ended] };
  }
  // The next attempt cannot send these.
  await context.send(unsent);
  throw failure.error;
}

/**
 * Returns the description of a fault of this platform that the next turn would probably meet too; undefined for other
 * errors.
 */
function lastingFault(error: unknown): string | undefined {
  if (error instanceof BrowserNotStartedError) return "no browser could be started";
  if (error instanceof RequestKeyNotOpened) {
    return "no host of actors could open the stored request, see the log of the role actors";
  }
  const isFull = error instanceof ActorError && error.code === "storage_full";
  return isFull ? "the store has no room for what was fetched" : undefined;
}

/** Whether the bus or an actor was unavailable, which is no page's fault. */
function wasUnavailable(error: unknown): boolean {
  return isPassing(error instanceof Error && !(error instanceof ActorError) ? error.cause : error);
}

function abandonTurn(turn: Turn, { message }: { message: string }): Envelope[] {
  return [turnLost(turn), turnEnded(turn, { failed: message })];
}
