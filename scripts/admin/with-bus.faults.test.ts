import { expect } from "chai";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { openData } from "../../deploy/open-data.ts";
import { FIRST_LAYOUT } from "../../schemas/data-layout.ts";
import { stateBucket, stateSubjects } from "../../schemas/subjects.ts";
import { startCluster, startNats } from "../testing/nats-server.ts";
import { withBus } from "./with-bus.ts";

const layoutOn = (urls: readonly string[]) =>
  withBus({ TRUNKLINE_NATS_URL: urls.join(",") }, async ({ layout }) => layout);

describe("withBus()", function () {
  this.timeout(240_000);

  it("assumes no layout while the stream that stores it has no leader", async () => {
    await using cluster = await startCluster(3);
    const bus = await Bus.connect({ url: cluster.urls.join(","), name: "test" });
    const wanted = { shards: 256, mailStreams: 4 };
    await openData(bus.jetstream, { version: "0", replicas: 1, tasks: [], wanted });
    const { stream } = stateSubjects(stateBucket(0));
    const leader = (await bus.jetstream.streams.info(stream)).cluster?.leader;
    await bus.close();
    expect(await layoutOn(cluster.urls)).to.deep.equal({ ...FIRST_LAYOUT, ...wanted });

    const index = Number(leader?.split("-")[1]);
    await cluster.servers[index]?.kill();
    const others = cluster.urls.filter((_, other) => other !== index);
    const refused = await layoutOn(others).catch((error: Error) => error.message);
    expect(refused).to.match(/^Cannot ask the bus: it is not ready, because stream KV_state-0/);
  });

  it("assumes the first layout on a bus without data", async () => {
    await using nats = await startNats();
    expect(await layoutOn([nats.url])).to.deep.equal(FIRST_LAYOUT);
  });
});
