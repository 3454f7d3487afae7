import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect } from "chai";
import { withLock } from "./process-lock.ts";

describe("withLock", () => {
  let folder: string;
  let path: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-lock-"));
    path = join(folder, "lock");
  });
  afterEach(() => rm(folder, { recursive: true }));

  it("runs one action at a time, and frees the lock after each, also after one that fails", async () => {
    let running = 0;
    const action = async (fails: boolean) => {
      running += 1;
      expect(running).to.equal(1);
      await nextTurn();
      running -= 1;
      if (fails) throw new Error("failed");
      return "done";
    };
    const all = [true, false, false].map((fails) => withLock(path, () => action(fails)));
    const ended = await Promise.allSettled(all);
    expect(ended.map(({ status }) => status)).to.deep.equal(["rejected", "fulfilled", "fulfilled"]);
    expect(await readdir(folder)).to.deep.equal([]);
  });

  it("takes the lock of a process that has ended", async () => {
    const { pid } = spawnSync("true");
    await symlink(String(pid), path);
    expect(await withLock(path, async () => "done")).to.equal("done");
    expect(existsSync(path)).to.equal(false);
  });

  it("fails where the lock cannot be made", async () => {
    const error = await withLock(join(folder, "none/lock"), async () => {}).catch((error) => error);
    expect(error.code).to.equal("ENOENT");
  });
});
