import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { processStat } from "./process-stat.ts";
import { until } from "./until.ts";

describe("processStat", function () {
  this.timeout(60_000);

  it("reads a name with brackets and blanks, and the fields behind it", async () => {
    const folder = await mkdtemp(join(tmpdir(), "process-stat-"));
    const program = join(folder, "a) R (1 2");
    await copyFile("/bin/sleep", program);
    const child = spawn(program, ["60"], { stdio: "ignore" });
    await once(child, "spawn");
    const stat = await until("it runs its program", () => {
      const found = processStat(child.pid ?? 0);
      return found?.name === "a) R (1 2" && found.state === "S" && found;
    });
    expect(stat.parent).to.equal(process.pid);
    expect(Number(stat.started)).to.be.at.least(Number(processStat(process.pid)?.started));
    child.kill();
    await once(child, "exit");
    expect(processStat(child.pid ?? 0)).to.equal(undefined);
    await rm(folder, { recursive: true });
  });

  it("counts the processor time of the process, and apart from it that of its ended descendants", () => {
    const before = processStat(process.pid);
    const { user, system } = process.cpuUsage();
    // Ticks are counted at their end, so the two readings may differ by one tick of each sort.
    expect(before?.processorMs).to.be.closeTo((user + system) / 1_000, 100);
    execFileSync(process.execPath, ["-e", "for (let i = 0; i < 2e8; i++);"]);
    const after = processStat(process.pid);
    const own = (after?.processorMs ?? 0) - (before?.processorMs ?? 0);
    const all = (after?.processorMsWithEnded ?? 0) - (before?.processorMsWithEnded ?? 0);
    expect(all - own).to.be.above(10);
  });
});
