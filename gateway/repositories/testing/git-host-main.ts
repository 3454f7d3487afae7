/**
 * A process that hosts the actors of repositories, for tests that kill it: `<url> <name> [times of sweeps]`. Prints
 * "ready" when every shard has an owner.
 */
import { pino } from "pino";
import { gitStorageActor } from "../../../actors/repositories/git-storage/git-storage.ts";
import { namespaceActor } from "../../../actors/repositories/namespace/namespace.ts";
import {
  packSweepActor,
  packSweepActorWith,
} from "../../../actors/repositories/pack-sweep/pack-sweep.ts";
import { repoActor } from "../../../actors/repositories/repo/repo.ts";
import { repoEventsActor } from "../../../actors/repositories/repo-events/repo-events.ts";
import { ActorHost } from "../../../actors/runtime/actor-host.ts";
import { Bus } from "../../../actors/runtime/bus/bus.ts";
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import { ServiceCounts } from "../../../actors/runtime/observe/service-counts.ts";
import { until } from "../../../scripts/testing/until.ts";

const [url = "", hostName = "", sweepTimes] = process.argv.slice(2);
const sweep =
  sweepTimes === undefined ? packSweepActor : packSweepActorWith(JSON.parse(sweepTimes));
const host = new ActorHost({
  bus: await Bus.connect({ url, name: hostName }),
  definitions: [gitStorageActor, namespaceActor, repoActor, repoEventsActor, sweep],
  hostName,
  buckets: 1,
  clock,
  logger: pino({ level: "error" }, pino.destination({ dest: 2, sync: true })),
  counts: new ServiceCounts(new Map()),
});
await host.start();
await until("every shard has an owner", () => host.placement.isComplete, 60_000);
console.log("ready");
