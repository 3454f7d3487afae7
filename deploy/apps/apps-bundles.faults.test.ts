import { expect } from "chai";
import { APP_VERSIONS_MAX } from "../../schemas/apps/limits.ts";
import { AppPlatform } from "../../scripts/testing/app-platform.ts";

describe("the upkeep of apps", function () {
  this.timeout(900_000);

  it("keeps a bundle that is deployed again while its old version is deleted", async () => {
    await using platform = await AppPlatform.start();
    const code = (text: string) => `export default { fetch: () => new Response("${text}") };`;
    await platform.deploy("again", code("first"));
    for (let index = 0; index < APP_VERSIONS_MAX; index++) {
      await platform.deploy("again", code(`later ${index}`));
    }
    const { body } = await platform.deploy("again", code("first"));
    expect(body.result.versions.at(-1).number).to.be.greaterThan(1);
    // The deletion of an old bundle is a task. When this deploy has removed the next old version too, the first
    // deletion has run.
    await platform.deploy("again", code("last"));
    const version = body.result.serving_version;
    await platform.rest("POST", "/apps/again/rollback", { version });
    expect((await platform.ask("again", "/")).text).to.equal("first");
  });
});
