import { spawnSync } from "node:child_process";
import { mkdtempDisposable, readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { returnMemory } from "./return-memory.ts";

const MODULE = JSON.stringify(join(import.meta.dirname, "return-memory.ts"));

/**
 * A program that another process kills right after it has returned memory. Before `process.kill` of its own process,
 * Node would store what it compiled.
 */
const KILLED = `
  import { spawnSync } from "node:child_process";
  import { returnMemory } from ${MODULE};
  returnMemory();
  spawnSync("kill", ["-KILL", String(process.pid)]);
`;

/** A program with a young generation of 16 MB, as the start leaves it. Prints its size before and after. */
const GROWN = `
  import { getHeapSpaceStatistics } from "node:v8";
  import { returnMemory } from ${MODULE};
  const youngBytes = () =>
    getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space").physical_space_size;
  const kept = [];
  for (let round = 0; youngBytes() < 16_000_000 && round < 5_000; round++) {
    kept[round % 20] = Array.from({ length: 10_000 }, (_, index) => ({ index }));
  }
  const before = youngBytes();
  returnMemory();
  console.log(JSON.stringify({ before, after: youngBytes() }));
`;

describe("returnMemory()", function () {
  this.timeout(60_000);

  it("collects garbage", () => {
    returnMemory();
    const before = bytesWith(400_000);
    returnMemory();
    expect(before - process.memoryUsage().heapUsed).to.be.above(10_000_000);
  });

  it("shrinks the young generation", () => {
    const parameters = ["--max-semi-space-size=16", "--input-type=module", "--eval", GROWN];
    const { stdout, stderr } = spawnSync(process.execPath, parameters, { encoding: "utf8" });
    expect(stderr).to.equal("");
    const { before, after } = JSON.parse(stdout) as { before: number; after: number };
    expect(before).to.be.above(16_000_000);
    expect(after).to.be.below(4_000_000);
  });

  it("stores the compiled code, so that the next start has it even if this process is killed", async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), "trunkline-compiled-"));
    const { signal } = spawnSync(process.execPath, ["--input-type=module", "--eval", KILLED], {
      env: { ...process.env, NODE_COMPILE_CACHE: folder.path },
    });
    expect(signal).to.equal("SIGKILL");
    const stored = await readdir(folder.path, { recursive: true, withFileTypes: true });
    expect(stored.filter((entry) => entry.isFile())).to.have.length.above(0);
  });
});

/** Returns the bytes of heap in use while `count` objects exist. */
function bytesWith(count: number): number {
  const objects = Array.from({ length: count }, (_, index) => ({ index, text: String(index) }));
  const { heapUsed } = process.memoryUsage();
  expect(objects).to.have.length(count);
  return heapUsed;
}
