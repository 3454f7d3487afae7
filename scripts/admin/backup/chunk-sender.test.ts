import { expect } from "chai";
import { Bus } from "../../../actors/runtime/bus/bus.ts";
import { startNats } from "../../testing/nats-server.ts";
import { ChunkSender } from "./chunk-sender.ts";
import { S2_CHUNK_BYTES_MAX, S2_START } from "./s2-stream.ts";

describe("ChunkSender", () => {
  it("repeats its first chunk until the server that restores listens, and sends each chunk once", async () => {
    await using nats = await startNats();
    const bus = await Bus.connect({ url: nats.url, name: "test" });
    const subject = "restore.here";
    const refused = Promise.withResolvers<void>();
    const sizes: number[] = [];
    const request = bus.request.bind(bus);
    bus.request = (...parameters) =>
      request(...parameters).catch((error) => {
        refused.resolve();
        throw error;
      });
    const opening = ChunkSender.open(bus, "ANY", subject);
    await refused.promise;
    bus.connection.subscribe(subject, {
      callback(_error, message) {
        sizes.push(message.data.length);
        message.respond(message.data.length === 0 ? JSON.stringify({ state: {} }) : "");
      },
    });
    const sender = await opening;
    await sender.add(Buffer.alloc(S2_CHUNK_BYTES_MAX + 1));
    await sender.finish();
    const framed = 8;
    expect(sizes).to.deep.equal([S2_START.length, S2_CHUNK_BYTES_MAX + framed, 1 + framed, 0]);
    await bus.close();
  });
});
