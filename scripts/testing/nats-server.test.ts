import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { AuthorizationError, connect, type NatsConnection } from "@nats-io/transport-node";
import { expect } from "chai";
import { readBusAddress } from "../../actors/runtime/bus/bus-address.ts";
import { startNats } from "./nats-server.ts";
import { stopProcess } from "./process-children.ts";

describe("test nats-server", function () {
  this.timeout(180_000);

  it("startNats() serves JetStream with the repository's configuration", async () => {
    await using server = await startNats();
    const bus = await connect(readBusAddress(server.url));
    expect(bus.info?.max_payload).to.equal(1_048_576);
    await jetstreamManager(bus);
    await bus.close();
  });

  it("startNats() refuses clients without a password or with a wrong one", async () => {
    await using server = await startNats();
    const { servers, user = "" } = readBusAddress(server.url);
    for (const credentials of [
      {},
      { user },
      { user, pass: "wrong" },
      { user: "system", pass: "" },
    ]) {
      const failure = await connect({ servers, ...credentials }).catch((error) => error);
      expect(failure).to.be.instanceOf(AuthorizationError);
    }
  });

  it("startNats() gives the system account a separate password, and no stream", async () => {
    await using server = await startNats();
    const { pass = "" } = readBusAddress(server.systemUrl);
    const wrong = await connect({ ...readBusAddress(server.url), pass }).catch((error) => error);
    expect(wrong).to.be.instanceOf(AuthorizationError);
    const system = await connect(readBusAddress(server.systemUrl));
    const answer = await system.request("$SYS.REQ.SERVER.PING.VARZ");
    expect(answer.json()).to.nested.include({ "data.server_name": "test" });
    const jetstream = await jetstreamManager(system).catch((error) => error);
    expect(jetstream).to.be.instanceOf(Error);
    await system.close();
  });

  it("startNats() lets configuration text win over the repository's", async () => {
    await using server = await startNats({ config: "max_payload: 2000" });
    const bus = await connect(readBusAddress(server.url));
    expect(bus.info?.max_payload).to.equal(2_000);
    await bus.close();
  });

  it("startNats() reports the server's error", async () => {
    const failure = await startNats({ config: "max_payload: many" }).catch((error) => error);
    expect(failure.message).to.match(
      /^Cannot start nats-server: it ended with code 1: .*nats.conf:2:1/,
    );
  });

  it("startNats() refuses a port in use", async () => {
    await using first = await startNats();
    const failure = await startNats({ port: first.port }).catch((error) => error);
    expect(failure.message).to.match(/^Cannot start nats-server: .*address already in use/);
  });

  for (const end of ["stopped", "killed"] as const) {
    it(`restart() keeps port and store after the server was ${end}`, async () => {
      await using server = await startNats();
      const { url } = server;
      const before = await connect(readBusAddress(url));
      await storeMessage(before);
      await before.close();
      if (end === "killed") await server.kill();
      await server.restart();
      expect(server.url).to.equal(url);
      const after = await connect(readBusAddress(url));
      expect((await jetstream(after).publish("kept.more")).seq).to.equal(2);
      await after.close();
    });
  }

  it("stop() ends even a paused server and deletes its store", async () => {
    const folder = await mkdtemp(join(tmpdir(), "trunkline-test-"));
    const kept = await startNats({ storeDir: join(folder, "my store") });
    const bus = await connect(readBusAddress(kept.url));
    await storeMessage(bus);
    await bus.close();
    const { pid } = kept;
    await stopProcess(pid);
    await kept.stop();
    expect(() => process.kill(pid, 0)).to.throw();
    expect(existsSync(join(folder, "my store/jetstream"))).to.equal(true);
    await rm(folder, { recursive: true });
  });
});

async function storeMessage(bus: NatsConnection): Promise<void> {
  const streams = (await jetstreamManager(bus)).streams;
  await streams.add({ name: "KEPT", subjects: ["kept.>"], num_replicas: 1 });
  await jetstream(bus).publish("kept.first");
}
