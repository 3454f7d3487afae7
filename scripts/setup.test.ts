import {
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  utimes,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { ChildProgram } from "./testing/child-program.ts";
import { runCommand } from "./testing/command-line.ts";

const SETUP = join(import.meta.dirname, "setup");

describe("setup", function () {
  this.timeout(240_000);
  let folder: string;
  let copy: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline setup "));
    copy = join(folder, "scripts/setup");
    await mkdir(join(folder, "scripts"));
    await copyFile(SETUP, copy);
  });
  afterEach(() => rm(folder, { recursive: true }));

  it("prints nothing where nothing is missing", async () => {
    const { code, stdout, stderr } = await runCommand(SETUP, []);
    expect({ code, stdout, stderr }).to.deep.equal({ code: 0, stdout: "", stderr: "" });
  });

  it("takes little time where nothing is missing, and starts no npm", async () => {
    const npm = join(folder, "npm");
    await writeFile(npm, `#!/bin/sh\necho "$@" >> '${folder}/asked'\n`, { mode: 0o755 });
    const environment = { PATH: `${folder}:${process.env.PATH}` };
    // Measures processor time, because elapsed time depends on the other load of the machine. Ten starts of Node take
    // half a second on the machine on which set-up takes less.
    const secondsOf = async (command: string) => {
      const { code, stdout } = await runCommand("sh", ["-c", `${command} && times`], environment);
      expect(code).to.equal(0);
      const [, children = ""] = stdout.split("\n");
      const spent = children.matchAll(/(\d+)m([\d.,]+)s/g);
      const seconds = Array.from(spent, ([, minutes, rest = ""]) => {
        return Number(minutes) * 60 + Number(rest.replace(",", "."));
      });
      expect(seconds).to.have.length(2);
      return seconds.reduce((sum, part) => sum + part);
    };
    const starts = "for i in 1 2 3 4 5 6 7 8 9 10; do";
    const reference = await secondsOf(`${starts} '${process.execPath}' -e 0 || exit; done`);
    expect(await secondsOf(`'${SETUP}'`)).to.be.below(2 * reference);
    expect(await readdir(folder)).to.not.include("asked");
  });

  it("needs only a nats-server that can restore for a restore, and passes over an older one on PATH", async () => {
    const older = "#!/bin/sh\necho nats-server: v2.14.9\n";
    await writeFile(join(folder, "nats-server"), older, { mode: 0o755 });
    const environment = { PATH: `${folder}:${process.env.PATH}`, TRUNKLINE_CHROMIUM: "/nope" };
    const { code, stderr } = await runCommand(SETUP, ["", "restore"], environment);
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: "" });
    const finder = join(import.meta.dirname, "find-tools.ts");
    const parameters = [finder, "nats-server", "nats-server-for-restore"];
    const { stdout } = await runCommand(process.execPath, parameters, environment);
    const [any = "", restoring = ""] = stdout.split("\n");
    expect(any).to.include(folder);
    expect(restoring)
      .to.match(/^nats-server-for-restore: /)
      .and.not.include(folder);
  });

  it("refuses a TRUNKLINE_CHROMIUM that is not there before it downloads anything", async () => {
    const { code, stderr } = await runCommand(copy, [], { TRUNKLINE_CHROMIUM: "/nope" });
    expect(stderr).to.equal(
      'setup: TRUNKLINE_CHROMIUM: expected the path of a Chromium, found "/nope"\n',
    );
    expect(code).to.equal(1);
    expect(await readdir(folder)).to.deep.equal(["scripts"]);
  });

  it("refuses a TRUNKLINE_CHROMIUM that is another program", async () => {
    const { code, stderr } = await runCommand(SETUP, [], { TRUNKLINE_CHROMIUM: "/bin/ls" });
    expect(stderr).to.equal(
      'setup: TRUNKLINE_CHROMIUM: expected the path of a Chromium, found "/bin/ls", which is none\n',
    );
    expect(code).to.equal(1);
  });

  it("shows what npm fails at, not that a package asks for a newer Node", async () => {
    const packed = join(folder, "newer-1.0.0.tgz");
    const newer = { name: "newer", version: "1.0.0", engines: { node: ">=999" } };
    const own = { name: "own", version: "1.0.0", dependencies: { newer: `file:${packed}` } };
    await mkdir(join(folder, "newer"));
    await writeFile(join(folder, "newer/package.json"), JSON.stringify(newer));
    await writeFile(join(folder, "package.json"), JSON.stringify(own));
    // The environment of the tests may have silenced npm, so the log level is set here.
    const cache = { npm_config_cache: join(folder, "cache"), npm_config_loglevel: "notice" };
    const npm = (...parameters: string[]) => runCommand("npm", parameters, cache);
    await npm("pack", join(folder, "newer"), "--pack-destination", folder);
    const locked = await npm("install", "--prefix", folder, "--package-lock-only");
    expect(locked.stderr).to.include("EBADENGINE");
    // Set-up installs packages in another folder first, so a relative path in the lock file would not be found there.
    const lock = join(folder, "package-lock.json");
    const text = await readFile(lock, "utf8");
    await writeFile(lock, text.replaceAll("file:newer-1.0.0.tgz", `file:${packed}`));
    // This program is not a browser, so set-up ends after npm has finished.
    const environment = { ...cache, TRUNKLINE_CHROMIUM: "/bin/ls" };
    const good = await runCommand(copy, [], environment);
    expect(await readdir(join(folder, "node_modules"))).to.include("newer");
    expect(good.stderr)
      .to.include("npm ci")
      .and.not.match(/EBADENGINE|npm ci failed/);
    await Promise.all([packed, join(folder, "cache")].map((path) => rm(path, { recursive: true })));
    await rm(join(folder, "node_modules"), { recursive: true });
    const bad = await runCommand(copy, [], environment);
    expect(bad.stderr)
      .to.match(/npm error code ENOENT/)
      .and.include("npm ci failed");
  });

  describe("with packages that are there", () => {
    const offline = { npm_config_offline: "true", TRUNKLINE_CHROMIUM: "/bin/ls" };
    const there = () => readFile(join(folder, "node_modules/own/index.js"), "utf8");
    const packages = (integrity: string) => ({
      "": { name: "x", dependencies: { own: "1.0.0" } },
      "node_modules/own": { version: "1.0.0", resolved: `file:${folder}/none.tgz`, integrity },
      "node_modules/elsewhere": { version: "1.0.0", integrity: "sha512-c", optional: true },
    });
    const lock = (integrity: string) =>
      writeFile(
        join(folder, "package-lock.json"),
        JSON.stringify({ name: "x", lockfileVersion: 3, packages: packages(integrity) }),
      );

    beforeEach(async () => {
      await mkdir(join(folder, "node_modules/.bin"), { recursive: true });
      await mkdir(join(folder, "node_modules/own"));
      await writeFile(join(folder, "node_modules/own/index.js"), "works");
      await writeFile(join(folder, "node_modules/.bin/node"), "#!/bin/sh\n", { mode: 0o755 });
      const { "node_modules/own": own } = packages("sha512-a");
      const hidden = { packages: { "node_modules/own": own } };
      await writeFile(join(folder, "node_modules/.package-lock.json"), JSON.stringify(hidden));
      await writeFile(
        join(folder, "package.json"),
        JSON.stringify({ name: "x", dependencies: { own: "1.0.0" } }),
      );
    });

    it("leaves them where the lock file is newer and says the same", async () => {
      for (let start = 0; start < 2; start++) {
        await lock("sha512-a");
        const later = Date.now() / 1_000 + 3_600 * (start + 1);
        await utimes(join(folder, "package-lock.json"), later, later);
        const { stderr } = await runCommand(copy, [], offline);
        expect(stderr).to.not.include("npm ci");
        expect(await there()).to.equal("works");
      }
    });

    it("keeps them where the lock file names others, which cannot be had", async () => {
      await lock("sha512-b");
      const { code, stderr } = await runCommand(copy, [], offline);
      expect(code).to.equal(1);
      expect(stderr).to.include("npm ci failed").and.include("unchanged");
      expect(await there()).to.equal("works");
      expect(await readdir(join(folder, ".tools"))).to.deep.equal([]);
    });

    it("brings them back where it was killed between the steps of its swap", async () => {
      await lock("sha512-a");
      await mkdir(join(folder, ".tools"));
      await rename(join(folder, "node_modules"), join(folder, ".tools/replaced"));
      await runCommand(copy, [], offline);
      expect(await there()).to.equal("works");
    });

    it("a Ctrl-C ends it with 130, and leaves no temporary folder", async () => {
      await lock("sha512-b");
      await writeFile(join(folder, "npm"), "#!/bin/sh\necho npm runs >&2\nexec sleep 100\n", {
        mode: 0o755,
      });
      const environment = { PATH: `${folder}:${process.env.PATH}` };
      await using program = new ChildProgram([copy], environment, { detached: true });
      await program.line("npm runs");
      program.signalGroup("SIGINT");
      expect(await program.exit()).to.equal(130);
      expect(await readdir(join(folder, ".tools"))).to.deep.equal([]);
      expect(await there()).to.equal("works");
    });
  });
});
