/** A minimal crawl for tests of sites: a job that requests turns, and workers that make one request in each turn. */
import { setTimeout as pause } from "node:timers/promises";
import { z } from "zod";
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { defineActor } from "../../actors/runtime/kinds/define-actor.ts";
import { defineWorker } from "../../actors/runtime/workers/define-worker.ts";
import { defineContract, envelope } from "../../schemas/contract.ts";
import { crawlJob } from "../../schemas/crawl/crawl-job.ts";
import { crawlPage } from "../../schemas/crawl/crawl-page.ts";
import { TURN_LATE_MS } from "../../schemas/crawl/limits.ts";
import { type CrawlIntent, type RobotsOutcome, site } from "../../schemas/crawl/site.ts";
import { Id } from "../../schemas/values.ts";

const INTENT: CrawlIntent = { purposes: ["search"] };
const Nothing = z.object({});

/**
 * An actor with the kind of the job actor, to which sites send messages. Its contract has only the messages that
 * sites use.
 */
export const turnTaker = defineContract({
  kind: crawlJob.kind,
  messages: {
    begin: {
      input: z.object({ account: Id, host: z.string(), wants: z.int() }),
      reply: Nothing,
    },
    robotsLearned: { input: crawlJob.messages.robotsLearned.input },
    turnGranted: { input: crawlJob.messages.turnGranted.input },
    turnEnded: { input: crawlJob.messages.turnEnded.input },
  },
});

export const turnTakerActor = defineActor(turnTaker, {
  state: z.object({ account: z.string(), queued: z.int(), turns: z.int() }),
  initial: { account: "", queued: 0, turns: 0 },
  handlers: {
    begin(_state, { account, host, wants }, { key }) {
      const tell = [{ scheme: "http" as const, intent: INTENT }];
      const want = envelope(site, host, "want", { account, job: key, wants, tell });
      return { state: { account, queued: wants, turns: 0 }, send: [want], reply: {} };
    },
    robotsLearned: (state) => ({ state }),
    turnGranted(state, { host, turn }, { key }) {
      if (state.queued === 0)
        return { state, send: [envelope(site, host, "turnFinished", { turn })] };
      const url = `http://${host}/${key}/${state.turns}`;
      const task = envelope(crawlPage, state.account, "fetchTurn", {
        ...{ account: state.account, job: key, host, turn },
        requests: [{ type: "page", index: state.turns, url, attempt: 1 }],
      });
      return {
        state: { ...state, queued: state.queued - 1, turns: state.turns + 1 },
        send: [task],
      };
    },
    turnEnded(state, { host }, { key }) {
      const queued = state.queued + 1;
      const want = { account: state.account, job: key, wants: queued, tell: [] };
      return { state: { ...state, queued }, send: [envelope(site, host, "want", want)] };
    },
  },
});

/**
 * Makes requests in the turns that the site grants. Calls `visited` with the time at which each request left and the
 * earliest permitted time, by a clock that all workers share.
 */
export function turnWorker(
  client: ActorClient,
  {
    outcome,
    visited,
  }: { outcome: RobotsOutcome; visited: (url: string, at: number, grantedAt: number) => void },
) {
  return defineWorker(crawlPage, {
    slots: { fetch: 4, robots: 1 },
    handlers: {
      async fetchTurn({ host, job, turn, requests }) {
        const [request] = requests;
        if (!request) throw new Error("a turn without a request");
        const made = await takeTurn(host, turn, request.url);
        const ended = envelope(crawlJob, job, "turnEnded", { host, turn });
        return { send: made ? [envelope(site, host, "turnFinished", { turn })] : [ended] };
      },
      async robots({ host, scheme, turn }) {
        await takeTurn(host, turn, `${scheme}://${host}/robots.txt`);
        const fetched = envelope(site, host, "robotsFetched", { scheme, turn, outcome });
        return { send: [fetched, envelope(site, host, "turnFinished", { turn })] };
      },
      renderTurn: refuse,
      json: refuse,
      purge: refuse,
    },
    failures: {
      fetchTurn: () => [],
      renderTurn: () => [],
      robots: () => [],
      json: () => [],
      purge: () => [],
    },
  });

  async function takeTurn(host: string, turn: string, url: string): Promise<boolean> {
    for (;;) {
      const askedAt = performance.now();
      const told = await client.call(site, host, "begin", { turn, urls: [url], intent: INTENT });
      if (told.state === "gone") return false;
      if (told.state === "wait") {
        await pause(told.askAgainInMs);
        continue;
      }
      const startAt = performance.now() + told.waitMs;
      // A timer may fire a little early.
      while (performance.now() < startAt) await pause(Math.ceil(startAt - performance.now()));
      const at = performance.now();
      if (at > askedAt + told.waitMs + TURN_LATE_MS) continue;
      const left = fetch(url);
      visited(url, at, askedAt + told.waitMs);
      const lateMs = Math.ceil(Math.max(0, performance.now() - askedAt - told.waitMs));
      await client.call(site, host, "requestStarted", { turn, lateMs });
      await (await left).arrayBuffer();
      return true;
    }
  }
}

function refuse(): never {
  throw new Error("this worker only takes turns");
}
