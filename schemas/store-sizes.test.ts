import { expect } from "chai";
import { STORE_BYTES_SETTING_MIN } from "./store-limits.ts";
import {
  FIXED_BYTES,
  leastBytes,
  SIZED_STORES,
  type StoreSizes,
  storeSizes,
} from "./store-sizes.ts";

const GIB = 1024 ** 3;
const sum = (sizes: StoreSizes) => SIZED_STORES.reduce((all, store) => all + sizes[store], 0);

describe("storeSizes()", () => {
  it("gives a disk of unknown size 16 GiB of packs and 4 GiB of agents", () => {
    const { packs, agents } = storeSizes();
    expect(packs / GIB).to.be.within(15.5, 16.5);
    expect(agents / GIB).to.be.within(3.5, 4.5);
  });

  it("never divides more than the bytes, and grows every store with them", () => {
    let before = storeSizes(4 * GIB);
    for (const bytes of [5, 10, 36, 100, 4_000].map((gib) => gib * GIB)) {
      const sizes = storeSizes(bytes);
      expect(sum(sizes), String(bytes)).to.be.at.most(bytes - 2 * GIB);
      for (const store of SIZED_STORES) expect(sizes[store]).to.be.at.least(before[store]);
      expect(sizes.packs).to.be.above(before.packs);
      before = sizes;
    }
  });

  it("leaves set sizes as they are, and divides the rest", () => {
    const sizes = storeSizes(100 * GIB, { packs: 60 * GIB });
    expect(sizes.packs).to.equal(60 * GIB);
    expect(sum(sizes)).to.be.at.most(100 * GIB);
    expect(sizes.crawl).to.equal(2 * sizes.renderJobs);
  });

  it("accepts any settings with the fewest bytes that leastBytes() returns, and not with one less", () => {
    for (const wanted of [{ packs: 60 * GIB }, { agents: STORE_BYTES_SETTING_MIN }]) {
      expect(storeSizes(leastBytes(wanted), wanted)).to.include(wanted);
      expect(() => storeSizes(leastBytes(wanted) - 2, wanted)).to.throw("expected at most");
    }
  });

  it("refuses set sizes that leave no room for the others, and accepts exactly those that fit", () => {
    // All streams of a fixed size, and the smallest size of the three stores that are not set.
    const room = 100 * GIB - FIXED_BYTES - 3 * STORE_BYTES_SETTING_MIN;
    const fitting = { packs: room - 5 * GIB, agents: 5 * GIB };
    const sizes = storeSizes(100 * GIB, fitting);
    expect(sizes).to.include({ ...fitting, apps: STORE_BYTES_SETTING_MIN });
    const tooMuch = { ...fitting, agents: 5 * GIB + 1 };
    expect(() => storeSizes(100 * GIB, tooMuch)).to.throw(
      `TRUNKLINE_PACKS_BYTES + TRUNKLINE_AGENTS_BYTES: expected at most ${room} together, for which the disk of the bus or TRUNKLINE_STORE_BYTES has room, found "${room + 1}"`,
    );
  });
});
