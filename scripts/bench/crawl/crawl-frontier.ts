/**
 * Measures a crawl job with 100,000 known addresses: the memory of its process, the time until another process
 * continues it after a kill, and the cost of each additional address.
 */
import { readFileSync } from "node:fs";
import { Kvm } from "@nats-io/kv";
import { Bus } from "../../../actors/runtime/bus/bus.ts";
import { type ActorClient, BusActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import { crawlJob } from "../../../schemas/crawl/crawl-job.ts";
import { CRAWL_PAGES_MAX } from "../../../schemas/crawl/limits.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { addressOf, shardOf, stateBucket } from "../../../schemas/subjects.ts";
import { CrawlScene } from "../../testing/crawl-scene.ts";
import { type Benchmark, median } from "../benchmark.ts";
import { Child } from "../child.ts";
import { processorMsOf } from "../process-tree.ts";
import type { FrontierFacts } from "./site-facts.ts";

const TIMES = 3;
const POLL_MS = 20;
const BUILD_MS_MAX = 120_000;
const RESUME_MS_MAX = 30_000;
/**
 * Numbers of known addresses between which the cost of one address is measured: early in a job (EARLY) and late
 * (LATE).
 */
const EARLY = [1_000, 11_000] as const;
const LATE = [90_000, 100_000] as const;

interface Measured {
  rssBytes: number;
  peakBytes: number;
  afterBytes: number;
  resumeMs: number;
  early: Cost;
  late: Cost;
}

/** The cost of one address in milliseconds: elapsed time, and processor time of the job's process. */
interface Cost {
  wallMs: number;
  cpuMs: number;
}

export const crawlFrontier: Benchmark = {
  name: "crawl-frontier",
  async run() {
    const times: Measured[] = [];
    for (let time = 0; time < TIMES; time++) times.push(await measure());
    const middle = (of: (one: Measured) => number) => median(times.map(of));
    const known = `a job with ${CRAWL_PAGES_MAX} known addresses`;
    const mb = (name: string, bytes: (one: Measured) => number) => ({
      name: `${known}, ${name}`,
      unit: "MB RSS",
      ours: middle(bytes) / 1e6,
      target: { atMost: 250 },
    });
    return [
      mb("its node", ({ rssBytes }) => rssBytes),
      mb("its node at most, while it grew", ({ peakBytes }) => peakBytes),
      mb("the node that took it over", ({ afterBytes }) => afterBytes),
      {
        name: `${known}, from its node's end to its next page`,
        unit: "ms",
        ours: middle(({ resumeMs }) => resumeMs),
        target: { atMost: 3_000 },
      },
      {
        name: "one more address at 100,000, reference: at 1,000",
        unit: "ms of processor",
        ours: middle(({ late }) => late.cpuMs),
        reference: middle(({ early }) => early.cpuMs),
        target: { atMost: 1.3 },
      },
      {
        name: "one more address at 100,000, reference: at 1,000",
        unit: "ms",
        ours: middle(({ late }) => late.wallMs),
        reference: middle(({ early }) => early.wallMs),
        target: { atMost: 1.3 },
      },
    ];
  },
};

/**
 * Runs one job in separate processes, kills the job's process, and waits until another process has continued the job.
 */
async function measure(): Promise<Measured> {
  await using site = await Child.start("crawl/frontier-site-process");
  await using scene = await CrawlScene.start({ actors: 2, direct: true });
  const { url } = await site.ask<FrontierFacts>({});
  const bus = await Bus.connect({ url: scene.nats.url, name: "bench-frontier" });
  try {
    const id = await scene.startCrawl({
      ...{ url: `${url}/`, limit: CRAWL_PAGES_MAX, source: "sitemaps", render: false, maxAge: 0 },
    });
    const actors = new BusActorClient(bus, clock);
    const account = scene.accountId;
    const node = await nodeOf(bus, id);
    const job = { actors, id, account, pid: node };
    const early = await costOf(job, EARLY);
    const late = await costOf(job, LATE);
    const { rssBytes, peakBytes } = memoryOf(node);
    const { finished } = await actors.call(crawlJob, id, "get", { account });
    const killedAt = performance.now();
    process.kill(node, "SIGKILL");
    const giveUpAt = killedAt + RESUME_MS_MAX;
    for (;;) {
      const now = await statusOf(job);
      if (now && now.finished > finished) break;
      if (performance.now() > giveUpAt) throw new Error(`Cannot go on: the job is ${now?.status}`);
      await clock.wait(POLL_MS);
    }
    const resumeMs = performance.now() - killedAt;
    const { rssBytes: afterBytes } = memoryOf(await nodeOf(bus, id));
    return { rssBytes, peakBytes, afterBytes, resumeMs, early, late };
  } finally {
    await bus.close();
  }
}

/**
 * Returns the status of the job. Returns undefined while no host has the job: a call waits only for a limited time
 * for a host.
 */
async function statusOf({ actors, id, account }: Job) {
  return await actors.call(crawlJob, id, "get", { account }).catch((error: unknown) => {
    if (error instanceof ActorError && error.code === "unavailable") return undefined;
    throw error;
  });
}

interface Job {
  actors: ActorClient;
  id: string;
  account: string;
  pid: number;
}

/**
 * Waits until the job knows `from` addresses and then `to` addresses. Returns the cost of one address between the
 * two.
 */
async function costOf(job: Job, [from, to]: readonly [number, number]) {
  const first = await reached(from);
  const last = await reached(to);
  const added = last.total - first.total;
  return {
    wallMs: (last.at - first.at) / added,
    cpuMs: (last.cpuMs - first.cpuMs) / added,
  };

  async function reached(count: number) {
    for (const giveUpAt = performance.now() + BUILD_MS_MAX; performance.now() < giveUpAt; ) {
      const { total = 0, status = "running" } = (await statusOf(job)) ?? {};
      const at = performance.now();
      if (total >= count) return { total, at, cpuMs: processorMsOf(job.pid) };
      if (status !== "running") throw new Error(`Cannot fill the job: it is ${status} at ${total}`);
      await clock.wait(POLL_MS);
    }
    throw new Error(`Cannot fill the job: it has not ${count} pages after ${BUILD_MS_MAX} ms`);
  }
}

/**
 * Returns the process id of the job's host. The epoch of the job's shard contains the host's name, which ends with
 * the process id and a random part.
 */
async function nodeOf(bus: Bus, id: string): Promise<number> {
  const state = await new Kvm(bus.connection).open(stateBucket(0));
  const shard = shardOf(addressOf(crawlJob.kind, id));
  const host = (await state.get(`epoch.${shard}`))?.json<{ owner: string }>().owner ?? "";
  const pid = /-(\d+)-\w+$/.exec(host)?.[1];
  if (pid === undefined) throw new Error(`Cannot tell the process of shard ${shard}: "${host}"`);
  return Number(pid);
}

/** Returns the resident memory of a process in bytes, now and at its peak. Linux only. */
function memoryOf(pid: number): { rssBytes: number; peakBytes: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const bytes = (name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) * 1_024;
  return { rssBytes: bytes("VmRSS"), peakBytes: bytes("VmHWM") };
}
