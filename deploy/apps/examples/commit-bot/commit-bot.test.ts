import { expect } from "chai";
import { AppPlatform } from "../../../../scripts/testing/app-platform.ts";
import { deployExample } from "../../../../scripts/testing/example-app.ts";
import { until } from "../../../../scripts/testing/until.ts";

describe("example commit-bot", function () {
  this.timeout(300_000);
  let platform: AppPlatform;
  before(async () => {
    platform = await AppPlatform.start();
    await deployExample(platform, "commit-bot");
  });
  after(() => platform[Symbol.asyncDispose]());

  const REPOS = "/artifacts/namespaces/default/repos";
  const log = async (name: string, ref: string) =>
    // The result is null, with status 404, while the ref does not exist.
    (await platform.rest("GET", `${REPOS}/${name}/log?ref=${ref}`)).body.result ?? [];
  const commit = async (name: string, message: string) => {
    const changes = [{ path: "a.txt", content: message }];
    const made = await platform.rest("POST", `${REPOS}/${name}/commits`, { message, changes });
    expect(made.status).to.equal(201);
    return made.body.result.hash as string;
  };

  it("prints a repository's history after each push, and commits it once", async () => {
    await platform.rest("POST", REPOS, { name: "Notes" });
    const first = await commit("Notes", "First <b>note</b>");
    const printed = async () => (await log("Notes", "changelog")) as { message: string }[];
    await until("it is printed", async () => (await printed()).length === 1, 60_000);
    const second = await commit("Notes", "Second");
    await until("so is the next", async () => (await printed()).length === 2, 60_000);
    expect((await printed()).map(({ message }) => message)).to.deep.equal([
      `Changelog of ${second}`,
      `Changelog of ${first}`,
    ]);
    const file = await platform.rest(
      "GET",
      `${REPOS}/Notes/tree/${(await log("Notes", "changelog"))[0].treeHash}`,
    );
    expect(file.body.result.map(({ name }: { name: string }) => name)).to.deep.equal([
      "CHANGELOG.pdf",
    ]);
    // The bot's own commits caused push events too. All of these were delivered, and caused no further commits.
    const deliveries = "/apps/commit-bot/agents/Changelog/default-notes/deliveries";
    await until(
      "all are delivered",
      async () => {
        const { result } = (await platform.rest("GET", deliveries)).body;
        return (
          result.length === 4 &&
          result.every(({ status }: { status: string }) => status === "delivered")
        );
      },
      60_000,
    );
    expect(await printed()).to.have.length(2);
  });
});
