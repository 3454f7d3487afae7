import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import {
  checkNatsServer,
  findChromium,
  findGit,
  findNatsServer,
  NATS_SERVER_RESTORE_MIN,
} from "./tools.ts";

describe("tools", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-test-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it("findNatsServer() takes the first on PATH that is new enough", async () => {
    await program("old/nats-server", "nats-server: v2.13.9");
    const good = await program("new/nats-server", "nats-server: v2.14.0");
    const found = findNatsServer(undefined, {
      environment: { PATH: `${folder}/none:${folder}/old:${folder}/new` },
      tools: folder,
    });
    expect(found).to.equal(good);
  });

  it("findNatsServer() falls back to the copy that setup made", async () => {
    await program("old/nats-server", "nats-server: v2.9.25");
    const copy = await program("tools/nats-server", "nats-server: v3.0.1");
    const environment = { PATH: `${folder}/old` };
    const tools = `${folder}/tools`;
    expect(findNatsServer(undefined, { environment, tools })).to.equal(copy);
  });

  it("findNatsServer() passes over a server on PATH that cannot restore a backup", async () => {
    const old = await program("old/nats-server", "nats-server: v2.14.9");
    const copy = await program("tools/nats-server", "nats-server: v2.15.0");
    const environment = { PATH: `${folder}/old` };
    const tools = `${folder}/tools`;
    expect(findNatsServer(undefined, { environment, tools })).to.equal(old);
    expect(findNatsServer(NATS_SERVER_RESTORE_MIN, { environment, tools })).to.equal(copy);
  });

  it("findNatsServer() names the required and the found version", async () => {
    const old = await program("old/nats-server", "nats-server: v2.13.9");
    const broken = await program("broken/nats-server", "");
    const environment = { PATH: `${folder}/old:${folder}/broken` };
    expect(() => findNatsServer(undefined, { environment, tools: folder })).to.throw(
      `Cannot find nats-server: 2.14 or newer is needed, ${old} is 2.13.9, ${broken} is 0`,
    );
    const nothing = { environment: {}, tools: folder };
    expect(() => findNatsServer(undefined, nothing)).to.throw(
      "2.14 or newer is needed, none was found",
    );
  });

  it("checkNatsServer() accepts 2.14 and refuses 2.13 of an external server", () => {
    for (const version of ["2.14.0", "2.14.0-RC.1", "2.20.0", "3.0.0"]) {
      checkNatsServer("bus:4222", version);
    }
    for (const version of ["2.13.9", "2.9.25", "1.4.1", "0"]) {
      expect(() => checkNatsServer("bus:4222", version)).to.throw(
        `Cannot use the bus at bus:4222: nats-server 2.14 or newer is needed, it is ${version}`,
      );
    }
  });

  it("findGit() accepts 2.39 and refuses 2.38", async () => {
    const good = await program("good/git", "git version 2.39.0");
    await program("old/git", "git version 2.38.9");
    expect(findGit({ PATH: `${folder}/good` })).to.equal(good);
    expect(() => findGit({ PATH: `${folder}/old` })).to.throw("Cannot find git: 2.39 or newer");
  });

  it("findChromium() uses the file of TRUNKLINE_CHROMIUM, or reports that it is not Chromium", async () => {
    for (const version of ["Chromium 156.0.8078.79", "Google Chrome 156.0.8078.79"]) {
      const own = await program("own-browser", version);
      expect(findChromium({ TRUNKLINE_CHROMIUM: own })).to.equal(own);
    }
    expect(() => findChromium({ TRUNKLINE_CHROMIUM: `${folder}/none` })).to.throw(
      `TRUNKLINE_CHROMIUM: expected the path of a Chromium, found "${folder}/none"`,
    );
    for (const none of [folder, "/bin/ls"]) {
      expect(() => findChromium({ TRUNKLINE_CHROMIUM: none })).to.throw(
        `TRUNKLINE_CHROMIUM: expected the path of a Chromium, found "${none}", which is none`,
      );
    }
  });

  it("findChromium() prefers a headless shell, on PATH or downloaded, to a full browser", async () => {
    const environment = { PATH: `${folder}/a:${folder}/b` };
    expect(() => findChromium(environment, folder)).to.throw("Cannot find Chromium: none is on");
    const names = [
      "b/google-chrome-stable",
      "b/google-chrome",
      "b/chromium-browser",
      "b/chromium",
      "chrome-headless-shell/linux-1/shell/chrome-headless-shell",
      "b/chrome-headless-shell",
      "b/chromium-headless-shell",
    ];
    for (const name of names) {
      const path = await program(name, "");
      expect(findChromium(environment, folder)).to.equal(path);
    }
  });

  async function program(name: string, version: string): Promise<string> {
    const path = join(folder, name);
    await mkdir(join(path, ".."), { recursive: true });
    await writeFile(path, `#!/bin/sh\necho '${version}'\n`, { mode: 0o755 });
    return path;
  }
});
