import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { DoctorScene } from "../../testing/doctor-scene.ts";

describe("doctor's checks of programs", function () {
  this.timeout(120_000);
  let scene: DoctorScene;
  let folder: string;
  beforeEach(async () => {
    scene = await DoctorScene.make();
    folder = scene.folder;
  });
  afterEach(() => scene[Symbol.asyncDispose]());

  it("prints with the browser of this machine", async () => {
    const { level, found } = await scene.finding(["browser"]);
    expect(level, found).to.equal("good");
  });

  it("fails where TRUNKLINE_CHROMIUM is none", async () => {
    const { level, mend } = await scene.finding(["browser"], { TRUNKLINE_CHROMIUM: "/bin/ls" });
    expect(level).to.equal("failure");
    expect(mend).to.include("TRUNKLINE_CHROMIUM");
  });

  it("fails where the browser ends for want of a sandbox, and names the kernel's setting", async () => {
    const chromium = join(folder, "chromium");
    const lines = [
      '[ "$1" != --version ] || { echo Chromium 150.0; exit; }',
      "echo No usable sandbox! >&2",
      "exit 1",
    ];
    await writeFile(chromium, `#!/bin/sh\n${lines.join("\n")}\n`, { mode: 0o755 });
    const { level, found, mend } = await scene.finding(["browser"], {
      TRUNKLINE_CHROMIUM: chromium,
    });
    expect({ level, found }).to.deep.equal({ level: "failure", found: "No usable sandbox!" });
    expect(mend).to.match(/^sysctl -w /);
  });

  it("fails where git is missing, and only for the role that needs it", async () => {
    const without = { PATH: "/nonexistent" };
    const { level, mend } = await scene.finding(["git"], without);
    expect({ level, mend }).to.deep.equal({ level: "failure", mend: "apt-get install git" });
    const actors = await scene.report(["git", "browser"], {
      ...without,
      TRUNKLINE_ROLES: "actors",
    });
    expect(actors.findings).to.deep.equal([]);
  });
});
