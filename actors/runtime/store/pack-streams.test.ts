import { expect } from "chai";
import { BLOB_CHUNK_BYTES } from "../../../schemas/limits.ts";
import { blobSubjects } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { patternAt } from "../../../scripts/testing/echo-worker.ts";
import { systemClock } from "../lib/clock.ts";
import { BlobStore } from "./blob-store.ts";

const NAMES = Array.from({ length: 12 }, (_, number) => `git.account-${number}.pack-${number}`);

describe("several streams of packs", function () {
  this.timeout(60_000);
  let world: World;
  let blobs: BlobStore;
  before(async () => {
    world = await startWorld({ layout: { packStreams: 4 } });
    blobs = new BlobStore(world.bus, systemClock);
  });
  after(() => world[Symbol.asyncDispose]());

  it("keep the packs of each account in one of them, and a listing finds all", async () => {
    const content = patternAt(0, BLOB_CHUNK_BYTES + 1);
    for (const name of NAMES) await blobs.put(name, content);
    expect(await blobs.names("git")).to.deep.equal(new Set(NAMES));
    const used = new Set(NAMES.map((name) => blobSubjects(name, 4).stream));
    expect([...used]).to.have.members(["PACKS", "PACKS-1", "PACKS-2", "PACKS-3"]);
    for (const name of NAMES) {
      const { stream, all } = blobSubjects(name, 4);
      expect(await world.count(stream, all)).to.equal(2);
      expect(Buffer.concat(await Array.fromAsync(blobs.get(name))).equals(content)).to.equal(true);
      expect(await blobs.isWhole(name)).to.equal(true);
      await blobs.removeUpTo(name, (await blobs.lastSequence(name)) ?? 0);
      expect(await blobs.has(name)).to.equal(false);
    }
    expect(await blobs.names("git")).to.deep.equal(new Set());
  });

  it("take small packs of several accounts in one batch for each stream", async () => {
    const many = Array.from({ length: 60 }, (_, number) => ({
      ...{ name: `git.account-${number}.small`, content: Buffer.from(String(number)) },
    }));
    await blobs.putAll(many);
    for (const { name, content } of many) {
      const stored = Buffer.concat(await Array.fromAsync(blobs.get(name)));
      expect(stored.equals(content), name).to.equal(true);
    }
  });
});
