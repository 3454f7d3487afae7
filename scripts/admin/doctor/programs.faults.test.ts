import { spawnSync } from "node:child_process";
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

  const profile =
    "start the container with --security-opt seccomp=deploy/seccomp-browser.json (docs/operate/containers.md; on Kubernetes docs/operate/kubernetes.md)";
  const sandboxes: [settings: string, mend: string][] = [
    ["", profile],
    [
      "echo 1 >/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
      `${profile}; on the host: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`,
    ],
    [
      "echo 0 >/proc/sys/kernel/apparmor_restrict_unprivileged_userns; echo 0 >/proc/sys/kernel/unprivileged_userns_clone",
      `${profile}; on the host: sysctl -w kernel.unprivileged_userns_clone=1`,
    ],
  ];
  for (const [settings, expected] of sandboxes) {
    it(`names what allows the sandbox in a container, with the kernel's settings "${settings}"`, async function () {
      if (spawnSync("unshare", ["--mount", "true"]).status !== 0) return this.skip();
      const chromium = join(folder, "chromium");
      const lines = [
        '[ "$1" != --version ] || { echo Chromium 150.0; exit; }',
        "echo No usable sandbox! >&2",
        "exit 1",
      ];
      await writeFile(chromium, `#!/bin/sh\n${lines.join("\n")}\n`, { mode: 0o755 });
      const script = `mount -t tmpfs none /proc/sys/kernel && { ${settings || ":"}; } && exec "$@"`;
      const { level, found, mend } = await scene.finding(
        ["browser"],
        { TRUNKLINE_CHROMIUM: chromium, KUBERNETES_SERVICE_HOST: "10.0.0.1" },
        ["unshare", "--mount", "sh", "-c", script, "sh"],
      );
      expect({ level, found }).to.deep.equal({ level: "failure", found: "No usable sandbox!" });
      expect(mend).to.equal(expected);
    });
  }

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
