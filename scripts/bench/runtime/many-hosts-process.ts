/**
 * Many hosts of counter actors in one process, each with its own connection. Call: `many-hosts-process <url> <hosts>
 * <shards>`.
 */

import pino from "pino";
import { ActorHost } from "../../../actors/runtime/actor-host.ts";
import { Bus } from "../../../actors/runtime/bus/bus.ts";
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import { ServiceCounts } from "../../../actors/runtime/observe/service-counts.ts";
import { FIRST_LAYOUT } from "../../../schemas/data-layout.ts";
import { counterActor } from "../../testing/counter.ts";
import { answerParent } from "../answer-parent.ts";

const [url = "", count = "1", shards = "64"] = process.argv.slice(2);

export interface ManyHostsFacts {
  openShards: number;
  isComplete: boolean;
  rssBytes: number;
  /** Processor time so far. */
  processorMs: number;
}

const hosts = await Promise.all(
  Array.from({ length: Number(count) }, async (_, index) => {
    const bus = await Bus.connect({ url, name: `bench-${process.pid}-${index}` });
    bus.layout = { ...FIRST_LAYOUT, shards: Number(shards), stateStreams: 1 };
    const host = new ActorHost({
      ...{ bus, clock, buckets: 1, definitions: [counterActor] },
      hostName: `bench-${process.pid}-${index}`,
      logger: pino({ level: "fatal" }),
      counts: new ServiceCounts(new Map()),
    });
    await host.start();
    return { bus, host };
  }),
);

answerParent({
  async answer(): Promise<ManyHostsFacts> {
    const { user, system } = process.cpuUsage();
    return {
      openShards: hosts.reduce((sum, { host }) => sum + host.placement.openShards, 0),
      isComplete: hosts.every(({ host }) => host.placement.isComplete),
      rssBytes: process.memoryUsage.rss(),
      processorMs: (user + system) / 1_000,
    };
  },
  async close() {
    await Promise.all(hosts.map(({ host }) => host.stop()));
    await Promise.all(hosts.map(({ bus }) => bus.close()));
  },
});
