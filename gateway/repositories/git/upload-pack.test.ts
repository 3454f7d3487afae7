import { appendFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { addMeter } from "../../../schemas/meter.ts";
import { until } from "../../../scripts/testing/until.ts";
import { type Checkout, type GitGateway, GitWorld, type TestRepo } from "../testing/git-world.ts";

/** Longer than the gateway holds output back: git needs as long to start on a busy machine. */
const LATE_S = 2;

describe("the git process that serves a fetch", function () {
  this.timeout(300_000);
  let world: GitWorld;
  let gateway: GitGateway;
  let repo: TestRepo;
  let work: Checkout;
  let windows: string;
  /** While this file exists, the next upload-pack is late and then fails, as in a cache that was just emptied. */
  let failing: string;
  /** While this file exists, every upload-pack writes its content as its error, and fails. */
  let broken: string;
  const { PATH } = process.env;
  before(async () => {
    world = await GitWorld.start();
    gateway = await world.gateway();
    repo = await world.repo();
    work = await world.checkout();
    for (let i = 0; i < 4; i++) await work.commit(`${i}`);
    await work.git("push", "-q", gateway.remote(repo), "main");
    // A replacement of git that records its configuration and then runs the real git.
    const programs = join(world.folder, "telling-git");
    await mkdir(programs);
    windows = join(programs, "windows");
    failing = join(programs, "failing");
    broken = join(programs, "broken");
    const real = join(await work.git("--exec-path"), "git");
    const script = `#!/bin/sh
if [ "$1 $4" = "upload-pack ." ] && rm "${failing}" 2>/dev/null; then
  cat >/dev/null
  sleep ${LATE_S}
  printf '002dERR upload-pack: not our ref 1234567890ab'
  exit 128
fi
if [ "$1 $4" = "upload-pack ." ] && [ -e "${broken}" ]; then
  cat >/dev/null
  cat "${broken}" >&2
  exit 128
fi
[ "$1" = upload-pack ] && { "${real}" config --get pack.window || echo its own; } >> "${windows}"
exec "${real}" "$@"
`;
    await writeFile(join(programs, "git"), script, { mode: 0o755 });
    process.env.PATH = `${programs}:${PATH}`;
  });
  after(async () => {
    process.env.PATH = PATH;
    await world[Symbol.asyncDispose]();
  });
  beforeEach(() => appendFile(windows, ""));
  afterEach(() => rm(windows));

  async function windowsOf(fetchAll: (copy: Checkout, remote: string) => Promise<unknown>) {
    const copy = await world.checkout();
    await fetchAll(copy, gateway.remote(repo));
    await copy.git("fsck", "--full", "--strict");
    return new Set((await readFile(windows, "utf8")).split("\n").filter(Boolean));
  }

  it("runs again if it fails before it sends a part of the pack, however late it begins", async () => {
    await writeFile(failing, "");
    const copy = await world.checkout();
    // No other test asks for this depth, so the gateway has no stored response.
    await copy.git("fetch", "-q", "--depth=3", gateway.remote(repo), "main");
    expect(await readdir(join(failing, ".."))).to.not.include("failing");
    await copy.git("fsck", "--full", "--strict");
  });

  it("logs and counts a fault of this machine, and hides its paths from the client", async () => {
    let failed = 0;
    const endMeter = addMeter({
      count(name, { operation, outcome }) {
        if (name !== "git_operations_total") return;
        if (operation === "fetch" && outcome === "failed") failed += 1;
      },
      time() {},
    });
    const copy = await world.checkout();
    const fetched = ["fetch", "-q", "--depth=4", gateway.remote(repo), "main"];
    try {
      for (const start of ["", "(", "=", ":", "'"]) {
        await writeFile(broken, `fatal: out of memory at${start === "" ? " " : start}/data/git\n`);
        const { code, stderr } = await copy.tryGit(...fetched);
        expect(code).to.not.equal(0);
        expect(stderr).to.contain("remote error: upload-pack failed").and.to.not.contain("/data");
      }
      await writeFile(broken, "fatal: Out of memory, malloc failed\n");
      expect((await copy.tryGit(...fetched)).stderr).to.contain("Out of memory, malloc failed");
    } finally {
      await rm(broken);
      await until("all are counted", () => failed === 6).finally(endMeter);
    }
    expect(gateway.faults.splice(0)).to.have.length(6);
    await copy.git(...fetched);
  });

  it("runs once for a mistake of the client, which is no fault, and keeps the clone index", async () => {
    const { cloneIndexes } = gateway.service.parts;
    const drop = cloneIndexes.drop.bind(cloneIndexes);
    let drops = 0;
    cloneIndexes.drop = (...given) => {
      drops += 1;
      return drop(...given);
    };
    const copy = await world.checkout();
    const none = ["fetch", "-q", "--shallow-since=4000000000", gateway.remote(repo), "main"];
    const { stderr } = await copy.tryGit(...none);
    expect(stderr).to.contain("no commits selected for shallow requests");
    const runs = (await readFile(windows, "utf8")).split("\n").filter(Boolean);
    expect([runs.length, drops, gateway.faults]).to.deep.equal([1, 0, []]);
  });

  for (const version of ["0", "2"]) {
    it(`skips the search for deltas at depth 1, by version ${version}`, async () => {
      const fetched = ["-c", `protocol.version=${version}`, "fetch", "-q"];
      const seen = await windowsOf((copy, remote) =>
        copy.git(...fetched, "--depth=1", remote, "main"),
      );
      expect(seen).to.include("0");
    });

    it(`searches for deltas where it deepens further, by version ${version}`, async () => {
      const fetched = ["-c", `protocol.version=${version}`, "fetch", "-q"];
      for (const deepening of ["--depth=2", "--depth=10", "--shallow-since=1970-01-02"]) {
        const seen = await windowsOf((copy, remote) =>
          copy.git(...fetched, deepening, remote, "main"),
        );
        expect([...seen], deepening).to.deep.equal(["its own"]);
      }
      const unshallow = await windowsOf(async (copy, remote) => {
        await copy.git(...fetched, "--depth=1", remote, "main");
        await copy.git("update-ref", "refs/heads/main", "FETCH_HEAD");
        await rm(windows, { force: true });
        await copy.git(...fetched, "--unshallow", remote, "main");
      });
      expect([...unshallow]).to.deep.equal(["its own"]);
    });

    it(`searches for deltas in all other fetches, by version ${version}`, async () => {
      const fetched = ["-c", `protocol.version=${version}`, "fetch", "-q"];
      const seen = await windowsOf((copy, remote) => copy.git(...fetched, remote, "main"));
      expect([...seen]).to.deep.equal(["its own"]);
    });
  }
});
