/**
 * A process that hosts the test kinds, for tests that kill it: `node actor-process-main.ts <url> <name>
 * <buckets>/<streams of mail> [hold]`. With `hold`, the host writes no periodic checkpoints. The process prints "ready" when every shard has an
 * owner. On SIGTERM it hands over its shards and exits.
 */
import { once } from "node:events";
import pino from "pino";
import { siteActor } from "../../actors/crawl/site/site.ts";
import { ActorHost } from "../../actors/runtime/actor-host.ts";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { systemClock } from "../../actors/runtime/lib/clock.ts";
import { ServiceCounts } from "../../actors/runtime/observe/service-counts.ts";
import { FIRST_LAYOUT } from "../../schemas/data-layout.ts";
import { CHECKPOINT_MS } from "../../schemas/limits.ts";
import { counterActor } from "./counter.ts";
import { HoldingClock } from "./holding-clock.ts";
import { ledgerActor } from "./ledger.ts";
import { probeActor } from "./probe.ts";
import { turnTakerActor } from "./turn-taker.ts";

const READY_POLL_MS = 5;

const [url = "", hostName = "", streams = "1/1", hold] = process.argv.slice(2);
const [buckets = 1, mailStreams = 1] = streams.split("/").map(Number);
const clock = hold === undefined ? systemClock : new HoldingClock(CHECKPOINT_MS);
const asked = once(process, "SIGTERM");
const bus = await Bus.connect({ url, name: hostName });
bus.layout = { ...FIRST_LAYOUT, stateStreams: buckets, mailStreams };
const host = new ActorHost({
  bus,
  definitions: [counterActor, ledgerActor, probeActor, siteActor, turnTakerActor],
  hostName,
  buckets,
  clock,
  logger: pino({ level: "debug" }, pino.destination({ dest: 2, sync: true })),
  counts: new ServiceCounts(new Map()),
});
await host.start();
void (async () => {
  while (!host.placement.isComplete) await clock.wait(READY_POLL_MS);
  console.log("ready");
})();
await asked;
await host.stop();
await bus.close();
process.exit();
