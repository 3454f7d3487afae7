import { expect } from "chai";
import { CRAWL_DELAY_MS } from "../../schemas/crawl-limits.ts";
import { crawlPage } from "../../schemas/crawl-page.ts";
import type { RobotsOutcome } from "../../schemas/site.ts";
import { addressOf, STREAMS, shardOf } from "../../schemas/subjects.ts";
import { ActorProcess } from "../../scripts/testing/actor-process.ts";
import { startWorld, type World } from "../../scripts/testing/actor-world.ts";
import { startHttpServer } from "../../scripts/testing/loopback-server.ts";
import { rulesOutcome } from "../../scripts/testing/site-driver.ts";
import { turnTaker, turnTakerActor, turnWorker } from "../../scripts/testing/turn-taker.ts";
import { until } from "../../scripts/testing/until.ts";
import { siteActor } from "./site.ts";

const REQUESTS = 30;
/** All of the run, on a machine that does other things as well and stops for them now and then. */
const BUSY = 1.25;
/** A host that dies is replaced within this, as the runtime promises. */
const TAKEOVER_MS_MAX = 5_000;

describe("site on the bus", function () {
  this.timeout(60_000);

  it("two workers of three jobs keep the delay: never early, and 5 % late at most", async () => {
    await using world = await startWorld({
      definitions: [siteActor, turnTakerActor],
      tasks: [crawlPage],
    });
    await world.host();
    await using server = await startHttpServer((_request, response) => void response.end("page"));
    const starts = await crawl(world, `${server.address}:${server.port}`, {
      outcome: rulesOutcome(),
    });
    expectPaced(starts);
    expect(span(starts)).to.be.at.most(REQUESTS * CRAWL_DELAY_MS * BUSY);
  });

  it("they do when the site's host is killed in the middle, and lose no more than it takes to replace it", async () => {
    await using world = await startWorld({ tasks: [crawlPage] });
    await using server = await startHttpServer((_request, response) => void response.end("page"));
    const host = `${server.address}:${server.port}`;
    const processes = ["one", "two"].map((name) => new ActorProcess({ url: world.url, name }));
    try {
      await Promise.all(processes.map(({ ready }) => ready));
      let killed = false;
      const starts = await crawl(world, host, {
        outcome: rulesOutcome(),
        async onStart(count) {
          if (killed || count < REQUESTS / 2) return;
          killed = true;
          const owner = await ownerOf(world, host);
          await processes.find(({ name }) => owner?.startsWith(name))?.kill();
        },
      });
      expect(killed).to.equal(true);
      expectPaced(starts);
      expect(span(starts)).to.be.at.most(REQUESTS * CRAWL_DELAY_MS * BUSY + TAKEOVER_MS_MAX);
    } finally {
      await Promise.all(processes.map((one) => one.kill()));
    }
  });
});

/** When each request left, robots.txt first; ends once all were made. */
async function crawl(
  world: World,
  host: string,
  { outcome, onStart }: { outcome: RobotsOutcome; onStart?: (count: number) => Promise<void> },
): Promise<number[]> {
  const starts: number[] = [];
  const pages = new Set<string>();
  const visited = (url: string, at: number) => {
    starts.push(at);
    pages.add(url);
    void onStart?.(starts.length);
  };
  for (let worker = 0; worker < 2; worker++) {
    await world.worker([turnWorker(await world.newClient(), { outcome, visited })]);
  }
  for (const [number, account] of ["a", "a", "b"].entries()) {
    const job = String(number).repeat(32);
    const input = { account: account.repeat(32), host, wants: REQUESTS / 3 };
    await world.client.call(turnTaker, job, "begin", input);
  }
  await until("all requests were made", () => pages.size === REQUESTS + 1, 50_000);
  // Their last calls need a host, which may be gone as soon as this returns.
  await until("all tasks are done", async () => (await world.count(STREAMS.tasks)) === 0);
  return starts.sort((one, other) => one - other);
}

/** Never early, and between most requests at most 5 % late. */
function expectPaced(starts: readonly number[]): void {
  const gaps = starts.slice(1).map((start, index) => start - (starts[index] ?? 0));
  gaps.sort((one, other) => one - other);
  expect(gaps[0]).to.be.at.least(CRAWL_DELAY_MS);
  expect(gaps[Math.floor(gaps.length / 2)]).to.be.at.most(CRAWL_DELAY_MS * 1.05);
}

const span = (starts: readonly number[]) => (starts.at(-1) ?? 0) - (starts[0] ?? 0);

async function ownerOf({ bus, subjects }: World, host: string): Promise<string | null | undefined> {
  const shard = shardOf(addressOf("site", host));
  const epoch = await bus.readLast(subjects.stream, subjects.epoch(shard));
  return epoch?.json<{ host: string | null }>().host;
}
