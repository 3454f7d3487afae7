import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { configFromEnvironment } from "../../../scripts/config.ts";
import { greeting } from "../../../scripts/greeting.ts";
import { shellBlocksOf, WORK_FOLDER } from "../../../scripts/testing/guide.ts";
import { ArtifactsWorld } from "../../testing/artifacts-world.ts";

const run = promisify(execFile);

describe("the first repository", function () {
  this.timeout(120_000);
  let world: ArtifactsWorld;
  before(async () => {
    world = await ArtifactsWorld.start();
  });
  after(() => world[Symbol.asyncDispose]());

  /** Creates a folder as the server's start leaves it. Command lines run in it as a person would run them. */
  async function person() {
    const folder = await mkdtemp(join(world.folder, "person-"));
    await mkdir(join(folder, "data"));
    const credentials = {
      base_url: `${world.url}/v4`,
      account_id: world.accountId,
      api_token: world.token,
    };
    await writeFile(join(folder, "data", "credentials.json"), JSON.stringify(credentials));
    const types = (lines: string) =>
      run("bash", ["-euo", "pipefail", "-c", lines], {
        cwd: folder,
        env: { PATH: process.env.PATH, HOME: folder, GIT_CONFIG_NOSYSTEM: "1" },
      });
    return { folder, types };
  }

  it("is made by the commands of the guide, word for word", async () => {
    const [helpers = "", push = "", others = ""] = shellBlocksOf("docs/guides/repositories.md");
    const { folder, types } = await person();
    const { stdout } = await types(`${WORK_FOLDER}${helpers}${push}${others}`);
    expect(stdout).to.contain("# A page");
    expect((await readFile(join(folder, "work/hello.tar.gz"))).length).to.be.above(100);
    expect((await world.ask("/default/repos/hello-2/log")).result).to.have.length(2);
    expect((await world.ask("/default/repos/hello")).status).to.equal(404);
  });

  it("is made by the commands that the start prints", async () => {
    const { folder, types } = await person();
    const config = configFromEnvironment({ TRUNKLINE_DATA: join(folder, "data") });
    const lines = greeting(config).split("\n");
    const helpers = lines.slice(
      lines.findIndex((line) => line.includes("credential()")),
      lines.findIndex((line) => line.includes("browser-rendering/pdf")),
    );
    const push = lines.slice(lines.findIndex((line) => line.startsWith("A first repository")) + 1);
    await types([...helpers, ...push].join("\n"));
    expect((await world.ask("/default/repos/hello/raw/main/README.md")).text).to.equal("Hello\n");
  });
});
