import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { CrawlPlan, crawlJob } from "../../../../schemas/crawl/crawl-job.ts";
import { type BusActors, busActors } from "../../../../scripts/testing/bus-actors.ts";
import { TcpProxy } from "../../../../scripts/testing/tcp-proxy.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { Bus } from "../../../runtime/bus/bus.ts";
import { BusLiveUpdates } from "../../../runtime/bus/live.ts";
import { BusActorClient } from "../../../runtime/calls/actor-client.ts";
import { systemClock as clock } from "../../../runtime/lib/clock.ts";
import { crawlJobActor } from "../../crawl-job/crawl-job.ts";
import { crawlListActor } from "../../crawl-list/crawl-list.ts";
import { siteActor } from "../../site/site.ts";
import { watchJob } from "./job-watch.ts";

const newId = () => randomBytes(16).toString("hex");
const account = newId();

describe("watchJob", function () {
  this.timeout(60_000);
  let bus: BusActors;
  let proxy: TcpProxy;
  let worker: Bus;
  let closing: AbortController;

  before(async () => {
    bus = await busActors({ actors: [crawlJobActor, crawlListActor, siteActor] });
    const url = new URL(bus.url);
    proxy = await TcpProxy.start(Number(url.port));
    url.port = String(proxy.port);
    worker = await Bus.connect({ url: url.href, name: "worker" });
  });
  after(async () => {
    await worker.close();
    await proxy.stop();
    await bus.stop();
  });
  beforeEach(() => {
    closing = new AbortController();
  });
  afterEach(() => closing.abort());

  async function startJob(): Promise<string> {
    const job = newId();
    const plan = CrawlPlan.parse({
      ...{ url: "http://a.example/", limit: 10, depth: 1, source: "all", formats: ["html"] },
      ...{ render: false, options: {}, intent: { purposes: ["search"] } },
    });
    const request = { name: `crawl.${job}.request`, bytes: 2 };
    await bus.actors.call(crawlJob, job, "start", { account, plan, request });
    return job;
  }

  function watch(job: string): Promise<AbortSignal> {
    const client = new BusActorClient(worker, clock);
    const parts = { live: new BusLiveUpdates(worker), call: client.call.bind(client), clock };
    return watchJob(parts, { account, job }, closing.signal);
  }

  it("aborts when its job is cancelled, and not before", async () => {
    const job = await startJob();
    const ended = await watch(job);
    expect(ended.aborted).to.equal(false);
    await bus.actors.call(crawlJob, job, "cancel", { account });
    await until("the end is heard of", () => ended.aborted);
  });

  it("aborts at once for an ended or unknown job", async () => {
    const job = await startJob();
    await bus.actors.call(crawlJob, job, "cancel", { account });
    expect((await watch(job)).aborted).to.equal(true);
    expect((await watch(newId())).aborted).to.equal(true);
  });

  it("learns of an end that it missed while it was disconnected", async () => {
    const job = await startJob();
    const ended = await watch(job);
    proxy.cut();
    await bus.actors.call(crawlJob, job, "cancel", { account });
    expect(ended.aborted).to.equal(false);
    proxy.open();
    await until("the end is heard of", () => ended.aborted);
  });

  it("ends when its caller's signal aborts", async () => {
    const ended = await watch(await startJob());
    closing.abort();
    expect(ended.aborted).to.equal(false);
  });
});
