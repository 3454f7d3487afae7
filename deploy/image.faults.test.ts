import { execFile, spawnSync } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { freePort } from "../scripts/free-port.ts";
import { ChildProgram } from "../scripts/testing/child-program.ts";
import {
  imageCheck,
  imageCommand,
  imageCopies,
  imagePackageCommands,
  read,
} from "../scripts/testing/manifests.ts";
import { startNats } from "../scripts/testing/nats-server.ts";
import { until } from "../scripts/testing/until.ts";
import { findChromium, REPOSITORY, TOOLS } from "../scripts/tools.ts";

const run = promisify(execFile);
const HEALTHY = join(REPOSITORY, "deploy/healthy.ts");
/** The user `nobody`: Chromium's sandbox does not run as root. */
const NOBODY = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/**
 * Maximum size of the copied files and the Node packages. With them, the image has at most 450 MB without Chromium's
 * packages: Debian with git has about 170 MB, nats-server 25 MB.
 */
const OWN_KB_MAX = 260_000;

describe("image", function () {
  this.timeout(400_000);
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-image-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));

  it("the files of Containerfile and npm ci --omit=dev are enough to start, serve and stop", async () => {
    for (const path of imageCopies()) {
      await cp(join(REPOSITORY, path), join(folder, path), { recursive: true, filter: isCopied });
    }
    const commands = imagePackageCommands();
    expect(commands[0]).to.equal("npm ci --omit=dev");
    // Uses a separate npm cache, because the user's own cache may lack packages that its index lists.
    const npm = { npm_config_cache: join(TOOLS, "npm-cache"), npm_config_prefer_offline: "true" };
    for (const command of commands) {
      await run("sh", ["-c", command], { cwd: folder, env: { ...process.env, ...npm } });
    }
    const { stdout } = await run("du", ["-sk", "--apparent-size", folder]);
    console.log(
      `      unpacked, without nats-server and packages of Debian: ${parseInt(stdout, 10)} kB`,
    );
    expect(parseInt(stdout, 10)).to.be.below(OWN_KB_MAX);
    const port = await freePort();
    const environment = {
      // The image has nats-server on its PATH.
      PATH: `${TOOLS}:${process.env.PATH}`,
      TRUNKLINE_DATA: join(folder, "data"),
      TRUNKLINE_PORT: String(port),
      TRUNKLINE_ROLES: "gateway,actors",
    };
    const old = join(folder, "old");
    await mkdir(old);
    await writeFile(join(old, "nats-server"), "#!/bin/sh\necho nats-server: v2.13.9\n", {
      mode: 0o755,
    });
    const outdated = { ...environment, PATH: `${old}:${dirname(process.execPath)}` };
    await using refused = new ChildProgram(imageCommand(), outdated, { cwd: folder });
    expect(await refused.exit()).to.equal(1);
    expect(refused.lines).to.deep.equal([
      `Cannot find nats-server: 2.14 or newer is needed, ${old}/nats-server is 2.13.9`,
    ]);
    await using program = new ChildProgram(imageCommand(), environment, { cwd: folder });
    await program.line("Trunkline runs");
    const url = `http://127.0.0.1:${port}/healthz`;
    await until("it is healthy", () => isHealthy(url));
    const [node = "", ...check] = imageCheck();
    const checked = { cwd: folder, env: { ...process.env, ...environment } };
    await run(node, check, checked);
    program.signal("SIGTERM");
    expect(await program.exit()).to.equal(0);
    expect(await isHealthy(url)).to.equal(false);
    const failed = await run(node, check, checked).catch((error) => error);
    expect(failed.code).to.equal(1);
  });

  it("health checks of the bus are answered by its configuration", async () => {
    const port = await freePort();
    await using _server = await startNats({ config: `http: "127.0.0.1:${port}"` });
    for (const path of [
      "/healthz",
      "/healthz?js-enabled-only=true",
      "/healthz?js-server-only=true",
    ]) {
      await until(`${path} is healthy`, () => isHealthy(`http://127.0.0.1:${port}${path}`));
    }
    expect(await isHealthy(`http://127.0.0.1:${port}/none`)).to.equal(false);
  });

  it("Chromium prints in its sandbox without a call that seccomp-browser.json refuses", async function () {
    if (spawnSync("strace", ["-V"]).error) return this.skip();
    const { syscalls } = JSON.parse(read("deploy/seccomp-browser.json"));
    // With the question mark, strace ignores system calls that this processor architecture does not have.
    const names = syscalls.flatMap((entry: { names: string[] }) =>
      entry.names.map((name) => `?${name}`),
    );
    const profile = join(folder, "profile");
    await mkdir(profile, { mode: 0o777 });
    await run("chmod", ["-R", "a+rwx", folder]);
    const pdf = join(profile, "page.pdf");
    const chromium = [
      findChromium(),
      "--headless",
      "--disable-gpu",
      `--user-data-dir=${profile}`,
      `--print-to-pdf=${pdf}`,
      "data:text/html,<h1>Hello</h1>",
    ];
    const trace = ["-f", "-qqq", "-e", "signal=none", "-e", `trace=${names.join()}`];
    const { stderr } = await run("strace", [...trace, "-o", join(profile, "calls"), ...chromium], {
      ...NOBODY,
      env: { PATH: process.env.PATH, HOME: profile, TMPDIR: profile },
    });
    expect((await readFile(pdf)).subarray(0, 5).toString(), stderr).to.equal("%PDF-");
    const calls = (await readFile(join(profile, "calls"), "utf8")).split("\n");
    // Ignores lines about a thread that ended together with Chromium, before strace could read its system call.
    expect(
      calls.filter((line) => !/^(\d+ +\?\?\?\( <detached \.\.\.>)?$/.test(line)),
    ).to.deep.equal([]);
  });
});

/** The rules of .dockerignore. */
const isCopied = (path: string) => !/\.test\.ts$|\/testing$|\/bench$|\/deploy\/\.env$/.test(path);

/** Returns the result of the same health check that containers run. */
async function isHealthy(url: string): Promise<boolean> {
  return run(process.execPath, [HEALTHY, url]).then(
    () => true,
    () => false,
  );
}
