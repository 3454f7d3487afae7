import { expect } from "chai";
import { crawlPage } from "../../../schemas/crawl/crawl-page.ts";
import { CRAWL_DELAY_MS } from "../../../schemas/crawl/limits.ts";
import type { RobotsOutcome } from "../../../schemas/crawl/site.ts";
import { addressOf, STREAMS, shardOf } from "../../../schemas/subjects.ts";
import { ActorProcess } from "../../../scripts/testing/actor-process.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { startHttpServer } from "../../../scripts/testing/loopback-server.ts";
import { rulesOutcome } from "../../../scripts/testing/site-driver.ts";
import { turnTaker, turnTakerActor, turnWorker } from "../../../scripts/testing/turn-taker.ts";
import { until } from "../../../scripts/testing/until.ts";
import { siteActor } from "./site.ts";

const REQUESTS = 30;
/** Number of requests in the run that kills the actor host of the site. */
const LONG_REQUESTS = 99;
/** Factor by which a busy machine may prolong the whole run. */
const BUSY = 1.25;
/** The runtime promises a replacement within this time. */
const TAKEOVER_MS_MAX = 5_000;

interface Start {
  at: number;
  grantedAt: number;
}

describe("site on the bus", function () {
  this.timeout(200_000);

  it("two workers of three jobs keep the delay: no request is early, and most are at most 5 % late", async () => {
    await using world = await startWorld({
      definitions: [siteActor, turnTakerActor],
      tasks: [crawlPage],
    });
    await world.host();
    await using server = await startHttpServer((_request, response) => void response.end("page"));
    const starts = await crawl(world, `${server.address}:${server.port}`, {
      requests: REQUESTS,
      outcome: rulesOutcome(),
    });
    expectPaced(starts);
    expect(pacedMs(starts)).to.be.at.most(REQUESTS * CRAWL_DELAY_MS * BUSY);
  });

  it("two workers keep the delay when the site's host is killed, and pause only until it is replaced", async () => {
    await using world = await startWorld({ tasks: [crawlPage] });
    await using server = await startHttpServer((_request, response) => void response.end("page"));
    const host = `${server.address}:${server.port}`;
    const processes = ["one", "two"].map((name) => new ActorProcess({ url: world.url, name }));
    try {
      await Promise.all(processes.map(({ ready }) => ready));
      let killed = false;
      const starts = await crawl(world, host, {
        requests: LONG_REQUESTS,
        outcome: rulesOutcome(),
        async onStart(count) {
          if (killed || count < LONG_REQUESTS / 2) return;
          killed = true;
          const owner = await ownerOf(world, host);
          await processes.find(({ name }) => owner?.startsWith(name))?.kill();
        },
      });
      expect(killed).to.equal(true);
      expectPaced(starts);
      // Each page and robots.txt is requested once. A page that was in flight when the actor host died may be
      // requested twice.
      expect(starts.length).to.be.within(LONG_REQUESTS + 1, LONG_REQUESTS + 2);
      const mostMs = LONG_REQUESTS * CRAWL_DELAY_MS * BUSY + TAKEOVER_MS_MAX;
      expect(pacedMs(starts)).to.be.at.most(mostMs);
    } finally {
      await Promise.all(processes.map((one) => one.kill()));
    }
  });
});

/**
 * Runs a crawl of three jobs until all requests were made. Returns the departures of all requests, in the order of
 * their times.
 */
async function crawl(
  world: World,
  host: string,
  {
    requests,
    outcome,
    onStart,
  }: { requests: number; outcome: RobotsOutcome; onStart?: (count: number) => Promise<void> },
): Promise<Start[]> {
  const starts: Start[] = [];
  const pages = new Set<string>();
  const visited = (url: string, at: number, grantedAt: number) => {
    starts.push({ at, grantedAt });
    pages.add(url);
    void onStart?.(starts.length);
  };
  for (let worker = 0; worker < 2; worker++) {
    await world.worker([turnWorker(await world.newClient(), { outcome, visited })]);
  }
  for (const [number, account] of ["a", "a", "b"].entries()) {
    const job = String(number).repeat(32);
    const input = { account: account.repeat(32), host, wants: requests / 3 };
    await world.client.call(turnTaker, job, "begin", input);
  }
  await until("all requests were made", () => pages.size === requests + 1, 150_000);
  // Waits until all tasks are done, because their last calls need an actor host, which the test may stop after this
  // function.
  await until("all tasks are done", async () => (await world.count(STREAMS.tasks)) === 0);
  return starts.sort((one, other) => one.at - other.at);
}

/**
 * Checks that no request was early, and that the median gap between two requests is at most 5 % above the delay. The
 * median uses the start times that the site granted, because a busy machine sends requests some milliseconds later.
 */
function expectPaced(starts: readonly Start[]): void {
  const gaps = starts.slice(1).map(({ at, grantedAt }, index) => {
    const before = starts[index]?.at ?? 0;
    return { left: at - before, granted: grantedAt - before };
  });
  expect(Math.min(...gaps.map(({ left }) => left))).to.be.at.least(CRAWL_DELAY_MS);
  const granted = gaps.map((gap) => gap.granted).sort((one, other) => one - other);
  expect(granted[Math.floor(granted.length / 2)]).to.be.at.most(CRAWL_DELAY_MS * 1.05);
}

/** Time from the first to the last request, without the lateness that the machine causes. */
function pacedMs(starts: readonly Start[]): number {
  const lateMs = starts.reduce((sum, { at, grantedAt }) => sum + Math.max(0, at - grantedAt), 0);
  return (starts.at(-1)?.at ?? 0) - (starts[0]?.at ?? 0) - lateMs;
}

async function ownerOf({ bus, subjects }: World, host: string): Promise<string | null | undefined> {
  const shard = shardOf(addressOf("site", host));
  const epoch = await bus.readLast(subjects.stream, subjects.epoch(shard));
  return epoch?.json<{ owner: string | null }>().owner;
}
