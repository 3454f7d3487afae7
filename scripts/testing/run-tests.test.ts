import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { until } from "./until.ts";

const RUN_TESTS = join(import.meta.dirname, "run-tests.ts");
const PROCESS_FOLDERS = join(
  import.meta.dirname,
  "../../actors/apps/lib/app-host/process-folders.ts",
);
const NATS_SERVER = join(import.meta.dirname, "nats-server.ts");

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

  it("run() prints nothing of files in which no test matches", async () => {
    const file = await testFile("matches", 'it("this one", () => {});');
    const other = await testFile(
      "no-match",
      'it("that one", () => {}); it.skip("third", () => {});',
    );
    const run = runTests(file, other, "--grep", "this");
    expect(run.output).to.match(/matches\.test\.ts.*this one/s);
    // On a slow machine the file is among the slowest, which follow the outputs of all files.
    const [outputs = ""] = run.output.split(/^== /m);
    expect(outputs).not.to.match(/no-match|0 passing/);
  });

  it("run() fails where nothing matches, and names what it looked for", () => {
    const word = ["no", "such", "place"].join("/");
    const run = runTests(word);
    expect(run.status).to.equal(1);
    expect(run.errors).to.include(`No test matches "${word}"`);
  });

  it("run() refuses an option that it does not know, and a number of workers that is none", () => {
    expect(runTests("--gerp", "x")).to.include({ status: 2 });
    expect(runTests("--workers", "0").errors).to.match(/--workers: expected .* found "0"/);
  });

  it("run() counts a file that does not load as failed", async () => {
    const file = await testFile("broken", "throw new Error('broken');");
    expect(runTests(file).lastLine).to.equal("0 passed, 1 failed");
  });

  it("run() counts a file that ends in the middle as failed", async () => {
    const file = await testFile("ends", 'it("one", () => process.exit(0));');
    expect(runTests(file).lastLine).to.equal("0 passed, 1 failed");
  });

  it("run() says what failed in a file that ends in the middle", async () => {
    const file = await testFile(
      "ends-after",
      'it("bad", () => { throw new Error("no way"); }); it("ends", () => process.exit(0));',
    );
    const run = runTests(file);
    expect(run.lastLine).to.equal("0 passed, 2 failed");
    expect(run.output.split("== what failed")[1]).to.match(/bad\nError: no way.*before its last/s);
  });

  it("run() counts a promise that is rejected unheard as a failure of its test", async () => {
    const file = await testFile(
      "unheard",
      `it("one", async () => {
        Promise.reject(new Error("unheard"));
        await new Promise((resolve) => setTimeout(resolve, 50));
      });`,
    );
    const run = runTests(file);
    expect(run.lastLine).to.equal("0 passed, 1 failed");
    expect(run.output).to.include("unheard");
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

  it("run() names the slowest files with their seconds", async () => {
    const slow = await testFile(
      "slow",
      'it("waits", () => new Promise((resolve) => setTimeout(resolve, 1_100)));',
    );
    const quick = await testFile("quick", 'it("ends", () => {});');
    const [, table = ""] = runTests(quick, slow).output.split("== the slowest files\n");
    expect(table).to.match(/^ +\d+\.\d s {2}.*slow\.test\.ts$/m);
    expect(table).to.match(/^== 2 files in \d+ s(, \d+ s of processor time)?$/m);
  });

  it("run() names the files that took most processor time, their processes included", async function () {
    if (process.platform !== "linux") this.skip();
    const work = `const end = process.cpuUsage().user + 1_200_000;
      while (process.cpuUsage().user < end) for (let n = 0; n < 1e6; n++);`;
    const busy = await testFile(
      "busy",
      `it("works", () => {
        require("node:child_process").execFileSync(process.execPath, ["-e", ${JSON.stringify(work)}]);
      });`,
    );
    const idle = await testFile(
      "idle",
      'it("waits", () => new Promise((resolve) => setTimeout(resolve, 1_100)));',
    );
    const [, table = ""] = runTests(busy, idle).output.split("took most processor time\n");
    expect(table).to.match(/^ +[1-9][\d.]+ s {2}.*busy\.test\.ts\n/);
  });

  it("run() prints a result when it is there, not when its file ends", async () => {
    const heard = join(folder, "heard");
    const file = await testFile(
      "streams",
      `import { existsSync } from "node:fs";
      it("first result", () => {});
      it("second result", async () => {
        while (!existsSync(${JSON.stringify(heard)})) {
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
      });`,
    );
    const run = new Started(file);
    await run.printed(/first result/);
    await writeFile(heard, "");
    expect(await run.code()).to.equal(0);
  });

  describe("processes", () => {
    const saysProcess = 'it("one", () => { console.log("process", process.pid); });';

    it("run() gives quick files one after another to the same process", async () => {
      const files = [await testFile("first", saysProcess), await testFile("second", saysProcess)];
      expect(processesOf(runTests("--workers", "1", ...files))).to.have.length(1);
    });

    it("run() gives each file of fault tests a process of its own", async () => {
      const files = [
        await testFile("first.faults", saysProcess),
        await testFile("second.faults", saysProcess),
      ];
      expect(processesOf(runTests("--workers", "1", ...files))).to.have.length(2);
    });

    it("run() gives no file the process in which another one failed", async () => {
      const bad = await testFile(
        "fails",
        `${saysProcess} it("two", () => { throw new Error("no"); });`,
      );
      const good = await testFile("good-one", saysProcess);
      expect(processesOf(runTests("--workers", "1", bad, good))).to.have.length(2);
    });

    function processesOf({ output }: { output: string }): Set<string> {
      return new Set(Array.from(output.matchAll(/^process (\d+)$/gm), ([, pid = ""]) => pid));
    }
  });

  describe("--rerun-failed", () => {
    it("run() passes where a file that failed passes by itself, and names its test as flaky", async () => {
      const file = await failingTimes("flaky", 1);
      const run = runTests("--rerun-failed", file);
      expect(run.output).to.match(/^flaky: \S*flaky\.test\.ts: suite sometimes$/m);
      expect(run.lastLine).to.equal("2 passed, 0 failed");
      expect(run.status).to.equal(0);
    });

    it("run() fails where a file fails twice: there is no third try", async () => {
      const file = await failingTimes("twice", 2);
      const run = runTests("--rerun-failed", file);
      expect(run.output).not.to.match(/^flaky/m);
      expect(run.output).to.match(/^failed: \S*twice\.test\.ts: suite sometimes: Error: not yet$/m);
      expect(run.lastLine).to.equal("1 passed, 1 failed");
      expect(run.status).to.equal(1);
    });

    it("run() tries no file again without it", async () => {
      expect(runTests(await failingTimes("once", 1))).to.include({ status: 1 });
    });

    function failingTimes(name: string, times: number): Promise<string> {
      const runs = JSON.stringify(join(folder, `${name}-runs`));
      return testFile(
        name,
        `import { appendFileSync, readFileSync } from "node:fs";
        describe("suite", () => {
          it("always", () => {});
          it("sometimes", () => {
            appendFileSync(${runs}, "x");
            if (readFileSync(${runs}, "utf8").length <= ${times}) throw new Error("not yet");
          });
        });`,
      );
    }
  });

  describe("what a file leaves behind", () => {
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
        "ends-late",
        `it("one", async () => {
        const { spawn } = await import("node:child_process");
        const child = spawn("sh", ["-c", "cat; sleep 0.5"], { stdio: ["pipe", "ignore", "ignore"] });
        child.unref();
        child.stdin.unref();
      });`,
      );
      expect(runTests(ends).lastLine).to.equal("1 passed, 0 failed");
    });

    it("run() names what a file leaves open", async () => {
      const file = await testFile(
        "open",
        `it("one", async () => {
          const { createServer } = await import("node:net");
          await new Promise((resolve) => createServer().listen(0, "127.0.0.1", resolve));
        });`,
      );
      const run = runTests(file, "--close-ms", "100");
      expect(run.lastLine).to.equal("1 passed, 1 failed");
      expect(run.output).to.match(/left something open: TCPServerWrap/);
    });

    /**
     * A test file's text. Its test starts a nats-server, a folder for app processes in shared memory, and a process
     * that has its own session and no mark of the run.
     */
    const STARTS_ALL = `
      import { spawn } from "node:child_process";
      import { mkdtemp } from "node:fs/promises";
      import { tmpdir } from "node:os";
      import { join } from "node:path";
      import { openProcessFolder } from ${JSON.stringify(PROCESS_FOLDERS)};
      import { startNats } from ${JSON.stringify(NATS_SERVER)};
      it("starts all", async () => {
        const nats = await startNats();
        const child = spawn("sleep", ["300"], { detached: true, stdio: "ignore", env: {} });
        await mkdtemp(join(tmpdir(), "made-"));
        const shared = await openProcessFolder();
        console.log("started", child.pid, new URL(nats.url).port, shared.path);`;

    it("run() leaves no process, port and folder behind when it is broken off", async () => {
      const signals = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
      for (const [signal, code] of Object.entries(signals)) {
        const file = await testFile(
          `broken-off-${signal}`,
          `${STARTS_ALL} await new Promise(() => {}); }).timeout(0);`,
        );
        const run = new Started(file);
        const line = await run.printed(/^started .*$/m);
        run.signal(signal as NodeJS.Signals);
        expect(await run.code(), signal).to.equal(code);
        await expectNothingLeft(run.temporary, line);
      }
    });

    it("run() leaves no process, port and folder behind when a test fails", async () => {
      const file = await testFile("fails-open", `${STARTS_ALL} throw new Error("no"); });`);
      const run = new Started(file);
      const line = await run.printed(/^started .*$/m);
      expect(await run.code()).to.equal(1);
      await expectNothingLeft(run.temporary, line);
    });

    async function expectNothingLeft(temporary: string, line: string): Promise<void> {
      const [, pid = "", port = "", shared = ""] = line.split(" ");
      await until("the process is gone", () => commandOf(pid) === "");
      const socket = connect(Number(port), "127.0.0.1");
      const [error] = await once(socket, "error");
      expect(error.code).to.equal("ECONNREFUSED");
      expect(readdirSync(temporary)).to.deep.equal([]);
      expect(existsSync(shared), shared).to.equal(false);
    }

    /** Returns the command line of a process. Empty if the process has ended. */
    function commandOf(pid: string): string {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8");
      } catch {
        return "";
      }
    }
  });

  async function testFile(name: string, body: string): Promise<string> {
    const path = join(folder, `${name}.test.ts`);
    await writeFile(path, body);
    return path;
  }

  /** A test run as a child process, with its own folder for temporary files. Tests can wait for its output. */
  class Started {
    readonly temporary: string;
    #output = "";
    readonly #child: ReturnType<typeof start>;
    readonly #closed: Promise<unknown[]>;

    constructor(...parameters: string[]) {
      this.temporary = join(folder, `tmp-${Math.random().toString(36).slice(2)}`);
      this.#child = start(this.temporary, parameters);
      this.#closed = once(this.#child, "close");
      this.#child.stdout.setEncoding("utf8").on("data", (text) => {
        this.#output += text;
      });
    }

    async printed(pattern: RegExp): Promise<string> {
      return until(`${pattern}`, () => pattern.exec(this.#output)?.[0], 120_000);
    }

    signal(name: NodeJS.Signals): void {
      this.#child.kill(name);
    }

    async code(): Promise<unknown> {
      const [code] = await this.#closed;
      return code;
    }
  }
});

function start(temporary: string, parameters: string[]) {
  void mkdir(temporary);
  return spawn(process.execPath, [RUN_TESTS, ...parameters], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, TMPDIR: temporary },
  });
}

function runTests(...parameters: string[]) {
  const { stdout, stderr, status } = spawnSync(process.execPath, [RUN_TESTS, ...parameters], {
    encoding: "utf8",
  });
  return { status, output: stdout, errors: stderr, lastLine: stdout.trimEnd().split("\n").at(-1) };
}
