import { spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { DoctorScene } from "../../testing/doctor-scene.ts";

describe("doctor's checks of the system's limits", function () {
  this.timeout(120_000);
  let scene: DoctorScene;
  let folder: string;
  beforeEach(async () => {
    scene = await DoctorScene.make();
    folder = scene.folder;
  });
  afterEach(() => scene[Symbol.asyncDispose]());

  for (const [limit, level] of [
    [256, "failure"],
    [4_096, "warning"],
  ] as const) {
    it(`${limit} descriptors are a ${level}`, async () => {
      const wrap = ["sh", "-c", `ulimit -n ${limit} && exec "$@"`, "sh"];
      const found = await scene.finding(["descriptors"], {}, wrap);
      expect({ level: found.level, found: found.found }).to.deep.equal({
        level,
        found: String(limit),
      });
    });
  }

  const kernel: [mount: string, about: string][] = [
    ["mount -t tmpfs -o size=64m none /dev/shm", "/dev/shm"],
    ["mount --bind $values/2 /proc/sys/vm/overcommit_memory", "vm.overcommit_memory"],
    ["mount --bind $values/128 /proc/sys/net/core/somaxconn", "net.core.somaxconn"],
    ["mount --bind $values/0 /proc/sys/user/max_user_namespaces", "user.max_user_namespaces"],
  ];
  for (const [mount, about] of kernel) {
    it(`warns of ${about}`, async function () {
      if (!canMount()) return this.skip();
      for (const value of ["0", "2", "128"]) await writeFile(join(folder, value), `${value}\n`);
      const script = `values=${folder}; ${mount} && exec "$@"`;
      const wrap = ["unshare", "--mount", "sh", "-c", script, "sh"];
      const found = await scene.finding(["kernel"], {}, wrap);
      expect({ level: found.level, about: found.about }).to.deep.equal({
        level: "warning",
        about,
      });
    });
  }
});

const canMount = () => spawnSync("unshare", ["--mount", "true"]).status === 0;
