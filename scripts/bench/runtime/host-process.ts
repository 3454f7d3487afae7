/**
 * A host of counter actors in a separate process with one bus connection, as in production. Call: `host-process <url>
 * <name>`.
 */
import pino from "pino";
import { ActorHost } from "../../../actors/runtime/actor-host.ts";
import { Bus } from "../../../actors/runtime/bus/bus.ts";
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import { ServiceCounts } from "../../../actors/runtime/observe/service-counts.ts";
import { counter, counterActor } from "../../testing/counter.ts";
import { answerParent } from "../answer-parent.ts";

const [url = "", hostName = "host"] = process.argv.slice(2);

export interface HostFacts {
  rssBytes: number;
  heapBytes: number;
  activations: number;
  openShards: number;
  isComplete: boolean;
}

const bus = await Bus.connect({ url, name: `bench-${hostName}` });
const host = new ActorHost({
  bus,
  definitions: [counterActor],
  hostName,
  buckets: 1,
  clock,
  logger: pino({ level: "fatal" }),
  counts: new ServiceCounts(new Map([[counter.kind, new Set(Object.keys(counter.messages))]])),
});
await host.start();

answerParent({
  async answer(): Promise<HostFacts> {
    // This form of garbage collection also returns memory to the system, so that the resident memory is only what the
    // host really keeps.
    globalThis.gc?.({ type: "major", execution: "sync", flavor: "last-resort" });
    const { rss, heapUsed } = process.memoryUsage();
    return {
      rssBytes: rss,
      heapBytes: heapUsed,
      activations: host.activations,
      openShards: host.placement.openShards,
      isComplete: host.placement.isComplete,
    };
  },
  async close() {
    await host.stop();
    await bus.close();
  },
});
