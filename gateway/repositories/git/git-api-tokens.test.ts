import { expect } from "chai";
import { apiToken } from "../../../schemas/account/api-token.ts";
import { newToken } from "../../account/api-token-text.ts";
import { AUTHENTICATION_FAILURES_MAX } from "../../account/failed-authentications.ts";
import { ArtifactsWorld } from "../../testing/artifacts-world.ts";
import { giveToken, openAccount } from "../../testing/test-gateway.ts";
import type { Checkout } from "../testing/git-world.ts";

const NOT_OPENED = "Invalid or expired token, or there is no such repository";

describe("API tokens as passwords of git", function () {
  this.timeout(60_000);
  let world: ArtifactsWorld;
  let remote: string;
  let work: Checkout;
  before(async () => {
    world = await ArtifactsWorld.start();
    const { result } = await world.post("/tests/repos", { name: "one" });
    ({ remote } = result);
    work = await world.checkout();
    await work.commit("1");
    await work.git("push", "-q", world.remote(result), "main");
  });
  after(() => world[Symbol.asyncDispose]());
  afterEach(() => expect(world.faults).to.deep.equal([]));

  const at = (token: string, address = remote) => address.replace("//", `//x:${token}@`);
  const fetchWith = (token: string, address = remote) =>
    work.tryGit("fetch", "-q", at(token, address), "main");
  const pushWith = (token: string) =>
    work.tryGit("push", "-q", "--force", at(token), "HEAD:refs/heads/side");

  it("can fetch with the read permission and push with the write permission", async () => {
    const writes = await world.tokenWith("artifacts.write");
    expect(await fetchWith(writes)).to.deep.include({ code: 0 });
    expect(await pushWith(writes)).to.deep.include({ code: 0 });
    const reads = await world.tokenWith("artifacts.read");
    expect(await fetchWith(reads)).to.deep.include({ code: 0 });
    const pushed = await pushWith(reads);
    expect(pushed.code).not.to.equal(0);
    expect(pushed.stderr).to.contain('this token lacks "Artifacts Write"');
  });

  it("give no access with unrelated permissions", async () => {
    const other = await world.tokenWith("account.write", "apps.write", "browser-rendering.write");
    const { code, stderr } = await fetchWith(other);
    expect(code).not.to.equal(0);
    expect(stderr).to.contain('this token lacks "Artifacts Read"');
  });

  it("give no access to another account's repository, and do not reveal whether it exists", async () => {
    const actors = world.world.client;
    const stranger = await openAccount(actors, "Two");
    const token = await giveToken(actors, stranger, ["artifacts.write"]);
    for (const address of [remote, remote.replace("/one.git", "/none.git")]) {
      const { code, stderr } = await fetchWith(token, address);
      expect(code).not.to.equal(0);
      expect(stderr).to.contain(NOT_OPENED);
    }
  });

  it("reveal which repositories of their own account do not exist", async () => {
    const reads = await world.tokenWith("artifacts.read");
    const { code, stderr } = await fetchWith(reads, remote.replace("/one.git", "/none.git"));
    expect(code).not.to.equal(0);
    expect(stderr).to.contain("not found");
  });

  it("are refused at once when they are revoked", async () => {
    const token = await world.tokenWith("artifacts.write");
    expect(await fetchWith(token)).to.deep.include({ code: 0 });
    await world.world.client.call(apiToken, token.slice(3, 35), "revoke", {});
    const { code, stderr } = await fetchWith(token);
    expect(code).not.to.equal(0);
    expect(stderr).to.contain(NOT_OPENED);
  });

  it("cannot be guessed past the limit, while a token that was accepted before still works", async () => {
    const token = await world.tokenWith("artifacts.read");
    const ask = async (shown: string) => {
      const headers = { Authorization: `Basic ${Buffer.from(`x:${shown}`).toString("base64")}` };
      const url = `${remote}/info/refs?service=git-upload-pack`;
      const { status } = await fetch(url, { headers });
      return status;
    };
    expect(await ask(token)).to.equal(200);
    const guess = () => newToken(token.slice(3, 35)).text;
    for (let i = 0; i < AUTHENTICATION_FAILURES_MAX; i++) {
      expect(await ask(guess())).to.be.oneOf([403, 429]);
    }
    expect(await ask(guess())).to.equal(429);
    expect(await ask(token)).to.equal(200);
  });
});
