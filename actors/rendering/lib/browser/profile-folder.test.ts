import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { expect } from "chai";
import { createProfileFolder } from "./profile-folder.ts";

describe("createProfileFolder()", () => {
  let parent: string;

  beforeEach(async () => {
    parent = await mkdtemp(join(tmpdir(), "trunkline-profiles-"));
  });
  afterEach(() => rm(parent, { recursive: true, force: true }));

  it("removes what a worker left that was killed, and nothing of one that lives", async () => {
    const killed = await startWorker(parent);
    const living = await startWorker(parent);
    const others = await mkdtemp(join(parent, "trunkline-chromium-elsewhere-1-"));
    const exited = once(killed.process, "exit");
    killed.process.kill("SIGKILL");
    await exited;

    const own = await createProfileFolder(parent);
    expect(existsSync(killed.folder), "killed").to.equal(false);
    for (const folder of [living.folder, others, own]) expect(existsSync(folder)).to.equal(true);
    expect(basename(own)).to.include(`-${process.pid}-`);
    await createProfileFolder(parent);
    expect(existsSync(own)).to.equal(true);
    const ended = once(living.process, "exit");
    living.process.kill("SIGKILL");
    await ended;
  });
});

/** Starts a process that creates a folder with a file in it, and then waits. */
async function startWorker(parent: string) {
  const program = `
    import { mkdirSync } from "node:fs";
    import { createProfileFolder } from ${JSON.stringify(import.meta.resolve("./profile-folder.ts"))};
    const folder = await createProfileFolder(${JSON.stringify(parent)});
    mkdirSync(folder + "/Default/Cache", { recursive: true });
    process.stdout.write(folder);
    setInterval(() => {}, 1_000);`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [folder] = await once(child.stdout, "data");
  return { process: child, folder: String(folder) };
}
