import { createHash } from "node:crypto";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { SeededRandom } from "../../../scripts/testing/seeded-random.ts";
import { Checkout, runGitClient } from "../testing/git-world.ts";
import { GEOMETRIC_FACTOR, joinedPacks } from "./joined-packs.ts";

describe("joinedPacks()", function () {
  this.timeout(120_000);
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-packs-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const packsOf = async (packs: string) =>
    (await readdir(packs)).filter((name) => name.endsWith(".idx"));

  /** Makes packs with these numbers of objects, and returns which of the numbers git has joined, and its prediction. */
  async function joined(counts: readonly number[]): Promise<{ git: number[]; here: number[] }> {
    const place = new Checkout(await mkdtemp(join(folder, "repo-")));
    await place.git("init", "-q", "--bare", ".");
    const packs = join(place.folder, "objects/pack");
    const countOf = new Map<string, number>();
    for (const [number, count] of counts.entries()) {
      const contents = Array.from({ length: count }, (_, at) => `${number} ${at}`);
      const ids = contents.map((text) =>
        createHash("sha1").update(`blob ${text.length}\0${text}`).digest("hex"),
      );
      const stream = contents.map((text) => `blob\ndata ${text.length}\n${text}\n`).join("");
      const unpacked = ["-c", "fastimport.unpackLimit=1000", "fast-import", "--quiet"];
      await runGitClient(place.folder, unpacked, stream);
      const packing = ["pack-objects", "-q", join(packs, "pack")];
      const { stdout } = await runGitClient(place.folder, packing, `${ids.join("\n")}\n`);
      countOf.set(`pack-${stdout.trim()}.idx`, count);
    }
    const before = await packsOf(packs);
    expect(before).to.have.length(counts.length);
    const files = before.map(async (name) => {
      const { size: indexBytes } = await stat(join(packs, name));
      return { indexBytes, count: countOf.get(name) ?? 0 };
    });
    const here = joinedPacks(await Promise.all(files)).map(({ count }) => count);
    await place.git("repack", "-q", "-n", "-d", `--geometric=${GEOMETRIC_FACTOR}`);
    const after = await packsOf(packs);
    const git = before
      .filter((name) => !after.includes(name))
      .map((name) => countOf.get(name) ?? 0);
    const sorted = (numbers: number[]) => numbers.toSorted((one, other) => one - other);
    return { git: sorted(git), here: sorted(here) };
  }

  it("returns the packs that git joins", async () => {
    const seed = Number(process.env.TRUNKLINE_TEST_SEED ?? SeededRandom.newSeed());
    console.log(`      TRUNKLINE_TEST_SEED=${seed}`);
    const random = new SeededRandom(seed);
    const some = Array.from({ length: 6 }, () =>
      Array.from({ length: random.integer(2, 7) }, () => random.integer(1, 20)),
    );
    for (const counts of [[5], [1, 2, 4, 8], [3, 3, 3, 1], [1, 1, 3, 40], [9, 1, 4, 2], ...some]) {
      const { git, here } = await joined(counts);
      expect(here, counts.join(" ")).to.deep.equal(git);
    }
  });
});
