import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { shellBlocksOf, WORK_FOLDER } from "../../../scripts/testing/guide.ts";
import { type TestGateway, testGateway } from "../../testing/test-gateway.ts";

const run = promisify(execFile);

describe("tokens and usage", function () {
  this.timeout(60_000);
  let gateway: TestGateway;
  let folder: string;
  before(async () => {
    gateway = await testGateway();
    folder = await mkdtemp(join(tmpdir(), "trunkline-person-"));
  });
  after(async () => {
    await gateway?.stop();
    if (folder) await rm(folder, { recursive: true, force: true });
  });

  it("are shown by the commands of the guide, word for word", async () => {
    const [helpers = "", lines = ""] = shellBlocksOf("docs/guides/tokens.md");
    await mkdir(join(folder, "data"));
    const credentials = {
      base_url: `${gateway.url}/v4`,
      account_id: gateway.accountId,
      api_token: gateway.token,
    };
    await writeFile(join(folder, "data", "credentials.json"), JSON.stringify(credentials));
    const { stdout } = await run(
      "bash",
      ["-euo", "pipefail", "-c", WORK_FOLDER + helpers + lines],
      {
        cwd: folder,
        env: { PATH: process.env.PATH, HOME: folder },
      },
    );
    const answers = stdout
      .split(/(?<=\})(?=\{"success")/)
      .map((text) => JSON.parse(text) as { success: boolean; result: Record<string, unknown> });
    expect(answers.map(({ success }) => success)).to.deep.equal(Array(6).fill(true));
    const [groups, verified, listed, rolled, revoked, usage] = answers.map(({ result }) => result);
    expect(JSON.stringify(groups)).to.contain("browser-rendering.write");
    expect(verified).to.include({ status: "active" });
    expect(JSON.stringify(listed)).to.contain('"printer"');
    expect(rolled).to.match(new RegExp(`^tl_${verified?.id}_`));
    expect(revoked).to.have.property("id").that.equals(verified?.id);
    expect(usage).to.include.keys("date", "browser_ms_used", "browser_ms_limit", "days");
  });
});
