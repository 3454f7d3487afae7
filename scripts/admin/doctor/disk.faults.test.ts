import { execFileSync, spawnSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { DoctorScene } from "../../testing/doctor-scene.ts";
import type { Level } from "./check.ts";

const IS_ROOT = process.getuid?.() === 0;

describe("doctor's check of the disk", function () {
  this.timeout(120_000);
  let scene: DoctorScene;
  let folder: string;
  beforeEach(async () => {
    scene = await DoctorScene.make();
    folder = scene.folder;
  });
  afterEach(() => scene[Symbol.asyncDispose]());

  it("is good in a folder that the first start will make", async () => {
    const environment = { TRUNKLINE_DATA: join(folder, "not/yet") };
    const { findings } = await scene.report(["disk"], environment);
    expect(findings.find(({ about }) => about === "data folder")?.level).to.equal("good");
  });

  const small: [options: string, level: Level, wanted: RegExp][] = [
    ["size=8m", "failure", /^a disk of at least 1465 MB/],
    ["size=1500m", "warning", /^at least 2000 MB free/],
    ["size=4g,nr_inodes=20", "warning", /^at least 10000$/],
  ];
  for (const [options, level, wanted] of small) {
    it(`is a ${level} on a tmpfs of ${options}`, async function () {
      await using _volume = mountTmpfs(folder, options) ?? this.skip();
      const found = await scene.finding(["disk"]);
      expect(found.level).to.equal(level);
      expect(found.wanted).to.match(wanted);
    });
  }

  it("fails on a full tmpfs", async function () {
    await using _volume = mountTmpfs(folder, "size=8m") ?? this.skip();
    await writeFile(join(folder, "full"), Buffer.alloc(9 * 1024 ** 2)).catch(() => {});
    const { level, found, mend } = await scene.finding(["disk"]);
    expect(level).to.equal("failure");
    expect(found).to.include("writing fails: ENOSPC");
    expect(mend).to.include("TRUNKLINE_DATA");
  });

  it("fails in a folder of another user", async () => {
    const other = join(folder, "other");
    await mkdir(other, { mode: 0o555 });
    const wrap = IS_ROOT ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : [];
    const look = (path: string) => scene.finding(["disk"], { TRUNKLINE_DATA: path }, wrap);
    const { level, found, mend } = await look(other);
    expect(level).to.equal("failure");
    expect(found).to.include("writing fails: EACCES");
    expect(mend).to.match(/^as root: chown -R \d+ '.*other'$/);
    // The remedy makes a folder that does not exist.
    expect((await look(join(other, "not/yet"))).mend).to.match(
      /^as root: install -d -o \d+ '.*other\/not\/yet'$/,
    );
  });

  it("fails on a disk that is read-only, and names the command that makes it writable", async function () {
    await using _volume = mountTmpfs(folder, "size=4g,ro") ?? this.skip();
    const { level, found, mend } = await scene.finding(["disk"]);
    expect(level).to.equal("failure");
    expect(found).to.include("writing fails: EROFS");
    const [, command = ""] = /then (mount .*?);/.exec(mend ?? "") ?? [];
    execFileSync("sh", ["-c", command]);
    await writeFile(join(folder, "written"), "");
  });

  it("fails where the path of the data folder leads to a file", async () => {
    const file = join(folder, "file");
    await writeFile(file, "");
    const { found, mend } = await scene.finding(["disk"], { TRUNKLINE_DATA: file });
    expect(found).to.include("writing fails: ENOTDIR");
    expect(mend).to.include("TRUNKLINE_DATA");
  });

  it("warns of syncs that take long", async function () {
    if (spawnSync("strace", ["-V"]).error) return this.skip();
    const delay = "inject=fdatasync:delay_enter=60000";
    const wrap = ["strace", "-f", "-qqq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", delay];
    const { findings } = await scene.report(["disk"], {}, wrap);
    const speed = findings.find(({ about }) => about === "disk speed");
    expect(speed?.level).to.equal("warning");
    expect(Number.parseFloat(speed?.found ?? "")).to.be.at.least(60);
  });
});

/** Mounts a tmpfs at the folder until it is disposed. Returns undefined if this user may not mount. */
function mountTmpfs(folder: string, options: string): AsyncDisposable | undefined {
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", options, "none", folder]).status === 0;
  if (!mounted) return undefined;
  return { [Symbol.asyncDispose]: async () => void execFileSync("umount", ["-l", folder]) };
}
