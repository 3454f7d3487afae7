import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { ChildProgram } from "../../../../scripts/testing/child-program.ts";
import { childrenOf, isOfApp, isRunning } from "../../../../scripts/testing/process-children.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { whyNotEnded } from "./ended-with-host.ts";

const HOST = join(import.meta.dirname, "../../../../scripts/testing/app-process-host-main.ts");
/**
 * Time limit for the end of the process, long enough for a busy machine. The kernel kills a process within
 * milliseconds, but a process that just starts notices the end of its host only later.
 */
const ENDED_MS_MAX = 30_000;

interface Phase {
  /** Of the bundle, beside the agent. */
  top?: string;
  /** Of the agent's method. */
  go?: string;
  /**
   * The line that the host prints when this phase begins. If absent, the host is killed as soon as the process
   * exists.
   */
  shows?: string;
  /** The signal that the process gets before its host is killed. */
  signal?: NodeJS.Signals;
}

/** Phases in which the process notices the end of its host. */
const HEARS: Record<string, Phase> = {
  "has not begun": { top: "setInterval(() => {}, 100);" },
  "waits for its bundle, which waits": {
    top: `console.log("there"); await new Promise((resolve) => setTimeout(resolve, 60_000));`,
    shows: "says there",
  },
  "has a turn that waits": {
    go: `console.log("there"); await new Promise((resolve) => setTimeout(resolve, 60_000));`,
    shows: "says there",
  },
  "has a turn that waits for its host": {
    go: `await fetch("http://127.0.0.1/");`,
    shows: "heard operation",
  },
  "is idle": { shows: "heard finished" },
  "is idle, with timers of its own": {
    top: "setInterval(() => {}, 100);",
    shows: "heard finished",
  },
};
/** Phases in which the process runs none of the platform's code, so that only the kernel can end it. */
const HEARS_NOTHING: Record<string, Phase> = {
  "computes as it loads its bundle": {
    top: `console.log("there"); for (;;);`,
    shows: "says there",
  },
  "computes in a turn": { go: `console.log("there"); for (;;);`, shows: "says there" },
  "goes from promise to promise": {
    go: `console.log("there"); for (;;) await undefined;`,
    shows: "says there",
  },
  "has threads that compute": {
    top: `import { pbkdf2 } from "node:crypto";`,
    go: `pbkdf2("a", "b", 2_000_000_000, 64, "sha512", () => {});`,
    shows: "heard finished",
  },
  "is stopped": { shows: "heard finished", signal: "SIGSTOP" },
};

describe("an app's process whose host is killed", function () {
  this.timeout(90_000);
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-ended-"));
    // Code of apps runs as somebody else.
    await chmod(folder, 0o755);
  });
  after(() => rm(folder, { recursive: true, force: true }));

  /** Kills the host. Resolves when the process has ended, and rejects if it keeps running. */
  async function killHost({ top = "", go = "", shows, signal }: Phase, how: "bound" | "alone") {
    const code = `import { Agent } from "trunkline/agents";
      ${top}
      export class Going extends Agent { async go() { ${go} } }`;
    const own = await mkdtemp(join(folder, "host-"));
    await chmod(own, 0o755);
    const host = new ChildProgram([process.execPath, HOST, own, code, how], {});
    let pid: number | undefined;
    try {
      pid = await until("its process is there", () => childrenOf(host.pid).find(isOfApp), 30_000);
      if (shows !== undefined) await host.line(shows);
      if (signal) process.kill(pid, signal);
      host.signal("SIGKILL");
      await until("its process is gone", () => !isRunning(pid as number), ENDED_MS_MAX);
    } finally {
      if (pid !== undefined && isRunning(pid)) process.kill(pid, "SIGKILL");
      await host[Symbol.asyncDispose]();
    }
  }

  for (const [what, phase] of Object.entries({ ...HEARS, ...HEARS_NOTHING })) {
    it(`is ended by the kernel when it ${what}`, async function () {
      if ((await whyNotEnded()) !== undefined) this.skip();
      await killHost(phase, "bound");
    });
  }
  for (const [what, phase] of Object.entries(HEARS)) {
    it(`ends by itself when it ${what}`, () => killHost(phase, "alone"));
  }

  it("is ended by the kernel wherever there is a setpriv, as on this machine", async function () {
    if (process.platform !== "linux") this.skip();
    expect(await whyNotEnded()).to.equal(undefined);
  });
});
