import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { BLOB_CHUNK_BYTES } from "../../../schemas/limits.ts";
import { objectSubjects, RENDER_JOBS_STORE, STREAMS } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { natsCliOrSkip } from "../../../scripts/testing/nats-cli.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { systemClock } from "../lib/clock.ts";
import { ObjectStore } from "./object-store.ts";

const run = promisify(execFile);

describe("ObjectStore", function () {
  this.timeout(60_000);
  let world: World;
  let store: ObjectStore;
  before(async () => {
    world = await startWorld();
    store = new ObjectStore(world.bus, systemClock, RENDER_JOBS_STORE);
  });
  after(() => world[Symbol.asyncDispose]());

  const read = async (name: string) => {
    const found = await store.get(name);
    if (!found) return undefined;
    const content = Buffer.concat(await Array.fromAsync(found.chunks));
    expect(content.length).to.equal(found.bytes);
    return content;
  };
  const stored = () => world.count(STREAMS.renderJobs);

  for (const bytes of [0, 1, BLOB_CHUNK_BYTES, 3 * BLOB_CHUNK_BYTES + 7]) {
    it(`get() returns the ${bytes} bytes that put() stored`, async () => {
      const content = randomBytes(bytes);
      expect(await store.put("some/name", pieces(content))).to.equal(bytes);
      expect(await read("some/name")).to.deep.equal(content);
    });
  }

  it("put() replaces an object of the same name completely", async () => {
    await store.putBytes("twice", randomBytes(2 * BLOB_CHUNK_BYTES + 1));
    const before = await stored();
    await store.putBytes("twice", Buffer.from("second"));
    expect((await read("twice"))?.toString()).to.equal("second");
    expect(await stored()).to.equal(before - 2);
  });

  it("put() of content that breaks off stores nothing, ends the content, and rejects with its error", async () => {
    const before = await stored();
    let hasEnded = false;
    async function* broken() {
      try {
        yield randomBytes(2 * BLOB_CHUNK_BYTES);
        throw new Error("the page is gone");
      } finally {
        hasEnded = true;
      }
    }
    const error = await store.put("broken", broken()).catch((reason) => reason);
    expect(error.message).to.equal("the page is gone");
    expect(hasEnded).to.equal(true);
    expect(await store.get("broken")).to.equal(undefined);
    expect(await stored()).to.equal(before);
  });

  it("get() reads ahead of its reader by no more than a piece", async () => {
    await store.putBytes("large", randomBytes(4 * BLOB_CHUNK_BYTES));
    const found = await store.get("large");
    const reader = found?.chunks[Symbol.asyncIterator]();
    await reader?.next();
    // The reader has not read the rest yet, so it sees the removal.
    await store.remove("large");
    const refused = await refusalOf((async () => await reader?.next())());
    expect(refused.code).to.equal("not_found");
    expect(await store.get("large")).to.equal(undefined);
  });

  it("get() rejects where a piece is missing, before it returns the last", async () => {
    await store.putBytes("damaged", randomBytes(3 * BLOB_CHUNK_BYTES));
    const { seq } =
      (await world.bus.readLast(STREAMS.renderJobs, objectSubjects("*").all[0] ?? "")) ?? {};
    await world.bus.jetstream.streams.deleteMessage(STREAMS.renderJobs, seq ?? 0);
    expect((await refusalOf(read("damaged"))).code).to.equal("not_found");
  });

  it("put() and putBytes() reject with storage_full where the store is full, and leave nothing", async () => {
    const { config, state } = await world.bus.jetstream.streams.info(STREAMS.renderJobs);
    const { streams } = world.bus.jetstream;
    await streams.update(STREAMS.renderJobs, { max_bytes: state.bytes + BLOB_CHUNK_BYTES });
    let hasEnded = false;
    async function* large() {
      try {
        for (let index = 0; index < 20; index++) yield randomBytes(BLOB_CHUNK_BYTES);
      } finally {
        hasEnded = true;
      }
    }
    try {
      expect((await refusalOf(store.put("full", large()))).code).to.equal("storage_full");
      expect(hasEnded).to.equal(true);
      const bytes = randomBytes(3 * BLOB_CHUNK_BYTES);
      expect((await refusalOf(store.putBytes("full", bytes))).code).to.equal("storage_full");
      expect((await streams.info(STREAMS.renderJobs)).state.messages).to.equal(state.messages);
    } finally {
      await streams.update(STREAMS.renderJobs, { max_bytes: config.max_bytes });
    }
  });

  it("capacity() returns the byte limit of the stream", async () => {
    const { config } = await world.bus.jetstream.streams.info(STREAMS.renderJobs);
    expect(await store.capacity()).to.equal(config.max_bytes);
  });

  it("capacity() of an unlimited stream is what it is declared with", async () => {
    const { streams } = world.bus.jetstream;
    const { config } = await streams.info(STREAMS.renderJobs);
    await streams.update(STREAMS.renderJobs, { max_bytes: -1 });
    try {
      const unlimited = new ObjectStore(world.bus, systemClock, RENDER_JOBS_STORE);
      expect(await unlimited.capacity()).to.equal(RENDER_JOBS_STORE.bytesMax);
    } finally {
      await streams.update(STREAMS.renderJobs, { max_bytes: config.max_bytes });
    }
  });

  it("remove() frees a store that is full to the last byte, also when it is called twice", async () => {
    await store.putBytes("fill>>>???", randomBytes(1));
    const { streams } = world.bus.jetstream;
    const { config, state } = await streams.info(STREAMS.renderJobs);
    await streams.update(STREAMS.renderJobs, { max_bytes: state.bytes });
    try {
      expect((await refusalOf(store.putBytes("more", randomBytes(1)))).code).to.equal(
        "storage_full",
      );
      await store.remove("fill>>>???");
      await store.remove("fill>>>???");
      await store.remove("never stored");
      expect(await store.get("fill>>>???")).to.equal(undefined);
      const after = await streams.info(STREAMS.renderJobs);
      expect(after.state.messages).to.equal(state.messages - 2);
      await store.putBytes("m", randomBytes(1));
    } finally {
      await streams.update(STREAMS.renderJobs, { max_bytes: config.max_bytes });
    }
  });

  it("nats object lists, describes and reads what put() stored", async function () {
    const cli = await natsCliOrSkip(this);
    const content = randomBytes(BLOB_CHUNK_BYTES + 5);
    await store.put("account/job.pdf", pieces(content), {
      description: "application/pdf",
    });
    const nats = (...words: string[]) => run(cli, ["--server", world.url, "object", ...words]);
    expect((await nats("ls", RENDER_JOBS_STORE.bucket)).stdout).to.contain("account/job.pdf");
    const { stdout: described } = await nats("info", RENDER_JOBS_STORE.bucket, "account/job.pdf");
    expect(described).to.contain("application/pdf");
    const folder = await mkdtemp(join(tmpdir(), "trunkline-object-"));
    const file = join(folder, "job.pdf");
    try {
      await nats(
        "get",
        RENDER_JOBS_STORE.bucket,
        "account/job.pdf",
        "--output",
        file,
        "--no-progress",
      );
      expect(await readFile(file)).to.deep.equal(content);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

async function* pieces(content: Uint8Array) {
  for (let from = 0; from < content.length; from += 100_000) {
    yield content.subarray(from, from + 100_000);
  }
}
