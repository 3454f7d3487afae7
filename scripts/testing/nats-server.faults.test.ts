import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { expect } from "chai";
import { readBusAddress } from "../../actors/runtime/bus/bus-address.ts";
import { startCluster, startNats } from "./nats-server.ts";
import { until } from "./until.ts";

describe("test cluster of nats-servers", function () {
  this.timeout(180_000);

  it("startCluster() refuses a server without a password", async () => {
    await using cluster = await startCluster(3);
    const routes = JSON.stringify(cluster.routes);
    const config = `cluster { name: trunkline, listen: "127.0.0.1:-1", routes: ${routes} }`;
    const refused = Promise.withResolvers<void>();
    const onLine = (line: string) => {
      if (line.includes("Authorization Violation")) refused.resolve();
    };
    await using _stranger = await startNats({ config, onLine });
    await refused.promise;
  });

  it("startCluster() serves streams with three replicas that survive the loss of a server", async () => {
    await using cluster = await startCluster(3);
    const bus = await connect({
      ...readBusAddress(cluster.urls.join(",")),
      maxReconnectAttempts: -1,
    });
    const streams = (await jetstreamManager(bus)).streams;
    await streams.add({ name: "KEPT", subjects: ["kept.>"], num_replicas: 3 });
    await jetstream(bus).publish("kept.first");
    const connected = cluster.servers.find(({ port }) => bus.getServer().endsWith(`:${port}`));
    await connected?.kill();
    const publish = () =>
      jetstream(bus).publish("kept.more", "", { msgID: "second", timeout: 1_000 });
    const stored = await until(
      "a leader stores it",
      () => publish().catch(() => undefined), // No leader yet.
      60_000,
    );
    expect(stored.seq).to.equal(2);
    await bus.close();
  });
});
