/** Runs actors and workers on a private nats-server. Tests use it in the same way as memory-actors.ts. */

import { pino } from "pino";
import { ActorHost } from "../../actors/runtime/actor-host.ts";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { type ActorClient, BusActorClient } from "../../actors/runtime/calls/actor-client.ts";
import type { AnyActorDefinition } from "../../actors/runtime/kinds/define-actor.ts";
import { systemClock as clock } from "../../actors/runtime/lib/clock.ts";
import { ServiceCounts } from "../../actors/runtime/observe/service-counts.ts";
import type { AnyWorkerDefinition } from "../../actors/runtime/workers/define-worker.ts";
import { WorkerHost } from "../../actors/runtime/workers/worker-host.ts";
import { declareStreams } from "../../deploy/streams.ts";
import { FIRST_LAYOUT } from "../../schemas/data-layout.ts";
import { startNats } from "./nats-server.ts";

export interface BusActors {
  actors: ActorClient;
  /** The hosts' own connection. */
  bus: Bus;
  /** For further connections. */
  url: string;
  stop(): Promise<void>;
}

export async function busActors({
  actors = [],
  workers = [],
}: {
  actors?: readonly AnyActorDefinition[];
  /**
   * The workers, or a function that creates them from the hosts' connection, for workers that store data themselves.
   */
  workers?: readonly AnyWorkerDefinition[] | ((bus: Bus) => readonly AnyWorkerDefinition[]);
}): Promise<BusActors> {
  const nats = await startNats();
  const logger = pino({ level: "fatal" });
  const buses = await Promise.all(
    ["hosts", "client"].map((name) => Bus.connect({ url: nats.url, name })),
  );
  const [hosts, client] = buses;
  if (!hosts || !client) throw new Error("no bus");
  const definitions = typeof workers === "function" ? workers(hosts) : workers;
  const tasks = definitions.map(({ contract }) => contract);
  await declareStreams(hosts.jetstream, { replicas: 1, layout: FIRST_LAYOUT, tasks });
  const counts = new ServiceCounts(new Map());
  const shared = { bus: hosts, clock, logger, counts };
  const actorHost = new ActorHost({
    ...shared,
    definitions: actors,
    hostName: "test",
    buckets: 1,
  });
  await actorHost.start();
  const workerHost = new WorkerHost({ ...shared, definitions });
  workerHost.start();
  return {
    url: nats.url,
    actors: new BusActorClient(client, clock),
    bus: hosts,
    async stop() {
      await workerHost.stop(1_000);
      await actorHost.stop();
      await Promise.all(buses.map((bus) => bus.close()));
      await nats.stop();
    },
  };
}
