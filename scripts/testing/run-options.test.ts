import { join } from "node:path";
import { expect } from "chai";
import { REPOSITORY } from "../tools.ts";
import { runCommand } from "./command-line.ts";

const PROGRAMS = ["actor-soak.ts", "crawl-soak.ts", "soak-main.ts", "chaos/main.ts"];

describe("programs that run for minutes", function () {
  this.timeout(60_000);
  const run = (name: string, ...parameters: string[]) =>
    runCommand(process.execPath, [join(REPOSITORY, "scripts/testing", name), ...parameters]);

  const refuses = async (sentence: string, name: string, ...parameters: string[]) => {
    const { code, stderr } = await run(name, ...parameters);
    expect(code, stderr).to.equal(2);
    expect(stderr).to.include(`Cannot run: ${sentence}`).and.to.not.include("    at ");
  };

  for (const name of PROGRAMS) {
    it(`${name} refuses a time that is no number, without a stack`, () =>
      refuses('--minutes must be a number above 0, found "ten"', name, "--minutes", "ten"));
  }

  it("soak-main.ts refuses an unknown option, and describes its own", async () => {
    await refuses("Unknown option '--hours'", "soak-main.ts", "--hours", "1");
    const { code, stdout } = await run("soak-main.ts", "--help");
    expect(code).to.equal(0);
    expect(stdout).to.include("--minutes N");
  });
});
