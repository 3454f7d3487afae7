import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";

const run = promisify(execFile);

describe("oidc-library", () => {
  it("prints nothing when it is loaded", async () => {
    const file = join(import.meta.dirname, "oidc-library.ts");
    const { stdout, stderr } = await run(process.execPath, ["--import", file, "--eval", ""]);
    expect([stdout, stderr]).to.deep.equal(["", ""]);
  });
});
