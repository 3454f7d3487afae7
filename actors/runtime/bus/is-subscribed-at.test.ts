import { expect } from "chai";
import { startNats } from "../../../scripts/testing/nats-server.ts";
import { Bus } from "./bus.ts";
import { isSubscribedAt } from "./is-subscribed-at.ts";

const timeoutMs = 200;

describe("isSubscribedAt()", () => {
  it("knows the subscriptions of a server, and nothing of a server that does not answer", async () => {
    await using nats = await startNats();
    const bus = await Bus.connect({ url: nats.url, name: "test" });
    const ask = (server: string, ms = 20_000) =>
      isSubscribedAt(bus, server, "a.subject", { timeoutMs: ms });
    const { server } = bus;
    expect(await ask("another", timeoutMs)).to.equal(undefined);
    expect(await ask(server)).to.equal(false);
    bus.connection.subscribe("a.subject", { callback: () => {} });
    await bus.connection.flush();
    expect(await ask(server)).to.equal(true);
    await bus.close();
    expect(await ask(server, timeoutMs)).to.equal(undefined);
  });
});
