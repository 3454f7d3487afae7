import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, stat, statfs, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { APP_MEMORY_FOLDER_BYTES_MIN, openProcessFolder, rootIn } from "./process-folders.ts";

/** A host in a separate process. It sends the path of its folder, and then waits. */
const HOST = `
import { openProcessFolder } from ${JSON.stringify(join(import.meta.dirname, "process-folders.ts"))};
const { path } = await openProcessFolder(process.argv[2]);
process.send(path);
process.on("disconnect", () => process.exit());
`;

describe("openProcessFolder()", () => {
  let root: string;
  beforeEach(async () => {
    // A folder that no other host on this machine reads.
    root = await mkdtemp(join(tmpdir(), "trunkline-folders-"));
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  async function startHost() {
    const main = join(root, "host.mjs");
    await writeFile(main, HOST);
    const child = fork(main, [root], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    const [path] = (await once(child, "message")) as [string];
    return { child, path };
  }

  it("makes a folder for this host, and removes that of a killed host with the processes in it", async () => {
    const { child, path: left } = await startHost();
    await mkdir(join(left, "1"));
    const orphan = spawn(process.execPath, ["-e", "for (;;);", join(left, "1/bundle")], {
      stdio: "ignore",
    });
    const ended = once(orphan, "exit");
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
    const living = await openProcessFolder(root);
    expect(existsSync(left)).to.equal(false);
    expect(existsSync(`${left}.lock`)).to.equal(false);
    expect((await stat(living.path)).mode & 0o777).to.equal(0o711);
    await ended;
    await living.remove();
  });

  it("leaves those of living hosts alone, whatever their age, also of one that stands still", async () => {
    const { child, path } = await startHost();
    const exited = once(child, "exit");
    const long = new Date(Date.now() - 24 * 60 * 60_000);
    for (const old of [path, `${path}.lock`]) await utimes(old, long, long);
    child.kill("SIGSTOP");
    const second = await openProcessFolder(root);
    expect(existsSync(path)).to.equal(true);
    expect(child.exitCode ?? child.signalCode).to.equal(null);
    child.kill("SIGKILL");
    await exited;
    await second.remove();
    expect(existsSync(second.path)).to.equal(false);
  });

  it("ensure() makes folder and lock again, and says whether the folder was gone", async () => {
    const folder = await openProcessFolder(root);
    expect(await folder.ensure()).to.equal(false);
    for (const path of [folder.path, `${folder.path}.lock`]) await rm(path, { recursive: true });
    expect(await folder.ensure()).to.equal(true);
    await rm(`${folder.path}.lock`);
    expect(await folder.ensure()).to.equal(false);
    const other = await openProcessFolder(root);
    expect(existsSync(folder.path)).to.equal(true);
    await rm(folder.path, { recursive: true });
    await writeFile(folder.path, "in its place");
    const told = await folder.ensure().catch((error: Error) => error.message);
    expect(told).to.contain("no folder of this process's user");
    for (const one of [folder, other]) await one.remove();
  });
});

describe("rootIn()", () => {
  it("takes a file system in memory only if there is one that is large enough for databases", async () => {
    expect(await rootIn("/nowhere")).to.equal(tmpdir());
    // `/proc` has no space at all.
    expect(await rootIn("/proc")).to.equal(tmpdir());
    const { bsize, blocks } = await statfs("/dev");
    expect(await rootIn("/dev")).to.equal(
      bsize * blocks < APP_MEMORY_FOLDER_BYTES_MIN ? tmpdir() : "/dev",
    );
  });
});
