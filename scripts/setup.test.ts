import { copyFile, mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { runCommand } from "./testing/command-line.ts";

const SETUP = join(import.meta.dirname, "setup");

describe("setup", function () {
  this.timeout(30_000);

  it("prints nothing where nothing is missing", async () => {
    const { code, stdout, stderr } = await runCommand(SETUP, []);
    expect({ code, stdout, stderr }).to.deep.equal({ code: 0, stdout: "", stderr: "" });
  });

  it("refuses a TRUNKLINE_CHROMIUM that is not there before it downloads anything", async () => {
    const folder = await mkdtemp(join(tmpdir(), "trunkline setup "));
    const copy = join(folder, "scripts/setup");
    await mkdir(join(folder, "scripts"));
    await copyFile(SETUP, copy);
    const { code, stderr } = await runCommand(copy, [], { TRUNKLINE_CHROMIUM: "/nope" });
    expect(stderr).to.equal(
      'setup: TRUNKLINE_CHROMIUM: expected the path of a Chromium, found "/nope"\n',
    );
    expect(code).to.equal(1);
    expect(await readdir(folder)).to.deep.equal(["scripts"]);
    await rm(folder, { recursive: true });
  });

  it("refuses a TRUNKLINE_CHROMIUM that is another program", async () => {
    const { code, stderr } = await runCommand(SETUP, [], { TRUNKLINE_CHROMIUM: "/bin/ls" });
    expect(stderr).to.equal(
      'setup: TRUNKLINE_CHROMIUM: expected the path of a Chromium, found "/bin/ls", which is none\n',
    );
    expect(code).to.equal(1);
  });
});
