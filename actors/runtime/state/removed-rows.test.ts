import { headers } from "@nats-io/transport-node";
import { expect } from "chai";
import { startWorld } from "../../../scripts/testing/actor-world.ts";
import { probe, probeActor } from "../../../scripts/testing/probe.ts";
import { until } from "../../../scripts/testing/until.ts";

describe("rows that were removed", function () {
  this.timeout(90_000);

  it("stay removed when the bus only has their markers", async () => {
    await using world = await startWorld({ definitions: [probeActor] });
    const host = await world.host();
    await world.client.call(probe, "a", "fillRows", { from: 0, count: 10, characters: 20 });
    await world.client.call(probe, "a", "setRow", { row: "row7", value: null });
    await host.stop();
    const subject = world.subjects.row("probe.a", "row7");
    // Removes the row as the store does, but with an expiry that a test can wait for.
    const removed = headers();
    removed.set("KV-Operation", "DEL");
    removed.set("Nats-TTL", "1s");
    await world.bus.jetstream.jetstream().publish(subject, "", { headers: removed });
    await until("the marker of the bus itself", async () => {
      const last = await world.bus.readLast(world.subjects.stream, subject);
      return last?.header.has("Nats-Marker-Reason");
    });
    await world.host();
    const answer = world.client.call(probe, "a", "setRow", { row: "row8", value: "x" });
    expect(await answer).to.deep.equal({ rows: 9 });
  });
});
