import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { ChildProgram } from "../../../scripts/testing/child-program.ts";
import { until } from "../../../scripts/testing/until.ts";
import { type SpawnedChild, Spawner } from "./spawner.ts";
import type { ChildCommand } from "./spawner-wire.ts";
import { GIT_SPAWNER_PLACES } from "./spawner-wire.ts";

const MAIN = join(import.meta.dirname, "../testing/spawner-user-main.ts");

describe("Spawner", () => {
  let folder: string;
  let spawner: Spawner;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-spawned-"));
    spawner = new Spawner({ retryMs: 0 });
  });
  afterEach(async () => {
    spawner.close();
    await rm(folder, { recursive: true });
  });

  const shell = (script: string, environment = {}): ChildCommand => ({
    file: "/bin/sh",
    parameters: ["-c", script],
    cwd: folder,
    environment: { PATH: process.env.PATH ?? "", ...environment },
  });

  /** Resolves to the child when the spawner is ready and has started it. */
  async function spawned(command: ChildCommand): Promise<SpawnedChild> {
    let child: SpawnedChild | undefined;
    await until("it is ready", () => {
      child = spawner.spawn(command);
      return child !== undefined;
    });
    if (!child) throw new Error("no child");
    return child;
  }

  it("gives a child its input, folder and environment, and returns its output", async () => {
    const child = await spawned(shell('pwd; echo "$A"; cat; echo bad >&2; exit 3', { A: "b" }));
    child.stdin.end("in");
    expect(await text(child.stdout)).to.equal(`${folder}\nb\nin`);
    expect(await child.exit).to.deep.equal({ code: 3, stderr: "bad\n" });
  });

  it("carries large input and output, and a child that reads nothing blocks no other", async () => {
    const much = "x".repeat(5_000_000);
    const child = await spawned(shell("cat"));
    child.stdin.end(much);
    expect(await text(child.stdout)).to.have.length(much.length);
    const deaf = await spawned(shell("echo bye"));
    deaf.stdin.on("error", () => {});
    deaf.stdin.write(much);
    expect(await text(deaf.stdout)).to.equal("bye\n");
    expect((await deaf.exit).code).to.equal(0);
    const unheard = await spawned(shell("echo nobody hears this"));
    expect((await unheard.exit).code).to.equal(0);
  });

  it("reports a program that cannot start as ended", async () => {
    const child = await spawned({ ...shell(""), file: "/nonexistent" });
    expect(await child.exit).to.deep.include({ code: null });
  });

  it("ends a child with all its descendants", async () => {
    const child = await spawned(shell("sleep 600 & sleep 600"));
    child.end();
    expect((await child.exit).code).to.equal(null);
  });

  it("discards the output of a killed child that nobody reads to its end", async () => {
    spawner.close();
    spawner = new Spawner({ retryMs: 0, killedOutputMs: 50 });
    // Leaves a loop over lines, which has paused the output because many lines came at once.
    const readLine = async ({ stdout }: SpawnedChild) => {
      for await (const _ of createInterface({ input: stdout })) break;
    };
    // Reads a piece, and never asks for the next one.
    const readPiece = async ({ stdout }: SpawnedChild) => {
      await stdout[Symbol.asyncIterator]().next();
    };
    const lines = "yes line | head -n 100000";
    for (const read of [readLine, readPiece]) {
      for (const script of [`${lines}; exec sleep 600`, `${lines} | head -n 20000`]) {
        const child = await spawned(shell(script));
        await read(child);
        child.end();
        await child.exit;
      }
    }
  });

  it("starts at most GIT_SPAWNER_PLACES children at once, and then prepares new places", async () => {
    const children = [await spawned(shell("cat"))];
    for (let i = 0; i <= 2 * GIT_SPAWNER_PLACES; i++) {
      const child = spawner.spawn(shell("cat"));
      if (child) children.push(child);
    }
    expect(children.length).to.be.at.most(GIT_SPAWNER_PLACES + 1);
    children.push(await spawned(shell("cat")));
    const said = Promise.all(children.map(({ stdout }) => text(stdout)));
    for (const { stdin } of children) stdin.end("a");
    expect(new Set(await said)).to.deep.equal(new Set(["a"]));
    const exits = await Promise.all(children.map(({ exit }) => exit));
    expect(exits.every(({ code }) => code === 0)).to.equal(true);
  });

  it("ends its children when it is killed, and is replaced", async () => {
    const child = await spawned(shell("echo $$; exec sleep 600"));
    const [line] = await child.stdout.take(1).toArray();
    const { pid } = spawner;
    if (pid === undefined) throw new Error("it does not run");
    // Messages arrive in order, so the end of a second process proves that the first pid has arrived.
    const other = await spawned(shell("true"));
    other.stdin.end();
    other.stdout.resume();
    await other.exit;
    process.kill(pid, "SIGKILL");
    expect((await child.exit).code).to.equal(null);
    await until("the child is gone", () => !isAlive(Number(line)));
    const next = await spawned(shell("cat"));
    next.stdin.end("a");
    expect(await text(next.stdout)).to.equal("a");
    expect(spawner.pid).to.not.equal(pid);
  });

  it("ends with the process that started it, however that ends, and leaves nothing behind", async () => {
    await using user = new ChildProgram([process.execPath, MAIN, folder], {});
    const [, child, own] = /^runs (\d+) by (\d+)$/.exec(await user.line("runs ")) ?? [];
    user.signal("SIGKILL");
    await until("both are gone", () => ![child, own].some((pid) => isAlive(Number(pid))));
    const left = async () => (await readdir(folder)).filter((name) => name.startsWith("trunkline"));
    await until("its folder is gone", async () => (await left()).length === 0);
  });
});

/** An ended process may remain as a zombie until its parent reads its exit code. */
function isAlive(pid: number): boolean {
  const { stdout } = spawnSync("ps", ["-o", "stat=", "-p", `${pid}`], { encoding: "utf8" });
  return stdout.trim() !== "" && !stdout.includes("Z");
}
