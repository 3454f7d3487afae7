/** Measures the cost of idle hosts and shards, and the effect of the number of shards on calls. */

import { connect, type NatsConnection } from "@nats-io/transport-node";
import { Bus } from "../../../actors/runtime/bus/bus.ts";
import { readBusAddress } from "../../../actors/runtime/bus/bus-address.ts";
import { BusActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import { declareStreams } from "../../../deploy/streams.ts";
import { FIRST_LAYOUT } from "../../../schemas/data-layout.ts";
import { counter } from "../../testing/counter.ts";
import { startNats } from "../../testing/nats-server.ts";
import type { Benchmark, Figure } from "../benchmark.ts";
import { Child } from "../child.ts";
import { processorMsOf } from "../process-tree.ts";
import { runLoad } from "../run-load.ts";
import type { ManyHostsFacts } from "./many-hosts-process.ts";

/**
 * Each scene is `<hosts>x<processes>x<shards>`. The variable `TRUNKLINE_BENCH_SCENES` replaces the list, for example
 * by "100x5x64,1x1x512".
 */
const SCENES = "1x1x64,10x2x64,100x5x64,1x1x512,1x1x4096";
const IDLE_MS = 8_000;
const LOAD_MS = 3_000;
const IN_FLIGHT = 128;
const ACTORS = 1_000;
const POLL_MS = 50;
const READY_MS_MAX = 90_000;

export const runtimeHosts: Benchmark = {
  name: "runtime-hosts",
  async run() {
    const scenes = process.env.TRUNKLINE_BENCH_SCENES ?? SCENES;
    const figures: Figure[] = [];
    for (const scene of scenes.split(",")) {
      const [hosts = 1, processes = 1, shards = 64] = scene.split("x").map(Number);
      const measured = await measure({ hosts, processes, shards });
      for (const { name, ours, unit } of measured) console.error(`${name}: ${ours} ${unit}`);
      figures.push(...measured);
    }
    return figures;
  },
};

interface Scene {
  hosts: number;
  processes: number;
  shards: number;
}

async function measure({ hosts, processes, shards }: Scene): Promise<Figure[]> {
  await using server = await startNats();
  const bus = await Bus.connect({ url: server.url, name: "bench" });
  await declareStreams(bus.jetstream, { replicas: 1, layout: FIRST_LAYOUT, tasks: [] });
  bus.layout = { ...FIRST_LAYOUT, shards, stateStreams: 1 };
  const system = await connect(readBusAddress(server.systemUrl));
  await using children = new AsyncDisposableStack();
  children.defer(async () => void (await Promise.all([bus.close(), system.close()])));
  const startedAt = performance.now();
  const each = String(hosts / processes);
  const started = await Promise.all(
    Array.from({ length: processes }, () =>
      Child.start("runtime/many-hosts-process", server.url, each, String(shards)),
    ),
  );
  for (const child of started) children.use(child);
  const facts = () => Promise.all(started.map((child) => child.ask<ManyHostsFacts>("facts")));
  while (!isReady(await facts(), shards)) {
    if (performance.now() - startedAt > READY_MS_MAX) throw new Error("Cannot place all shards");
    await clock.wait(POLL_MS);
  }
  const readyMs = performance.now() - startedAt;
  const look = async () => ({
    at: performance.now(),
    messages: await messagesOf(system),
    serverMs: processorMsOf(server.pid),
    hostMs: (await facts()).reduce((sum, { processorMs: ms }) => sum + ms, 0),
  });
  const before = await look();
  await clock.wait(IDLE_MS);
  const after = await look();
  const ms = after.at - before.at;
  const name = `${hosts} hosts, ${shards} shards`;
  const rss = (await facts()).reduce((sum, { rssBytes }) => sum + rssBytes, 0) / hosts;
  const client = new BusActorClient(bus, clock);
  const quiet = await look();
  const load = await runLoad({ inFlight: IN_FLIGHT, ms: LOAD_MS }, (index) =>
    client.call(counter, `many.${index % ACTORS}`, "increment", { by: 1 }),
  );
  const loaded = await look();
  const perSecond = (count: number) => (count / ms) * 1_000;
  const share = (used: number) => (used / ms) * 100;
  return [
    { name: `${name}: ready after`, unit: "ms", ours: readyMs },
    {
      name: `${name}: idle`,
      unit: "messages/s",
      ours: perSecond(after.messages - before.messages),
    },
    {
      name: `${name}: idle, server`,
      unit: "% of a core",
      ours: share(after.serverMs - before.serverMs),
    },
    {
      name: `${name}: idle, all hosts`,
      unit: "% of a core",
      ours: share(after.hostMs - before.hostMs),
    },
    { name: `${name}: memory a host`, unit: "MB", ours: rss / 1e6 },
    {
      name: `${name}: a change, server`,
      unit: "µs",
      ours: ((loaded.serverMs - quiet.serverMs) / load.operations) * 1_000,
    },
    { name: `${name}: changes`, unit: "/s", ours: (load.operations / load.ms) * 1_000 },
  ];
}

function isReady(facts: ManyHostsFacts[], shards: number): boolean {
  const open = facts.reduce((sum, { openShards }) => sum + openShards, 0);
  return open === shards && facts.every(({ isComplete }) => isComplete);
}

/** Returns the number of messages that the server has received and sent. */
async function messagesOf(system: NatsConnection): Promise<number> {
  const answer = await system.request("$SYS.REQ.SERVER.PING.VARZ");
  const { data } = answer.json<{ data: { in_msgs: number; out_msgs: number } }>();
  return data.in_msgs + data.out_msgs;
}
