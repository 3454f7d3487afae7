import { existsSync } from "node:fs";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { expect } from "chai";
import { type Clock, systemClock } from "../actors/runtime/lib/clock.ts";
import { freePort } from "./free-port.ts";
import { NATS_START_MS_MAX, NatsServer } from "./nats-server.ts";
import { ChildProgram } from "./testing/child-program.ts";
import { until } from "./testing/until.ts";

const PROGRAM = join(import.meta.dirname, "testing/test-program.ts");
/** Time after which the fixed limit of former versions had passed. */
const FORMER_MS_MAX = 60_000;

/** A program in the place of nats-server. It is ready when a file exists, and notes a graceful end. */
const STAND_IN = `#!/bin/sh
if [ "$1" = --version ]; then echo "nats-server: v2.14.0"; exit; fi
trap 'touch "$STAND_IN/ended"; exit 0' TERM
touch "$STAND_IN/started"
while [ ! -e "$STAND_IN/ready" ]; do sleep 0.05; done
echo "[1] [INF] Listening for client connections on 127.0.0.1:4222" >&2
echo "[1] [INF] Server is ready" >&2
while :; do sleep 0.05; done
`;

/** A clock whose waits end when the test says so. */
class TestClock implements Clock {
  readonly now = systemClock.now;
  readonly monotonic = systemClock.monotonic;
  passedMs = 0;
  #next: (() => void) | undefined;

  wait(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#next = () => {
        this.passedMs += ms;
        resolve();
      };
      signal?.addEventListener("abort", () => resolve());
    });
  }

  /** Ends the current wait as soon as there is one. */
  async pass(): Promise<void> {
    const next = await until("something waits", () => this.#next);
    this.#next = undefined;
    next();
  }
}

describe("nats-server that recovers its store", function () {
  this.timeout(180_000);
  let folder: string;
  const path = process.env.PATH;
  const has = (name: string) => existsSync(join(folder, name));
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-stand-in-"));
    const program = join(folder, "nats-server");
    await writeFile(program, STAND_IN);
    await chmod(program, 0o755);
    process.env.PATH = `${folder}${delimiter}${path}`;
  });
  afterEach(async () => {
    process.env.PATH = path;
    await rm(folder, { recursive: true, maxRetries: 10 });
  });

  function standIn() {
    const clock = new TestClock();
    const reports: number[] = [];
    const server = new NatsServer({
      ...{ config: "none", name: "test", storeDir: folder, port: 4222, clock },
      passwords: { trunkline: "none", system: "none" },
      environment: { STAND_IN: folder },
      onSlowStart: (seconds) => reports.push(seconds),
    });
    return { clock, reports, server };
  }

  it("start() waits longer than any recovery takes, and reports it now and then", async () => {
    const { clock, reports, server } = standIn();
    const started = server.start();
    while (clock.passedMs < NATS_START_MS_MAX - 400_000) await clock.pass();
    expect(clock.passedMs).to.be.above(FORMER_MS_MAX);
    expect(reports.slice(0, 3)).to.deep.equal([10, 30, 70]);
    expect(reports).to.have.length.below(30);
    expect(() => process.kill(server.pid, 0)).to.not.throw();
    await writeFile(join(folder, "ready"), "");
    await started;
    await server.stop();
    expect(has("ended")).to.equal(true);
  });

  it("start() kills a server that is not ready after NATS_START_MS_MAX", async () => {
    const { clock, server } = standIn();
    const started = server.start().catch((error) => error);
    await until("it runs", () => has("started"));
    const { pid } = server;
    while (clock.passedMs < NATS_START_MS_MAX) await clock.pass();
    expect((await started).message).to.equal(
      `Cannot start nats-server: it was not ready after ${NATS_START_MS_MAX} ms`,
    );
    expect(() => process.kill(pid, 0)).to.throw();
  });

  it("start() ends the server gracefully when its signal aborts", async () => {
    const { server } = standIn();
    const stopping = new AbortController();
    const started = server.start({ signal: stopping.signal }).catch((error) => error);
    await until("it runs", () => has("started"));
    stopping.abort();
    expect((await started).message).to.equal("Cannot start nats-server: this process stops");
    expect(has("ended")).to.equal(true);
    const again = await server.start({ signal: stopping.signal }).catch((error) => error);
    expect(again.message).to.equal("Cannot start nats-server: this process stops");
  });

  it("runProgram() ends on a signal while its nats-server recovers, and ends the server gracefully", async () => {
    const dataDir = join(folder, "data");
    await using program = new ChildProgram([process.execPath, PROGRAM], {
      ...{ STAND_IN: folder, TRUNKLINE_DATA: dataDir, TRUNKLINE_PORT: String(await freePort()) },
    });
    await until("it runs", () => has("started"), 120_000);
    program.signal("SIGTERM");
    expect(await program.exit(), program.lines.join("\n")).to.equal(0);
    expect(has("ended")).to.equal(true);
    const messages = program.lines.map((line) => JSON.parse(line).msg);
    expect(messages).to.include("stopping");
    expect(messages.at(-1)).to.equal("stopped");
  });
});
