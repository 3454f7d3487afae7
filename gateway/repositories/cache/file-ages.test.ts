import { expect } from "chai";
import { GIT_CACHE_GRACE_MS } from "../../../schemas/repositories/limits.ts";
import { FileAges } from "./file-ages.ts";

const DAY_MS = 86_400_000;

describe("FileAges", () => {
  const clock = { ahead: 1_800_000_000_000, monotonic: 0 };
  const now = () => clock.ahead + clock.monotonic;
  const begin = () => new FileAges(now, () => clock.monotonic);

  it("counts a file as left once it is older than GIT_CACHE_GRACE_MS, not before", () => {
    const ages = begin();
    const at = now();
    clock.monotonic += GIT_CACHE_GRACE_MS;
    expect(ages.isPastGrace(at)).to.equal(false);
    clock.monotonic += 1;
    expect(ages.isPastGrace(at)).to.equal(true);
  });

  it("does not count a time by which the clock was set ahead until the uses of that moment have ended", () => {
    const ages = begin();
    const used = now();
    const left = now() - GIT_CACHE_GRACE_MS - 1;
    clock.ahead += DAY_MS;
    expect(ages.isPastGrace(used)).to.equal(false);
    expect(ages.isPastGrace(left)).to.equal(true);
    clock.ahead += DAY_MS;
    expect(ages.isPastGrace(used)).to.equal(false);
    expect(ages.isPastGrace(now())).to.equal(false);
    clock.monotonic += GIT_CACHE_GRACE_MS + 1;
    expect(ages.isPastGrace(used)).to.equal(true);
    expect(ages.isPastGrace(now() - 1)).to.equal(false);
  });

  it("keeps files longer after the clock was set back, and is right again after it was set right", () => {
    const ages = begin();
    const at = now();
    clock.ahead -= DAY_MS;
    clock.monotonic += GIT_CACHE_GRACE_MS + 1;
    expect(ages.isPastGrace(at)).to.equal(false);
    expect(ages.isPastGrace(now())).to.equal(false);
    clock.ahead += DAY_MS;
    expect(ages.isPastGrace(at)).to.equal(false);
    clock.monotonic += GIT_CACHE_GRACE_MS + 1;
    expect(ages.isPastGrace(at)).to.equal(true);
  });
});
