import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { SeededRandom } from "../../../scripts/testing/seeded-random.ts";
import type { RawEntry } from "../read/read-parse.ts";
import { runGitClient } from "../testing/git-world.ts";
import { makeObject } from "./commit-changes.ts";
import { changeTree, keyOf } from "./tree-content.ts";

const FILE = "100644";
const DIRECTORY = "40000";

describe("changeTree()", function () {
  this.timeout(120_000);
  let cwd: string;
  before(async () => {
    cwd = await mkdtemp(join(tmpdir(), "trunkline-tree-"));
    await runGitClient(cwd, ["init", "-q"]);
  });
  after(() => rm(cwd, { recursive: true }));

  /** Returns the id of the tree that git makes of these entries. */
  async function idByGit(entries: readonly RawEntry[]): Promise<string> {
    const lines = entries.map(({ name, mode, hash }) => {
      const type = mode === DIRECTORY ? "tree" : "blob";
      return Buffer.concat([Buffer.from(`${mode} ${type} ${hash}\t`), name, Buffer.alloc(1)]);
    });
    const made = await runGitClient(cwd, ["mktree", "--missing", "-z"], Buffer.concat(lines));
    return made.stdout.trim();
  }

  it("makes the trees that git makes, whatever was added, replaced and removed before", async () => {
    const seed = Number(process.env.TRUNKLINE_TEST_SEED ?? SeededRandom.newSeed());
    console.log(`      TRUNKLINE_TEST_SEED=${seed}`);
    const random = new SeededRandom(seed);
    // Names that are alike up to bytes on both sides of the slash, by which git orders directories.
    const steps = ["a", "b", "-", ".", "0", "é", "\u{1f600}"];
    const nameOf = () =>
      Array.from({ length: random.integer(1, 4) }, () => random.pick(steps)).join("");
    const isName = (name: string) => name !== "." && name !== "..";
    const known = new Map<string, RawEntry>();
    let content: Buffer = Buffer.alloc(0);
    for (let round = 0; round < 60; round++) {
      const names = Array.from({ length: random.integer(1, 12) }, nameOf).filter(isName);
      const changed = new Map<string, RawEntry | undefined>();
      for (const name of names) {
        const bytes = Buffer.from(name);
        const mode = random.chance(0.5) ? FILE : DIRECTORY;
        const hash = String(random.integer(1, 9)).repeat(40);
        changed.set(keyOf(bytes), random.chance(0.3) ? undefined : { name: bytes, mode, hash });
      }
      for (const [key, entry] of changed) {
        if (entry) known.set(key, entry);
        else known.delete(key);
      }
      const added = [...changed.values()].filter((entry) => entry !== undefined);
      content = await changeTree(content, new Set(changed.keys()), added);
      expect(makeObject("tree", content).id).to.equal(await idByGit([...known.values()]));
    }
  });
});
