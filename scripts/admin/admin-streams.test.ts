import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { openData } from "../../deploy/open-data.ts";
import { STORE_BYTES, STORE_BYTES_SETTING_MIN } from "../../schemas/store-limits.ts";
import { SIZED_STORES, storeSizes } from "../../schemas/store-sizes.ts";
import { STREAMS } from "../../schemas/subjects.ts";
import { startNats } from "../testing/nats-server.ts";
import { adminStreams } from "./admin-streams.ts";

describe("admin streams", function () {
  this.timeout(120_000);
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-streams-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it("accepts sizes on the embedded bus as the role actors does, not those for a disk of unknown size", async () => {
    await using nats = await startNats();
    const bus = await Bus.connect({ url: nats.url, name: "test" });
    await writeFile(join(folder, "nats.url"), nats.url);
    await openData(bus.jetstream, { version: "0", replicas: 1, tasks: [] });
    const before = (await bus.jetstream.streams.info(STREAMS.packs)).config.max_bytes;
    const environment = { TRUNKLINE_DATA: folder, TRUNKLINE_PACKS_BYTES: String(2 * STORE_BYTES) };
    await adminStreams([], environment);
    const { max_bytes: after } = (await bus.jetstream.streams.info(STREAMS.packs)).config;
    // How far the stream grows depends on the disk.
    expect(after).to.be.at.least(before);
    await bus.close();
  });

  it("creates what is missing on outside servers, and lets no stream grow beyond what its hosts have set", async () => {
    await using nats = await startNats();
    const bus = await Bus.connect({ url: nats.url, name: "test" });
    const sizes = async () => storeSizes(2 * STORE_BYTES_SETTING_MIN * SIZED_STORES.length);
    await openData(bus.jetstream, { version: "0", replicas: 1, tasks: [], sizes });
    const sizeOf = async (stream: string) =>
      (await bus.jetstream.streams.info(stream)).config.max_bytes;
    const before = await sizeOf(STREAMS.packs);
    await bus.jetstream.streams.delete(STREAMS.crawl);
    await adminStreams([], { TRUNKLINE_NATS_URL: nats.url, TRUNKLINE_DATA: folder });
    expect(await sizeOf(STREAMS.packs)).to.equal(before);
    expect(await sizeOf(STREAMS.crawl)).to.equal(STORE_BYTES_SETTING_MIN);
    await bus.close();
  });
});
