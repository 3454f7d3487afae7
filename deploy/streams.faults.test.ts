import { expect } from "chai";
import { TASKS } from "../actors/main.ts";
import { Bus } from "../actors/runtime/bus/bus.ts";
import { FIRST_LAYOUT } from "../schemas/data-layout.ts";
import { stateBucket, stateSubjects } from "../schemas/subjects.ts";
import { startCluster } from "../scripts/testing/nats-server.ts";
import type { StreamsOptions } from "./stream-declarations.ts";
import { CLUSTER_READY_MS, declareStreams } from "./streams.ts";

const subjects = stateSubjects(stateBucket(0));
const declared = { layout: FIRST_LAYOUT, tasks: TASKS };

/**
 * Declares the streams. On a busy machine, an election lasts longer than a start waits for it; then declares them again,
 * as the next start does. Rejects with an error that came before a start would give up.
 */
async function declareAtLast(bus: Bus, options: StreamsOptions): Promise<void> {
  for (;;) {
    const startedAt = performance.now();
    try {
      return await declareStreams(bus.jetstream, options);
    } catch (error) {
      if (performance.now() - startedAt < CLUSTER_READY_MS) throw error;
    }
  }
}

describe("streams of a cluster", function () {
  this.timeout(900_000);

  it("declareStreams() waits for a cluster that has no leader yet", async () => {
    await using cluster = await startCluster(3);
    const [first, second, third] = cluster.servers;
    if (!first || !second || !third) throw new Error("A cluster of three has three servers");
    await Promise.all([second.kill(), third.kill()]);
    const bus = await Bus.connect({ url: first.url, name: "test" });
    const declaring = declareAtLast(bus, { ...declared, replicas: 3 });
    await Promise.all([second.start(), third.start()]);
    await declaring;
    const fewer = declareStreams(bus.jetstream, { ...declared, replicas: 1 });
    expect(await fewer.catch((error) => error.message)).to.equal(
      'TRUNKLINE_REPLICAS: expected 3, as the streams have it, found "1"',
    );
    expect((await bus.jetstream.streams.info(subjects.stream)).config.num_replicas).to.equal(3);
    await bus.close();
  });

  it("declareStreams() replicates a single copy only while no host of actors runs", async () => {
    await using cluster = await startCluster(3);
    const [first] = cluster.servers;
    if (!first) throw new Error("A cluster of three has three servers");
    const bus = await Bus.connect({ url: first.url, name: "test" });
    await declareAtLast(bus, { ...declared, replicas: 1 });
    await bus.jetstream.jetstream().publish(subjects.lease("host"), "{}");
    const more = () => declareStreams(bus.jetstream, { ...declared, replicas: 3 });
    expect(await more().catch((error) => error.message)).to.match(
      /^TRUNKLINE_REPLICAS: expected 1, as .+ has it, while hosts of actors run, found "3"/,
    );
    await bus.jetstream.streams.purge(subjects.stream, { filter: subjects.leases });
    await declareAtLast(bus, { ...declared, replicas: 3 });
    expect((await bus.jetstream.streams.info(subjects.stream)).config.num_replicas).to.equal(3);
    await bus.close();
  });
});
