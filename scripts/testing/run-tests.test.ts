import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";

const RUN_TESTS = join(import.meta.dirname, "run-tests.ts");

describe("run-tests", function () {
  this.timeout(180_000);
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-test-"));
  });
  after(() => rm(folder, { recursive: true }));

  it("run() adds up the files it is given and ends with one line", async () => {
    const good = await testFile(
      "good",
      'it("a", () => {}); it("b", () => {}); it.skip("c", () => {});',
    );
    const bad = await testFile("bad", 'it("d", () => { throw new Error("no"); });');
    const run = runTests(good, bad);
    expect(run.lastLine).to.equal("2 passed, 1 failed, 1 skipped");
    expect(run.status).to.equal(1);
  });

  it("run() succeeds where every test passes and hands parameters to mocha", async () => {
    const file = await testFile("some", 'it("one", () => {}); it("two", () => { throw 1; });');
    const run = runTests(file, "--grep", "one");
    expect(run.lastLine).to.equal("1 passed, 0 failed");
    expect(run.status).to.equal(0);
  });

  it("run() fails where no test ran", async () => {
    const file = await testFile("none", 'it("one", () => {});');
    expect(runTests(file, "--grep", "another")).to.include({ status: 1 });
  });

  it("run() counts a file that does not load as failed", async () => {
    const file = await testFile("broken", "throw new Error('broken');");
    expect(runTests(file).lastLine).to.equal("0 passed, 1 failed");
  });

  it("run() counts a file that ends in the middle as failed", async () => {
    const file = await testFile("ends", 'it("one", () => process.exit(0));');
    expect(runTests(file).lastLine).to.equal("0 passed, 1 failed");
  });

  it("run() says at its end what failed, and nothing else of those files", async () => {
    const bad = await testFile(
      "early",
      'it("fine", () => {}); it("wrong", () => { throw new Error("no way"); });',
    );
    const late = await testFile("late", 'it("good", () => {});');
    const { output } = runTests(bad, late);
    const [, end = ""] = output.split("== what failed\n");
    expect(end).to.match(/early\.test\.ts.*1 failing.*wrong.*no way/s);
    expect(end).not.to.match(/fine|good/);
  });

  it("run() ends and names a process that a test left behind", async function () {
    if (process.platform !== "linux") this.skip();
    const left = await testFile(
      "leaves",
      `it("one", async () => {
        const { spawn } = await import("node:child_process");
        const child = spawn("sleep", ["300"], { detached: true, stdio: "ignore" });
        child.unref();
        console.log("left", child.pid);
      });`,
    );
    const run = runTests(left);
    expect(run.lastLine).to.equal("1 passed, 1 failed");
    expect(run.output).to.match(/left processes behind: \d+ sleep 300/);
    const pid = /left (\d+)/.exec(run.output)?.[1];
    const list = `/proc/${pid}/cmdline`; // Empty while its parent has not heard of its end.
    expect(existsSync(list) && readFileSync(list, "utf8")).to.be.oneOf([false, ""]);
  });

  it("run() waits for a process that ends by itself once its test has", async () => {
    const ends = await testFile(
      "ends",
      `it("one", async () => {
        const { spawn } = await import("node:child_process");
        const child = spawn("sh", ["-c", "cat; sleep 0.5"], { stdio: ["pipe", "ignore", "ignore"] });
        child.unref();
        child.stdin.unref();
      });`,
    );
    expect(runTests(ends).lastLine).to.equal("1 passed, 0 failed");
  });

  async function testFile(name: string, body: string): Promise<string> {
    const path = join(folder, `${name}.test.ts`);
    await writeFile(path, body);
    return path;
  }
});

function runTests(...parameters: string[]) {
  const { stdout, status } = spawnSync(process.execPath, [RUN_TESTS, ...parameters], {
    encoding: "utf8",
  });
  return { status, output: stdout, lastLine: stdout.trimEnd().split("\n").at(-1) };
}
