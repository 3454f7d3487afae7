import { createServer, type ServerResponse } from "node:http";
import { expect } from "chai";
import { pino } from "pino";
import { type CrawlSummary, crawlJob } from "../../../../schemas/crawl/crawl-job.ts";
import { CrawlRequest } from "../../../../schemas/crawl/http/crawl.ts";
import {
  CRAWL_HOSTS_MAX,
  HOST_REQUESTS_IN_FLIGHT_MAX,
  LARGE_BODY_BYTES,
} from "../../../../schemas/crawl/limits.ts";
import { readQueues } from "../../../../scripts/queues/queues.ts";
import { type BusActors, busActors } from "../../../../scripts/testing/bus-actors.ts";
import { type LoopbackServer, listen } from "../../../../scripts/testing/loopback-server.ts";
import { openPool } from "../../../../scripts/testing/printer.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { createAddressPolicy } from "../../../egress/address-policy.ts";
import { createEgressGuard } from "../../../egress/egress-guard.ts";
import { browserTimeActor } from "../../../rendering/browser-time/browser-time.ts";
import type { Bus } from "../../../runtime/bus/bus.ts";
import { systemClock as clock } from "../../../runtime/lib/clock.ts";
import { BlobStore } from "../../../runtime/store/blob-store.ts";
import { crawlJobActor } from "../../crawl-job/crawl-job.ts";
import { crawlListActor } from "../../crawl-list/crawl-list.ts";
import { siteActor } from "../../site/site.ts";
import {
  FETCH_PAGES_MAX,
  FETCH_TURNS_MAX,
  JOB_PURGES_MAX,
  JSON_TASKS_MAX,
  LARGE_BODIES_MAX,
  openCrawlWorker,
  RENDER_TURNS_MAX,
  ROBOTS_TURNS_MAX,
} from "./open-crawl-worker.ts";
import { newId } from "./testing/crawl-world.ts";

interface Load {
  hosts: number;
  each: number;
  net?: number;
  account?: string;
}

/** Time for hundreds of pages on a busy machine. */
const CRAWL_MS_MAX = 60_000;
/** Enough hosts to want more pages at once than a worker has places. */
const HOSTS = FETCH_PAGES_MAX / HOST_REQUESTS_IN_FLIGHT_MAX + 1;

describe("the crawl worker of a process", function () {
  this.timeout(180_000);
  const held: ServerResponse[] = [];
  let most = 0;
  let serve: (response: ServerResponse) => void;
  let server: LoopbackServer;
  let bus: BusActors;
  let worker: ReturnType<typeof openCrawlWorker>;
  const pool = openPool();

  before(async () => {
    const http = createServer(({ url = "" }, response) => {
      response.setHeader("Content-Type", "text/html");
      if (url === "/robots.txt") response.end("User-agent: *\nCrawl-delay: 0");
      else if (url.startsWith("/quick")) response.end("done");
      else if (url.startsWith("/start")) response.end(startPage(url));
      else serve(response);
    });
    server = await listen(http, "0.0.0.0");
    const guard = createEgressGuard({ policy: createAddressPolicy({ allow: ["127.0.0.0/8"] }) });
    const open = (on: Bus) => {
      worker = openCrawlWorker({
        ...{ bus: on, clock, logger: pino({ level: "fatal" }), guard, pool },
        ...{ renders: 1, browserMsPerDay: 0, ai: undefined },
      });
      return [worker.definition];
    };
    bus = await busActors({
      actors: [browserTimeActor, crawlJobActor, crawlListActor, siteActor],
      workers: open,
    });
  });
  beforeEach(() => {
    held.length = 0;
    most = 0;
  });
  after(async () => {
    await server.close();
    await bus.stop();
    await worker.close();
    await pool.close();
  });

  /** The addresses of the pages of each crawl, by its start page. */
  const pagesOf = new Map<string, string[]>();
  const startPage = (path: string) =>
    pagesOf
      .get(path)
      ?.map((url) => `<a href="${url}">x</a>`)
      .join("");
  const hold = (response: ServerResponse) => {
    // The body of a page that has exceeded its timeout may be written only now.
    if (response.destroyed) return;
    held.push(response);
    most = Math.max(most, held.length);
    // On a busy machine a page may exceed its timeout. It is then requested again.
    response.once("close", () => {
      const at = held.indexOf(response);
      if (at >= 0) held.splice(at, 1);
    });
  };

  /** Starts a crawl of this many pages at each of these hosts, which are `127.0.<net>.2` and the following ones. */
  async function crawl(
    name: string,
    { hosts, each, net = 0, account = newId() }: Load,
  ): Promise<() => Promise<CrawlSummary>> {
    const origins = Array.from(
      { length: hosts },
      (_, n) => `http://127.0.${net}.${n + 2}:${server.port}`,
    );
    const pages = origins.flatMap((origin) =>
      Array.from({ length: each }, (_, n) => `${origin}/${name}/${n}`),
    );
    pagesOf.set(`/start-${name}`, pages);
    const job = newId();
    const url = `${origins[0]}/start-${name}`;
    const request = CrawlRequest.parse({ url, render: false, maxAge: 0 });
    const blobs = new BlobStore(bus.bus, clock);
    const content = Buffer.from(JSON.stringify(request));
    const stored = await blobs.put(`crawl.${job}.request`, content);
    const plan = {
      ...{ url, limit: pages.length + 1, depth: 1, source: "links" as const, render: false },
      ...{ formats: ["html" as const], options: { includeExternalLinks: true } },
      intent: { purposes: request.crawlPurposes },
    };
    await bus.actors.call(crawlJob, job, "start", { account, plan, request: stored });
    // The bodies keep this process busy, and its calls with it.
    const options = { deadlineMs: CRAWL_MS_MAX };
    return () => bus.actors.call(crawlJob, job, "get", { account }, options);
  }

  it("has the limits of its lanes for one account, and a quarter more places for accounts without a task", () => {
    const { slots, turns } = worker.definition;
    const lanes = {
      ...{ fetch: FETCH_TURNS_MAX, browser: RENDER_TURNS_MAX, robots: ROBOTS_TURNS_MAX },
      ...{ json: JSON_TASKS_MAX, purge: JOB_PURGES_MAX },
    };
    for (const [lane, perKey] of Object.entries(lanes)) {
      const places = perKey + perKey / 4;
      expect(slots[lane]).to.equal(places);
      const limits = { perKey, reserved: perKey / 4, computing: places };
      expect(turns?.[lane]).to.include(limits);
    }
  });

  it("another account's crawl ends while turns of one account that never answer hold all its places, and more wait", async () => {
    serve = hold;
    const account = newId();
    const load = { hosts: CRAWL_HOSTS_MAX, each: 2 * HOST_REQUESTS_IN_FLIGHT_MAX, account };
    const hanging = await Promise.all([1, 2].map((net) => crawl(`hang-${net}`, { ...load, net })));
    await until(
      "all that one account may have runs, and more waits",
      async () => {
        const { lanes } = await readQueues(bus.bus);
        const lane = lanes.find(({ kind, lane }) => kind === "crawl-page" && lane === "fetch");
        return lane?.running === FETCH_TURNS_MAX && lane.waiting > 0;
      },
      CRAWL_MS_MAX,
    );
    await until("no place is left", () => held.length === FETCH_PAGES_MAX, CRAWL_MS_MAX);
    let ended = 0;
    for (const response of held) response.once("close", () => (ended += 1));
    const get = await crawl("quick", { hosts: 1, each: 3, net: 3 });
    await until("it is done", async () => (await get()).status === "completed", CRAWL_MS_MAX);
    expect(ended, "no page of the first account has ended meanwhile").to.equal(0);
    serve = (response) => response.end("done");
    for (const response of [...held]) response.end("done");
    // Otherwise their pages would be there beside those of the next test, as those of a second account may be.
    for (const getOne of hanging) {
      const isDone = async () => (await getOne()).status === "completed";
      await until("the first account's crawls are done", isDone, CRAWL_MS_MAX);
    }
  });

  it("fetches FETCH_PAGES_MAX pages at once, and the next when one is done", async () => {
    serve = hold;
    const get = await crawl("page", { hosts: HOSTS, each: 2 * HOST_REQUESTS_IN_FLIGHT_MAX });
    const areAll = () => held.length === FETCH_PAGES_MAX;
    await until("as many as may are under way", areAll, CRAWL_MS_MAX);
    for (let more = 0; more < 2 * HOST_REQUESTS_IN_FLIGHT_MAX; more++) {
      held.shift()?.end("done");
      await until("one more is under way", areAll, CRAWL_MS_MAX);
    }
    expect(most).to.equal(FETCH_PAGES_MAX);
    serve = (response) => response.end("done");
    for (const response of [...held]) response.end("done");
    await until("it is done", async () => (await get()).status === "completed", CRAWL_MS_MAX);
  });

  it("starts no browser for a crawl that only fetches", async () => {
    serve = (response) => response.end("done");
    const get = await crawl("plain", { hosts: 1, each: 2 });
    await until("it is done", async () => (await get()).status === "completed", CRAWL_MS_MAX);
    expect(pool.pids).to.deep.equal([]);
  });

  it("loads LARGE_BODIES_MAX large bodies at once, and the next when one is done", async () => {
    // Far more than sockets buffer unread.
    const large = Buffer.alloc(9_500_000, "x");
    expect(large.length).to.be.greaterThan(LARGE_BODY_BYTES);
    serve = (response) => {
      response.write(large, () => hold(response));
    };
    const get = await crawl("large", { hosts: 2, each: LARGE_BODIES_MAX });
    const areAll = () => held.length === LARGE_BODIES_MAX;
    await until("as many as may are read", areAll, CRAWL_MS_MAX);
    for (let more = 0; more < LARGE_BODIES_MAX; more++) {
      held.shift()?.end();
      await until("one more is read", areAll, CRAWL_MS_MAX);
    }
    expect(most).to.equal(LARGE_BODIES_MAX);
    serve = (response) => response.end("done");
    for (const response of [...held]) response.end();
    await until("it is done", async () => (await get()).status === "completed", CRAWL_MS_MAX);
  });
});
