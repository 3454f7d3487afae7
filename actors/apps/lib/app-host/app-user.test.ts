import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { AppUsers, whyOneUser } from "./app-user.ts";

const isRoot = process.getuid?.() === 0;
const SETPRIV = "/usr/bin/setpriv";
/** Of nobody, on every system. */
const NOBODY = 65_534;

describe("AppUsers", () => {
  it("take() gives each app a user of its own, the same at every host", () => {
    const [one, other] = [0, 1].map(() => new AppUsers({ isPossible: true }));
    const apps = Array.from({ length: 1_000 }, (_, index) => `account.app-${index}`);
    const ids = apps.map((app) => one?.take(app));
    expect(new Set(ids).size).to.equal(apps.length);
    for (const id of ids) expect(id).to.be.within(1_900_000_000, 2_147_483_647);
    expect(one?.take("account.app-0")).to.equal(ids[0]);
    expect(other?.take("account.app-0")).to.equal(ids[0]);
  });

  it("take() gives a released user to the process that would have had it", () => {
    const users = new AppUsers({ isPossible: true });
    const id = users.take("a");
    users.release("a");
    expect(users.take("a")).to.equal(id);
  });

  it("take() gives no user if this process cannot choose one", () => {
    expect(new AppUsers({ isPossible: false }).take("a")).to.equal(undefined);
  });
});

describe("whyOneUser()", () => {
  it("names files that an app's own user could not read", async function () {
    if (!isRoot || (await whyOneUser([tmpdir()])) !== undefined) this.skip();
    const folder = await mkdtemp(join(tmpdir(), "trunkline-users-"));
    try {
      const program = join(folder, "program");
      await mkdir(program);
      const file = join(program, "main.js");
      await writeFile(file, "");
      await chmod(folder, 0o755);
      expect(await whyOneUser([file])).to.equal(undefined);
      await chmod(folder, 0o700);
      expect(await whyOneUser([file])).to.equal(`${folder} is closed to other users`);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("says that this process is not root", async () => {
    const reason = "this process is not root";
    if (!isRoot) {
      expect(await whyOneUser([process.execPath])).to.equal(reason);
      return;
    }
    expect(await saidBy([process.execPath], `process.setuid(${NOBODY});`)).to.equal(reason);
  });

  it("says that root of a container may not choose users", async function () {
    if (!isRoot || !existsSync(SETPRIV)) this.skip();
    const without = [SETPRIV, "--bounding-set=-setuid", "--inh-caps=-setuid", process.execPath];
    expect(await saidBy(without)).to.equal("it may not start processes of other users (EPERM)");
  });

  async function saidBy([program = "", ...parameters]: string[], before = ""): Promise<string> {
    const url = JSON.stringify(new URL("./app-user.ts", import.meta.url).href);
    const code = `const module = await import(${url}); ${before} console.log(await module.whyOneUser([]));`;
    const whole = [...parameters, "--input-type=module", "--eval", code];
    return (await promisify(execFile)(program, whole)).stdout.trim();
  }
});
