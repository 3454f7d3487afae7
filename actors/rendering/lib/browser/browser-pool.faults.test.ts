import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { openEgress, openPool, print, startPrint } from "../../../../scripts/testing/printer.ts";
import { stopGroup } from "../../../../scripts/testing/process-children.ts";
import { refusalOf } from "../../../../scripts/testing/refusal.ts";
import { SkippingClock } from "../../../../scripts/testing/skipping-clock.ts";
import { WebSite } from "../../../../scripts/testing/web-site.ts";
import { systemClock } from "../../../runtime/lib/clock.ts";
import {
  BrowserDiedError,
  BrowserNotStartedError,
  RendererCrashedError,
} from "./browser-died-error.ts";
import type { BrowserPool } from "./browser-pool.ts";

const { signal } = new AbortController();
const A_PAGE = { html: "<title>a page</title>" };
const HANGING = {
  html: "<script>setTimeout(() => { while (true) {} })</script>",
  waitForTimeout: 60_000,
};

describe("BrowserPool", function () {
  this.timeout(90_000);

  it("newContext() shares no cookie, no storage and no cache with another", async () => {
    await using pool = openPool();
    await using site = await WebSite.start();
    const url = site.page("/", (_, response) => {
      response.setHeader("Set-Cookie", "visited=1; Max-Age=1000");
      response.end(`<body><script src="/cached.js"></script><script>
        document.title = [document.cookie, localStorage.length, sessionStorage.length];
        localStorage.visited = sessionStorage.visited = 1;
        indexedDB.databases().then(({ length }) => {
          document.title += "," + length;
          indexedDB.open("d").onsuccess = () => document.body.append(document.createElement("hr"));
        })
      </script>`);
    });
    site.page("/cached.js", (_, response) => {
      response
        .writeHead(200, { "Content-Type": "text/javascript", "Cache-Control": "max-age=1000" })
        .end();
    });
    for (let visit = 1; visit <= 3; visit++) {
      const pdf = await print(pool, { url, waitForSelector: { selector: "hr" } });
      expect(pdf.title).to.equal("visited=1,0,0,0");
      expect(site.headersOf("/").cookie).to.equal(undefined);
      expect(site.paths.filter((path) => path === "/cached.js")).to.have.length(visit);
    }
  });

  it("newContext() gives what was made ahead, and each only once", async () => {
    await using pool = openPool({ limits: { contextsWarm: 2 } });
    await pool.start();
    const contexts = await Promise.all([1, 2, 3, 4].map(() => pool.newContext(signal)));
    expect(new Set(contexts.map(({ egress }) => egress.url)).size).to.equal(4);
    for (const context of contexts) context.release();
  });

  it("newContext() gives what is ready first to who came first, whatever it was begun for", async () => {
    const gates: PromiseWithResolvers<void>[] = [];
    await using pool = openPool({
      limits: { contextsWarm: 1 },
      async openEgress() {
        const gate = Promise.withResolvers<void>();
        gates.push(gate);
        await gate.promise;
        return await openEgress();
      },
    });
    const begun = (count: number) => until(() => gates.length === count);
    const started = pool.start();
    await begun(1); // Ahead, for nobody yet.
    const order: string[] = [];
    const ask = async (who: string) => {
      const context = await pool.newContext(signal);
      order.push(who);
      return context;
    };
    const asked = [ask("first"), ask("second")];
    await begun(2); // One more: the first has what is being made already, or this one if it is ready before.
    gates[1]?.resolve();
    await asked[0];
    expect(order).to.deep.equal(["first"]);
    gates[0]?.resolve();
    await asked[1];
    await begun(3); // Nobody waits any more.
    gates[2]?.resolve();
    await started;
    expect(gates).to.have.length(3);
  });

  it("newContext() rejects when its signal aborts", async () => {
    await using pool = openPool();
    const reason = new Error("enough");
    expect(await outcomeOf(pool.newContext(AbortSignal.abort(reason)))).to.equal(reason);
  });

  it("newContext() runs the browser unprivileged, sandboxed, with nothing of our environment", async function () {
    if (process.platform !== "linux") this.skip();
    process.env.TRUNKLINE_SECRET_OF_TEST = "1";
    await using pool = openPool();
    await pool.start();
    const processes = processesOf(pidOf(pool));
    expect(processes.length).to.be.above(3);
    for (const { command, user, environment } of processes) {
      expect(user).to.not.equal(0);
      expect(command).to.not.include("--no-sandbox");
      expect(command).to.not.include("--remote-debugging-port");
      expect(environment).to.not.include("TRUNKLINE_SECRET_OF_TEST");
    }
    delete process.env.TRUNKLINE_SECRET_OF_TEST;
  });

  it("newContext() starts a browser anew where the last was ended for want of work", async () => {
    await using pool = openPool({ limits: { idleMs: 300 } });
    expect(pool.pids).to.deep.equal([]);
    // A browser in use is not idle, even if a task uses it for longer than the idle limit.
    const long = print(pool, { html: "<title>long</title>", waitForTimeout: 900 });
    await until(() => pool.contextsInUse === 1);
    const first = pidOf(pool);
    expect((await long).title).to.equal("long");
    await until(() => pool.pids.length === 0 && !isAlive(first));
    expect((await print(pool, A_PAGE)).title).to.equal("a page");
    const context = await pool.newContext(signal);
    expect(pidOf(pool)).to.not.equal(first);
    context.release();
    await until(() => pool.pids.length === 0);
  });

  it("newContext() keeps the browser where idleMs is 0", async () => {
    let skippedMs = 0;
    const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + skippedMs };
    await using pool = openPool({ clock, limits: { idleMs: 0 } });
    await pool.start();
    skippedMs = 86_400_000;
    const pids = pool.pids;
    expect((await print(pool, A_PAGE)).title).to.equal("a page");
    expect(pool.pids).to.include.members(pids);
  });

  it("newContext() replaces the browser by count, the old one finishing its tasks", async () => {
    await using pool = openPool({ limits: { contextsWarm: 1, contextsMax: 3 } });
    await pool.start();
    const first = pidOf(pool);
    const running = print(pool, { html: "<title>old</title>", waitForTimeout: 1_000 });
    for (let i = 0; i < 4; i++) await print(pool, A_PAGE);
    await until(() => !pool.pids.every((pid) => pid === first));
    expect((await running).title).to.equal("old");
    await until(() => !pool.pids.includes(first));
    expect((await print(pool, A_PAGE)).title).to.equal("a page");
    await until(() => !isAlive(first));
  });

  it("newContext() replaces the browser by age", async () => {
    let ageMs = 0;
    const clock = { ...systemClock, monotonic: () => ageMs };
    await using pool = openPool({ clock, limits: { ageMsMax: 60_000, contextsWarm: 1 } });
    await pool.start();
    const first = pidOf(pool);
    ageMs = 59_999;
    await print(pool, A_PAGE);
    expect(pool.pids).to.deep.equal([first]);
    ageMs = 60_000;
    await print(pool, A_PAGE);
    await until(() => pool.pids.length === 1 && pool.pids[0] !== first);
  });

  it("newContext() replaces the browser by memory", async function () {
    if (process.platform !== "linux") this.skip();
    const limits = { memoryBytesMax: 1_000, pingMs: 50, contextsWarm: 0 };
    await using pool = openPool({ limits });
    await pool.start();
    const first = pidOf(pool);
    await until(async () => {
      await print(pool, A_PAGE);
      return !pool.pids.includes(first);
    });
  });

  it("newContext() goes on in a new browser when one has died; its tasks may be tried again", async () => {
    await using pool = openPool();
    await using site = await WebSite.start();
    await pool.start();
    const first = pidOf(pool);
    const url = site.page("/", () => process.kill(-first, "SIGKILL"));
    const [error] = await Promise.all([
      outcomeOf(print(pool, { url })),
      outcomeOf(print(pool, HANGING)),
    ]);
    expect(error).to.be.instanceOf(BrowserDiedError);
    await until(() => pool.pids.length === 1 && pool.pids[0] !== first);
    expect((await print(pool, A_PAGE)).title).to.equal("a page");
  });

  it("newContext() goes on when only the browser's first process was killed", async () => {
    await using pool = openPool();
    await pool.start();
    const first = pidOf(pool);
    const printing = outcomeOf(print(pool, HANGING));
    process.kill(first, "SIGKILL");
    expect(await printing).to.be.instanceOf(BrowserDiedError);
    expect((await print(pool, A_PAGE)).title).to.equal("a page");
    await until(() => processesOf(first).length === 0);
  });

  it("newContext() ends a browser that stands still, and one that is too large", async function () {
    if (process.platform !== "linux") this.skip();
    const clock = new SkippingClock();
    const pingTimeoutMs = 60_000;
    await using still = openPool({ clock, limits: { pingMs: 100, pingTimeoutMs } });
    await still.start();
    const first = pidOf(still);
    await stopGroup(first);
    const waiting = outcomeOf(print(still, A_PAGE));
    await until(() => {
      // The browser gets two pings, and has half of the timeout for each.
      if (clock.isAwaited(pingTimeoutMs / 2)) clock.skip(pingTimeoutMs / 2);
      return !still.pids.includes(first);
    });
    expect(await waiting).to.be.instanceOf(BrowserDiedError);
    expect((await print(still, A_PAGE)).title).to.equal("a page");

    await using large = openPool({ limits: { pingMs: 200, memoryBytesKill: 1_000 } });
    expect(await outcomeOf(print(large, HANGING))).to.be.instanceOf(BrowserDiedError);
  });

  it("newContext() survives a page that crashes; others in the browser go on", async () => {
    await using pool = openPool();
    const other = print(pool, { html: "<title>other</title>", waitForTimeout: 1_000 });
    const context = await pool.newContext(signal);
    const lost = new Promise((resolve) => context.lost.addEventListener("abort", resolve));
    const crashing = outcomeOf(context.session.send("Page.crash"));
    await lost;
    expect(context.lost.reason).to.be.instanceOf(RendererCrashedError);
    context.release();
    await crashing;
    expect((await other).title).to.equal("other");
  });

  it("release() of a page that hangs leaves the browser as it is", async () => {
    await using pool = openPool();
    await pool.start();
    const { pids } = pool;
    const leaving = new AbortController();
    const printing = startPrint(pool, HANGING, { signal: leaving.signal });
    setTimeout(() => leaving.abort(), 300);
    expect((await refusalOf(printing)).code).to.equal("cancelled");
    expect((await print(pool, A_PAGE)).title).to.equal("a page");
    expect(pool.pids).to.deep.equal(pids);
  });

  it("newContext() says why no browser starts, tries again later and then again at once", async () => {
    const waits: number[] = [];
    const clock = {
      ...systemClock,
      async wait(ms: number, stop?: AbortSignal) {
        if (ms > 1_000) return await systemClock.wait(ms, stop);
        waits.push(ms);
      },
    };
    const limits = { retryMs: 100, retryMsMax: 350 };
    await using pool = openPool({ clock, limits, executablePath: "/no/such/chromium" });
    for (let i = 0; i < 5; i++) {
      const error = await outcomeOf(pool.newContext(signal));
      expect(error).to.be.instanceOf(BrowserDiedError);
      expect(String(error)).to.include("/no/such/chromium");
    }
    expect(waits).to.deep.equal([100, 200, 350, 350]);
  });

  it("newContext() tells what a browser said that ends at once", async () => {
    await using pool = openPool({ executablePath: "/bin/false" });
    expect(await outcomeOf(pool.newContext(signal))).to.be.instanceOf(BrowserDiedError);
  });

  it("newContext() ends a browser that answers while it starts, and then no more", async () => {
    const folder = mkdtempSync(join(tmpdir(), "trunkline-mute-browser-"));
    try {
      const [executablePath, asked] = [join(folder, "browser"), join(folder, "asked")];
      writeFileSync(executablePath, muteBrowser(asked));
      // The browser runs as another user.
      chmodSync(executablePath, 0o755);
      chmodSync(folder, 0o777);
      const clock = new SkippingClock();
      const startMs = 60_000;
      await using pool = openPool({ clock, executablePath, limits: { startMs } });
      const failed = outcomeOf(pool.newContext(signal));
      await until(() => existsSync(asked));
      clock.skip(startMs);
      expect(await failed).to.be.instanceOf(BrowserNotStartedError);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("close() leaves no process and no file, whatever is going on", async () => {
    const before = profiles();
    const pool = openPool({ limits: { contextsMax: 2, contextsWarm: 1 } });
    await pool.start();
    const pids = pool.pids;
    const printing = [print(pool, A_PAGE), print(pool, HANGING), print(pool, A_PAGE)].map(
      outcomeOf,
    );
    await printing[0];
    await pool.close();
    await Promise.all(printing);
    // All processes have received SIGKILL, but the kernel needs a moment to end them.
    await until(() => pids.filter(isAlive).length + pids.flatMap(processesOf).length === 0);
    expect(profiles().filter((name) => !before.includes(name))).to.deep.equal([]);
    expect(await outcomeOf(pool.newContext(signal))).to.be.instanceOf(BrowserDiedError);
    const unused = openPool();
    await unused.close();
  });
});

/**
 * Returns a program that answers the commands with which a driver connects to a browser. It never answers the next one,
 * but then creates the file `asked`.
 */
const muteBrowser = (asked: string) => `#!/bin/bash
browser='{"targetId":"b","type":"browser","title":"","url":"","attached":true}'
while IFS= read -r -d '' command <&3; do
  [[ $command =~ \\"id\\":([0-9]+) ]]
  result='{}'
  case $command in
    *Target.attachToTarget*) touch '${asked}'; continue ;;
    *Target.getBrowserContexts*) result='{"browserContextIds":[]}' ;;
    *Target.setDiscoverTargets*)
      printf '{"method":"Target.targetCreated","params":{"targetInfo":%s}}\\0' "$browser" >&4 ;;
  esac
  printf '{"id":%s,"result":%s}\\0' "\${BASH_REMATCH[1]}" "$result" >&4
done
`;

function outcomeOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.catch((error: unknown) => error);
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const endsAt = performance.now() + 40_000;
  while (!(await holds())) {
    if (performance.now() > endsAt) throw new Error("it did not come to hold in 40 s");
    await systemClock.wait(20);
  }
}

/**
 * Returns the browser's pid, which is also the id of its process group. It must not be 0, which would mean the
 * process group of this test.
 */
function pidOf(pool: BrowserPool): number {
  const [pid] = pool.pids;
  if (pid === undefined || pid <= 1) throw new Error("the pool has no browser");
  return pid;
}

function isAlive(pid: number): boolean {
  return existsSync(`/proc/${pid}/exe`);
}

/** Returns the profile folders of this process. Other processes may have browsers too. */
function profiles(): string[] {
  const isOurs = (name: string) =>
    name.startsWith("trunkline-chromium-") && name.includes(`-${process.pid}-`);
  return readdirSync(tmpdir()).filter(isOurs);
}

function processesOf(group: number) {
  const lines = execFileSync("ps", ["-eo", "pgid=,pid=,uid=,stat=,args="]).toString().split("\n");
  return lines.flatMap((line) => {
    const [pgid, pid, uid, state, ...command] = line.trim().split(/\s+/);
    if (Number(pgid) !== group || state?.startsWith("Z")) return [];
    return [{ user: Number(uid), command: command.join(" "), environment: environmentOf(pid) }];
  });
}

function environmentOf(pid = ""): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8");
  } catch {
    // The process has ended, or the kernel does not let this user read it.
    return "";
  }
}
