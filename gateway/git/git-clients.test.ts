import { expect } from "chai";
import { type GitGateway, GitWorld } from "./testing/git-world.ts";

describe("git over HTTP", function () {
  this.timeout(60_000);
  let world: GitWorld;
  let gateway: GitGateway;
  before(async () => {
    world = await GitWorld.start();
    gateway = await world.gateway();
  });
  after(() => world[Symbol.asyncDispose]());
  afterEach(() => expect(gateway.faults).to.deep.equal([]));

  it("takes a push and gives it back to a clone", async () => {
    const repo = await world.repo();
    const work = await world.checkout();
    const head = await work.commit("one");
    await work.git("push", gateway.remote(repo), "main");
    const copy = await world.checkout();
    await copy.git("fetch", gateway.remote(repo), "main");
    expect(await copy.git("rev-parse", "FETCH_HEAD")).to.equal(head);
  });
});
