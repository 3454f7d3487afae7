import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect } from "chai";
import { FakeTime } from "./fake-time.ts";

const DAY_MS = 86_400_000;
/** Prints for each line that it reads the time of day by three ways, a date, and the monotonic time. */
const PROGRAM = `
import { createInterface } from "node:readline";
for await (const _ of createInterface(process.stdin)) {
  console.log(JSON.stringify({
    times: [Date.now(), new Date().getTime(), Date.parse(Date())],
    isDate: new Date() instanceof Date && new Date(5).getTime() === 5,
    monotonic: performance.now(),
  }));
}`;

describe("FakeTime", function () {
  this.timeout(60_000);

  it("without libfaketime, changes the time of day of a process that runs, and no monotonic time", async () => {
    const folder = await mkdtemp(join(tmpdir(), "trunkline-time-"));
    const time = await FakeTime.start(folder, null);
    const child = execFile(process.execPath, ["--input-type=module", "--eval", PROGRAM], {
      env: { ...process.env, ...time.environment },
    });
    try {
      const { stdin, stdout } = child;
      if (!stdin || !stdout) throw new Error("no streams");
      const lines = createInterface(stdout)[Symbol.asyncIterator]();
      const look = async () => {
        stdin.write("\n");
        return JSON.parse((await lines.next()).value ?? "");
      };
      const startAt = Date.now();
      let monotonic = 0;
      for (const days of [0, 4, -1]) {
        await time.jumpTo((days * DAY_MS) / 1_000);
        await new Promise((resolve) => setTimeout(resolve, 50));
        const seen = await look();
        const passedMs = Date.now() - startAt;
        for (const at of seen.times) {
          // The text of a date has whole seconds.
          expect(at - startAt - days * DAY_MS).to.be.within(-1_000, passedMs);
        }
        expect(seen.isDate).to.equal(true);
        expect(seen.monotonic - monotonic).to.be.within(0, DAY_MS / 2);
        ({ monotonic } = seen);
      }
    } finally {
      child.kill();
      await rm(folder, { recursive: true });
    }
  });
});
