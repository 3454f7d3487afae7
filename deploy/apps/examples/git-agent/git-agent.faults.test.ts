import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { AppPlatform } from "../../../../scripts/testing/app-platform.ts";
import { InstalledPackages } from "../../../../scripts/testing/installed-app.ts";

describe("example git-agent", function () {
  this.timeout(600_000);
  let platform: AppPlatform;
  let packages: InstalledPackages;
  before(async () => {
    const { dependencies } = JSON.parse(
      await readFile(join(import.meta.dirname, "package.json"), "utf8"),
    );
    packages = await InstalledPackages.install(dependencies);
    platform = await AppPlatform.start();
    await packages.deploy(platform, "git-agent", { source: import.meta.dirname });
  });
  after(async () => {
    await platform?.[Symbol.asyncDispose]();
    await packages?.[Symbol.asyncDispose]();
  });

  const note = (repository: string, text: string) =>
    platform.ask("git-agent", `/notes/${repository}`, { method: "POST", body: text });
  const repo = async (path: string) =>
    (await platform.rest("GET", `/artifacts/namespaces/default/repos/${path}`)).body.result;

  it("clones a repository, commits to it and pushes, from inside an agent", async () => {
    const first = await note("diary", "First");
    expect(first.text).to.match(/^\{"commit":"[\da-f]{40}","notes":1\}$/);
    const second = JSON.parse((await note("diary", "Second")).text);
    expect(second.notes).to.equal(2);
    const log = await repo("diary/log?ref=main");
    expect(log.map(({ message }: { message: string }) => message.trim())).to.deep.equal([
      ...["Note: Second", "Note: First", "Notebook"],
    ]);
    expect(log[0].hash).to.equal(second.commit);
    const [{ hash, name }] = await repo(`diary/tree/${log[0].treeHash}`);
    expect(name).to.equal("NOTES.md");
    const { base_url: base, account_id: account, api_token: token } = platform.credentials;
    const blob = await fetch(
      `${base}/accounts/${account}/artifacts/namespaces/default/repos/diary/blob/${hash}`,
      { headers: { authorization: `Bearer ${token}` } },
    );
    expect(await blob.text()).to.equal("- First\n- Second\n");
  });

  it("handles concurrent notes one after the other", async () => {
    const answers = await Promise.all(["a", "b", "c"].map((text) => note("many", text)));
    const counts = answers.map(({ text }) => JSON.parse(text).notes);
    expect(counts.toSorted()).to.deep.equal([1, 2, 3]);
  });
});
