import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { RowNames } from "../../../actors/runtime/commit/stored-subjects.ts";
import { systemClock } from "../../../actors/runtime/lib/clock.ts";
import { BlobStore } from "../../../actors/runtime/store/blob-store.ts";
import { gitStorage } from "../../../schemas/repositories/git-storage.ts";
import { PACK_SWEEP } from "../../../schemas/repositories/pack-sweep.ts";
import { packBlob } from "../../../schemas/repositories/repo.ts";
import { until } from "../../../scripts/testing/until.ts";
import { ACCOUNT, GitWorld } from "../testing/git-world.ts";
import { sweepPacks } from "./sweep-packs.ts";

/** A pack may be removed by the second sweep that finds it unnamed. */
const TIMES = { heldMs: 0, graceMs: 0, everyMs: 24 * 60 * 60_000 };
const PACK_BYTES = 1_000;

describe("sweepPacks()", function () {
  this.timeout(120_000);
  let world: GitWorld;
  beforeEach(async () => {
    world = await GitWorld.start({ sweepTimes: TIMES });
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const sha256s = ["a", "b", "c"].map((digit) => digit.repeat(64));

  function storedBlobs() {
    return new BlobStore(world.world.bus, systemClock);
  }

  async function sweep(
    signal: AbortSignal,
    /** Called after each removal. */
    removed = () => {},
  ): Promise<void> {
    const blobs = storedBlobs();
    const swept = {
      names: blobs.names.bind(blobs),
      size: blobs.size.bind(blobs),
      lastSequence: blobs.lastSequence.bind(blobs),
      removeUpTo: async (name: string, sequence: number) => {
        await blobs.removeUpTo(name, sequence);
        removed();
      },
    };
    const rows = new RowNames(world.world.bus, { buckets: 1 });
    const { client } = world.world;
    await sweepPacks(
      { blobs: swept, rows },
      { key: PACK_SWEEP, signal, call: client.call.bind(client) },
    );
  }

  async function countedBytes(): Promise<number> {
    return (await world.actors.call(gitStorage, ACCOUNT, "get", {})).bytes;
  }

  it("frees the bytes of packs that a stopped sweep has removed", async () => {
    for (const sha256 of sha256s) {
      await storedBlobs().put(packBlob(ACCOUNT, sha256), randomBytes(PACK_BYTES));
    }
    await world.actors.call(gitStorage, ACCOUNT, "add", { bytes: 4 * PACK_BYTES });
    await sweep(AbortSignal.timeout(60_000));
    expect(await countedBytes()).to.equal(4 * PACK_BYTES);

    const stopping = new AbortController();
    const stop = () => stopping.abort();
    const stopped = await sweep(stopping.signal, stop).catch((error: unknown) => error);
    expect(stopped).to.have.property("name", "AbortError");
    expect([...(await storedBlobs().names("git"))]).to.have.length(2);

    await sweep(AbortSignal.timeout(60_000));
    expect([...(await storedBlobs().names("git"))]).to.deep.equal([]);
    const isFreed = async () => (await countedBytes()) === PACK_BYTES;
    await until("the removed packs no longer count", isFreed, 60_000);
    await sweep(AbortSignal.timeout(60_000));
    expect(await countedBytes()).to.equal(PACK_BYTES);
  });
});
