import { createHash } from "node:crypto";
import { expect } from "chai";
import { blobSubjects } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { patternAt } from "../../../scripts/testing/echo-worker.ts";
import { startCluster } from "../../../scripts/testing/nats-server.ts";
import { until } from "../../../scripts/testing/until.ts";
import { systemClock } from "../lib/clock.ts";
import { BlobStore } from "./blob-store.ts";

const MB = 1024 * 1024;

describe("BlobStore under faults and much load", function () {
  this.timeout(180_000);
  let world: World;
  let blobs: BlobStore;
  let count = 0;
  const newName = () => `crawl.test.${++count}`;

  before(async () => {
    world = await startWorld();
    blobs = new BlobStore(world.bus, systemClock);
  });
  after(() => world[Symbol.asyncDispose]());

  const chunksOf = async (name: string) => {
    const { stream, all } = blobSubjects(name);
    const { state } = await world.bus.jetstream.streams.info(stream, { subjects_filter: all });
    return Object.keys(state.subjects ?? {}).length;
  };

  it("a server that is killed during writes and reads loses no blob and mixes none", async () => {
    const { nats } = world;
    if (!nats) throw new Error("no server");
    const names = Array.from({ length: 6 }, newName);
    const bytes = 6 * MB;
    const first = names.map((name, index) => blobs.put(name, patternAt(index, bytes)));
    await until("something is written", async () => (await chunksOf(names[0] ?? "")) > 2);
    await nats.kill();
    await nats.start();
    await Promise.all(first);
    const reads = names.map((name) => readAll(blobs, name));
    await nats.kill();
    await nats.start();
    for (const [index, content] of (await Promise.all(reads)).entries()) {
      expect(patternAt(index, bytes).equals(content)).to.equal(true);
    }
  });

  it("200 MB are written and read in the memory of a few chunks", async () => {
    const [name, bytes] = [newName(), 200 * MB];
    const memory = new MemoryWatch();
    const written = createHash("sha256");
    await blobs.put(
      name,
      (async function* () {
        for (let offset = 0; offset < bytes; offset += MB) {
          const piece = patternAt(offset, MB);
          written.update(piece);
          memory.look();
          yield piece;
        }
      })(),
    );
    const read = createHash("sha256");
    for await (const piece of blobs.get(name)) {
      read.update(piece);
      memory.look();
    }
    expect(read.digest("hex")).to.equal(written.digest("hex"));
    expect(memory.grownBytes).to.be.lessThan(64 * MB);
    await blobs.remove(name);
  });

  it("every reader finds a new blob at once, whichever replica answers", async () => {
    await using cluster = await startCluster(3);
    const [one, other] = cluster.servers;
    await using writing = await startWorld({ url: one?.url ?? "", replicas: 3 });
    await using reading = await startWorld({ url: other?.url ?? "", replicas: 3 });
    const writer = new BlobStore(writing.bus, systemClock);
    const reader = new BlobStore(reading.bus, systemClock);
    for (let index = 0; index < 100; index++) {
      const list = Array.from({ length: index % 20 }, (_, entry) => ({
        name: `crawl.r.${index}.${entry}`,
        content: patternAt(0, 100),
      }));
      await writer.put(`crawl.r.${index}`, patternAt(0, index % 10 === 0 ? MB : 100));
      expect(await reader.has(`crawl.r.${index}`)).to.equal(true);
      await writer.putAll(list);
      await Promise.all(list.map(({ name }) => readAll(reader, name)));
    }
  });
});

async function readAll(blobs: BlobStore, name: string): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of blobs.get(name)) pieces.push(piece);
  return Buffer.concat(pieces);
}

/** Measures the growth of memory outside the heap, which holds buffers. */
class MemoryWatch {
  readonly #atStart = this.#used();
  #most = 0;

  look(): void {
    this.#most = Math.max(this.#most, this.#used());
  }

  get grownBytes(): number {
    return this.#most - this.#atStart;
  }

  #used(): number {
    return process.memoryUsage().rss;
  }
}
