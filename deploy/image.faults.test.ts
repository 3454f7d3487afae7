import { execFile, spawnSync } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { freePort } from "../scripts/free-port.ts";
import { ChildProgram } from "../scripts/testing/child-program.ts";
import { buildImage, canBuildImage, sizesOf } from "../scripts/testing/image-root.ts";
import { imageCheck, imageCommand, imageEntry, read } from "../scripts/testing/manifests.ts";
import { startNats } from "../scripts/testing/nats-server.ts";
import { until } from "../scripts/testing/until.ts";
import { findChromium, REPOSITORY } from "../scripts/tools.ts";

const run = promisify(execFile);
const HEALTHY = join(REPOSITORY, "deploy/healthy.ts");
/** The user `nobody`: Chromium's sandbox does not run as root. */
const NOBODY = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/** Maximum size of the unpacked image without Chromium's packages and their fonts. */
const SIZE_KB_MAX = 450_000;

describe("image", function () {
  // On a machine with much other work, the packages of Debian take minutes.
  this.timeout(2_400_000);
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-image-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));

  it("made by the steps of Containerfile starts, prints, and stops as an ordinary user", async function () {
    if (!(await canBuildImage())) return this.skip();
    const image = await buildImage(folder);
    const chromium = read("deploy/Containerfile").match(/\b(chromium|fonts)-\S+/g) ?? [];
    const { allKb, packagesKb } = await sizesOf(image, chromium);
    console.log(`      unpacked: ${allKb} kB; Chromium's packages and fonts: ${packagesKb} kB`);
    expect(allKb - packagesKb).to.be.below(SIZE_KB_MAX);
    const port = await freePort();
    const settings = { TRUNKLINE_HOST: "127.0.0.1", TRUNKLINE_PORT: String(port) };
    const start = image.command([...imageEntry(), ...imageCommand()], settings);
    const [program = "", ...words] = image.command(imageCheck(), settings);
    const check = () =>
      run(program, words).then(
        () => true,
        () => false,
      );
    expect(await check()).to.equal(false);
    await using platform = new ChildProgram(start, {});
    await platform.line("Trunkline runs");
    await until("it is healthy", check, 300_000);
    const data = join(image.folder, "data");
    expect((await stat(data)).mode & 0o777).to.equal(0o700);
    for (const path of ["", "credentials.json"]) {
      expect(await stat(join(data, path)), path).to.include({ uid: 10_001, gid: 10_001 });
    }
    const { account_id, api_token } = JSON.parse(
      await readFile(join(data, "credentials.json"), "utf8"),
    );
    const pages = `http://127.0.0.1:${port}/v4/accounts/${account_id}/browser-rendering`;
    const answer = await fetch(`${pages}/pdf`, {
      method: "POST",
      headers: { Authorization: `Bearer ${api_token}`, "Content-Type": "application/json" },
      body: JSON.stringify({ html: "<h1>Hello</h1>" }),
    });
    const bytes = Buffer.from(await answer.arrayBuffer());
    expect(bytes.subarray(0, 5).toString(), bytes.toString("latin1", 0, 300)).to.equal("%PDF-");
    const children = `/proc/${platform.pid}/task/${platform.pid}/children`;
    process.kill(Number((await readFile(children, "utf8")).trim()), "SIGTERM");
    expect(await platform.exit()).to.equal(0);
    expect(await check()).to.equal(false);
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

/** Returns the result of the same health check that containers run. */
async function isHealthy(url: string): Promise<boolean> {
  return run(process.execPath, [HEALTHY, url]).then(
    () => true,
    () => false,
  );
}
