import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { shellBlocksOf, WORK_FOLDER } from "../../scripts/testing/guide.ts";
import { type OAuthWorld, oauthWorld, Person } from "./testing/oauth-world.ts";

const run = promisify(execFile);

describe("the first OAuth client", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  let folder: string;
  before(async () => {
    world = await oauthWorld();
    folder = await mkdtemp(join(tmpdir(), "trunkline-readme-"));
  });
  after(async () => {
    await world?.stop();
    await rm(folder, { recursive: true });
  });

  it("is made and deleted by the commands of the guide, word for word", async () => {
    await mkdir(join(folder, "data"));
    const [url = ""] = world.urls;
    const { accountId: account_id, token: api_token } = world;
    const credentials = { base_url: `${url}/v4`, account_id, api_token };
    await writeFile(join(folder, "data", "credentials.json"), JSON.stringify(credentials));
    const [helpers = "", register = "", redeem = ""] = shellBlocksOf("docs/guides/oauth.md");
    const types = async (lines: string) => {
      const { stdout } = await run("bash", ["-euo", "pipefail", "-c", lines], {
        cwd: folder,
        env: { PATH: process.env.PATH, HOME: folder },
      });
      return stdout.trim();
    };
    // Each example runs in a new shell, so the first example saves its variables in a file for the next one.
    const kept = 'declare -p id secret server > "$HOME/kept"; declare -f field >> "$HOME/kept"\n';
    const address = await types(`${WORK_FOLDER}${helpers}${register}${kept}`);

    const person = new Person(url);
    await person.open(address);
    await person.signIn(world.owner);
    await person.submit({ decision: "allow" });
    const { searchParams } = new URL(person.seen.url);
    expect(searchParams.get("state")).to.equal("abc");
    const lines = redeem.replace("CODE", searchParams.get("code") ?? "");
    const seen = await types(`. ./kept\n${lines}declare -p tokens > tokens`);
    expect(JSON.parse(seen).result).to.have.nested.property("0.id", world.accountId);
    const { access_token: token } = JSON.parse(await types('. ./tokens; echo "$tokens"'));
    expect(token).to.match(/^tl_at_/);
    expect((await world.api("/accounts", { token })).status).to.equal(401);
  });
});
