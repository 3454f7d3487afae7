import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, stat, statfs, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { APP_FOLDER_LEFT_MS, APP_MEMORY_FOLDER_BYTES_MIN } from "../../schemas/app-limits.ts";
import { openProcessFolder, rootIn, touch } from "./process-folders.ts";

describe("openProcessFolder()", () => {
  it("makes one for this host, and removes what a killed one left, with what still runs there", async () => {
    // None that other hosts on this machine look into.
    const root = await mkdtemp(join(tmpdir(), "trunkline-folders-"));
    const left = await openProcessFolder(root);
    await mkdir(join(left, "1"));
    const orphan = spawn(process.execPath, ["-e", "for (;;);", join(left, "1/bundle")], {
      stdio: "ignore",
    });
    const ended = once(orphan, "exit");
    const living = await openProcessFolder(root);
    expect(existsSync(left)).to.equal(true);
    const long = new Date(Date.now() - APP_FOLDER_LEFT_MS - 1_000);
    await utimes(left, long, long);
    await utimes(living, long, long);
    await touch(living);
    const third = await openProcessFolder(root);
    expect(existsSync(left)).to.equal(false);
    expect(existsSync(living)).to.equal(true);
    expect((await stat(third)).mode & 0o777).to.equal(0o711);
    await ended;
    for (const folder of [living, third, root]) await rm(folder, { recursive: true, force: true });
  });
});

describe("rootIn()", () => {
  it("takes a file system in memory only where it is there, and large enough for databases", async () => {
    expect(await rootIn("/nowhere")).to.equal(tmpdir());
    // It has no room at all.
    expect(await rootIn("/proc")).to.equal(tmpdir());
    const { bsize, blocks } = await statfs("/dev");
    expect(await rootIn("/dev")).to.equal(
      bsize * blocks < APP_MEMORY_FOLDER_BYTES_MIN ? tmpdir() : "/dev",
    );
  });
});
