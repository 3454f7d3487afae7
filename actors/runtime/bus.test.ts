import { expect } from "chai";
import { startNats } from "../../scripts/testing/nats-server.ts";
import { until } from "../../scripts/testing/until.ts";
import { Bus } from "./bus.ts";

/** The library by itself gives up at the second refusal. */
const REFUSALS = 3;

describe("Bus", function () {
  this.timeout(20_000);

  it("connect() says in one line where it tried, and not with which password", async () => {
    await using nats = await startNats();
    const url = nats.url.replace(/:[^:@]*@/, ":wrong@");
    const failure = await Bus.connect({ url, name: "test" }).catch((error: unknown) => error);
    expect(failure).to.have.property(
      "message",
      `Cannot connect to the bus at nats://127.0.0.1:${nats.port}: Authorization Violation`,
    );
  });

  it("comes back to a bus that has refused its password for a while", async () => {
    await using nats = await startNats();
    const bus = await Bus.connect({ url: nats.url, name: "test" });
    await nats.kill();
    const refused = Promise.withResolvers<void>();
    let refusals = 0;
    const onLine = (line: string) => {
      if (line.includes("authentication error") && ++refusals === REFUSALS) refused.resolve();
    };
    const other = await startNats({ port: nats.port, onLine });
    await refused.promise;
    expect(bus.connected).to.equal(false);
    await other.stop();
    await nats.start();
    await until("the connection is back", () => bus.connected);
    await bus.connection.flush();
    await bus.close();
  });
});
