import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { BUS_USERS } from "../bus-users/users.ts";
import { trunkline } from "../testing/command-line.ts";

describe("admin bus-credentials", function () {
  this.timeout(60_000);
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-credentials-"));
  });
  afterEach(() => rm(folder, { recursive: true }));
  const make = (name = "bus") => trunkline(["admin", "bus-credentials", join(folder, name)]);
  const read = (name: string) => readFile(join(folder, "bus", name), "utf8");
  const words = (stdout: string) =>
    stdout
      .split("\n")
      .flatMap((line) => /^(\w+) +\S+[/](\S+)$/.exec(line)?.slice(1).join(" ") ?? []);

  it("makes a seed for each user that only its owner can read, and the servers' part without them", async () => {
    const { code, stdout, stderr } = await make();
    expect(code, stderr).to.equal(0);
    const names = BUS_USERS.map((user) => `${user}.nk`);
    expect(words(stdout)).to.deep.equal([...names, "bus-users.conf"].map((name) => `made ${name}`));
    expect(await readdir(join(folder, "bus"))).to.have.members([...names, "bus-users.conf"]);
    const part = await read("bus-users.conf");
    const seeds = await Promise.all(names.map(read));
    expect(new Set(seeds).size).to.equal(names.length);
    for (const [index, seed] of seeds.entries()) {
      expect(part).to.not.include(seed.trim());
      const { mode } = await stat(join(folder, "bus", names[index] ?? ""));
      expect(mode & 0o777).to.equal(0o600);
    }
    expect(part.match(/nkey: U[A-Z2-7]{55}/g)).to.have.lengthOf(names.length);
  });

  it("keeps seeds, and prints which files it replaces", async () => {
    await make();
    const [seed, part] = [await read("actors.nk"), await read("bus-users.conf")];
    expect(words((await make()).stdout).at(-1)).to.equal("unchanged bus-users.conf");
    await writeFile(join(folder, "bus/bus-users.conf"), part.replace("shard.>", "shard.old.>"));
    const { stdout } = await make();
    expect(words(stdout)).to.include("kept actors.nk").and.include("replaced bus-users.conf");
    expect([await read("actors.nk"), await read("bus-users.conf")]).to.deep.equal([seed, part]);
  });

  it("a seed that was removed gets another key, which the servers' part names", async () => {
    await make();
    const before = await read("bus-users.conf");
    await rm(join(folder, "bus/browser.nk"));
    const { stdout } = await make();
    expect(words(stdout)).to.include("made browser.nk").and.include("replaced bus-users.conf");
    const keys = (text: string): string[] => text.match(/nkey: U[A-Z2-7]{55}/g) ?? [];
    const after = keys(await read("bus-users.conf"));
    expect(after.filter((key) => !keys(before).includes(key))).to.have.lengthOf(1);
  });

  it("replaces no file of somebody else, and reads no file that is no seed", async () => {
    await make();
    await writeFile(join(folder, "bus/bus-users.conf"), "# mine\n");
    const foreign = await make();
    expect(foreign.code).to.equal(1);
    expect(foreign.stderr).to.match(
      /^Cannot replace .*bus-users\.conf: this command did not make it/,
    );
    expect(await read("bus-users.conf")).to.equal("# mine\n");
    await rm(join(folder, "bus/bus-users.conf"));
    await writeFile(join(folder, "bus/admin.nk"), "secret text\n");
    const broken = await make();
    expect(broken.code).to.equal(1);
    expect(broken.stderr).to.match(/^Cannot read the NKey seed ".*admin\.nk": expected a line/);
    expect(broken.stderr).to.not.include("secret text");
  });

  it("requires one folder", async () => {
    for (const rest of [[], ["a", "b"]]) {
      const { code, stderr } = await trunkline(["admin", "bus-credentials", ...rest]);
      expect(code).to.equal(2);
      expect(stderr).to.include('Cannot run "admin bus-credentials": expected a folder after it');
    }
  });
});
