/**
 * Kills servers of a cluster and damages their data. Every replica of every stream becomes current again,
 * automatically or with the runbook's commands.
 */

import { randomBytes } from "node:crypto";
import { open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { pino } from "pino";
import { Registry } from "prom-client";
import { Bus } from "../actors/runtime/bus/bus.ts";
import { systemClock } from "../actors/runtime/lib/clock.ts";
import { BlobStore } from "../actors/runtime/store/blob-store.ts";
import { FIRST_LAYOUT } from "../schemas/data-layout.ts";
import { STREAMS } from "../schemas/subjects.ts";
import { exposeQueues } from "../scripts/queues/queue-metrics.ts";
import {
  startCluster,
  type TestNatsCluster,
  type TestNatsServer,
} from "../scripts/testing/nats-server.ts";
import { SkippingClock } from "../scripts/testing/skipping-clock.ts";
import { until } from "../scripts/testing/until.ts";
import { declareStreams } from "./streams.ts";

const MB = 1024 ** 2;
/**
 * Maximum time for a restarted server to find the other servers and its leader, and to read the messages that it
 * missed.
 */
const CATCH_UP_MS_MAX = 240_000;

describe("copies of streams", function () {
  this.timeout(1_200_000);
  let cluster: TestNatsCluster;
  let bus: Bus;
  let blobs: BlobStore;
  const log: string[] = [];

  before(async () => {
    cluster = await startCluster(3, "", (line) => log.push(line));
    bus = await Bus.connect({ url: cluster.urls.join(","), name: "test" });
    await declareStreams(bus.jetstream, { replicas: 3, layout: FIRST_LAYOUT, tasks: [] });
    blobs = new BlobStore(bus, systemClock);
  });
  after(async () => {
    await bus.close();
    await cluster.stop();
  });

  it("survive kill -9 of their servers while crawls store megabytes", async () => {
    for (let round = 0; round < 4; round++) {
      await storePages(`crawl.round${round}`, 20 * MB);
      const server = await follower();
      await server.kill();
      await storePages(`crawl.without${round}`, 2 * MB);
      await server.start();
      await allCurrent();
    }
    expect(
      log.filter((line) => /compression reader|Critical write error/.test(line)),
    ).to.deep.equal([]);
  });

  it("a damaged copy is counted in metrics, and is current again once it is deleted", async () => {
    await storePages("crawl.damaged", 20 * MB);
    const server = await follower();
    await server.kill();
    // The other servers notice the loss after about 10 s. On a busy machine, an election may make another replica lag
    // behind too, so the count may be above 1.
    await until("its copy is counted", async () => (await behind()) >= 1, CATCH_UP_MS_MAX);
    await damage(join(server.storeDir, "jetstream/TRUNKLINE/streams", STREAMS.crawl, "msgs"));
    await server.start();
    // The steps of the runbook: stop the server, delete its replica of the stream, start the server.
    await server.kill();
    const copy = join(server.storeDir, "jetstream/TRUNKLINE/streams", STREAMS.crawl);
    await rm(copy, { recursive: true });
    await server.start();
    await allCurrent();
    await until("no copy is behind", async () => (await behind()) === 0, CATCH_UP_MS_MAX);
    // Kills the leader to prove that the recreated replica is complete: the data is then read without the leader.
    const { cluster: group } = await bus.jetstream.streams.info(STREAMS.crawl);
    const leader = cluster.servers[Number(group?.leader?.at(-1))];
    if (!leader) throw new Error("The stream has no leader");
    await leader.kill();
    expect(await readBytes("crawl.damaged")).to.equal(20 * MB);
    await leader.start();
    await allCurrent();
  });

  /** Returns the metric of replicas that lag behind for the stream of crawls. */
  async function behind(): Promise<number> {
    const registry = new Registry();
    const clock = new SkippingClock({ stands: true });
    exposeQueues({ bus, clock, registry, logger: pino({ level: "fatal" }) });
    const text = await registry.getSingleMetricAsString("trunkline_stream_copies_behind");
    return Number(/\{stream="CRAWL"\} (\d+)/.exec(text)?.[1]);
  }

  /** Stores text that compresses to about half of its size, as web pages do. */
  async function storePages(name: string, bytes: number): Promise<void> {
    await blobs.put(name, Buffer.from(randomBytes(bytes / 2).toString("hex")));
  }

  async function readBytes(name: string): Promise<number> {
    let bytes = 0;
    for await (const piece of blobs.get(name)) bytes += piece.length;
    return bytes;
  }

  async function follower(): Promise<TestNatsServer> {
    const { cluster: group } = await bus.jetstream.streams.info(STREAMS.crawl);
    const name = group?.replicas?.[0]?.name ?? "";
    const server = cluster.servers[Number(name.at(-1))];
    if (!server) throw new Error(`No server is named "${name}"`);
    return server;
  }

  function allCurrent(): Promise<true> {
    return until(
      "all copies are current",
      async () => {
        const infos = await Array.fromAsync(bus.jetstream.streams.list()).catch(() => []);
        return (
          infos.length > 0 &&
          infos.every(({ cluster }) =>
            (cluster?.replicas ?? []).every(
              ({ current, offline, lag }) => current && !offline && !lag,
            ),
          )
        );
      },
      CATCH_UP_MS_MAX,
    );
  }
});

/** Overwrites bytes in the middle of every block file. */
async function damage(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!name.endsWith(".blk")) continue;
    await using file = await open(join(folder, name), "r+");
    const { size } = await file.stat();
    await file.write(randomBytes(Math.min(100_000, size)), 0, undefined, Math.floor(size / 2));
  }
}
