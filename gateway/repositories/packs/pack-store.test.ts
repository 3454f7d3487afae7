import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { systemClock } from "../../../actors/runtime/lib/clock.ts";
import { BlobStore } from "../../../actors/runtime/store/blob-store.ts";
import { UPKEEP_SMALL_BYTES, UPKEEP_STREAM_SHARE } from "../../../schemas/store-limits.ts";
import { STREAMS } from "../../../schemas/subjects.ts";
import { ACCOUNT, GitWorld } from "../testing/git-world.ts";
import { AccountStorage } from "./account-storage.ts";
import { PackStore } from "./pack-store.ts";

const STREAM_BYTES = 16 * 1024 ** 2;
/** Less than the real headers and subjects of the messages of one pack. */
const OVERHEAD_BYTES = 64 * 1024;

describe("PackStore", function () {
  this.timeout(120_000);
  let world: GitWorld;
  let packs: PackStore;
  beforeEach(async () => {
    world = await GitWorld.start();
    const { bus } = world.world;
    await bus.jetstream.streams.update(STREAMS.packs, { max_bytes: STREAM_BYTES });
    packs = packsWithin(0);
  });
  afterEach(() => world[Symbol.asyncDispose]());

  function packsWithin(bytesMax: number): PackStore {
    const { client, bus } = world.world;
    const storage = new AccountStorage(client, { now: Date.now, bytesMax: () => bytesMax });
    return new PackStore(new BlobStore(bus, systemClock), client, { storage });
  }

  function put(bytes: number, isUpkeep: boolean): ReturnType<PackStore["put"]> {
    const whole = { pack: randomBytes(bytes), index: Buffer.alloc(0) };
    const files = { pack: "", index: "", whole };
    return packs.put(ACCOUNT, files, AbortSignal.timeout(60_000), { isUpkeep });
  }

  it("put() postpones upkeep that would fill the stream past UPKEEP_STREAM_SHARE, and no push", async () => {
    const free = UPKEEP_STREAM_SHARE * STREAM_BYTES - UPKEEP_SMALL_BYTES;
    await put(Math.floor(free) - OVERHEAD_BYTES, true);
    const refused = await put(UPKEEP_SMALL_BYTES + OVERHEAD_BYTES, true).catch((error) => error);
    expect(refused).to.include({ code: "storage_full" });
    expect(refused.message).to.contain("Cannot compact").and.to.contain("85 % of its 16777216");
    await put(UPKEEP_SMALL_BYTES + OVERHEAD_BYTES, false);
    // The packs of small upkeep are always stored.
    await put(UPKEEP_SMALL_BYTES - 1, true);
  });

  it("put() stores upkeep up to twice the limit of the account, and a small pack of upkeep always", async () => {
    const unit = UPKEEP_SMALL_BYTES;
    packs = packsWithin(2 * unit);
    const codeOf = (bytes: number, isUpkeep: boolean) =>
      put(bytes, isUpkeep).then(
        () => undefined,
        ({ code }) => code,
      );
    expect(await codeOf(2 * unit, false)).to.equal(undefined);
    expect(await codeOf(unit, false)).to.equal("storage_full");
    expect(await codeOf(2 * unit, true)).to.equal(undefined);
    expect(await codeOf(unit, true)).to.equal("storage_full");
    expect(await codeOf(unit - 1, true)).to.equal(undefined);
  });
});
