import { expect } from "chai";
import { repo as repoContract } from "../../../schemas/repositories/repo.ts";
import { type GitGateway, GitWorld } from "../testing/git-world.ts";

const HOURS = 3 * 60 * 60_000;

describe("a gateway whose clock is wrong", function () {
  this.timeout(60_000);
  let world: GitWorld;
  before(async () => {
    world = await GitWorld.start();
  });
  after(() => world[Symbol.asyncDispose]());

  for (const [what, offset] of [
    ["behind", -HOURS],
    ["ahead", HOURS],
  ] as const) {
    it(`accepts pushes and serves clones, and tokens expire by the clock of the actors: ${what}`, async () => {
      const gateway: GitGateway = await world.gateway({ now: () => Date.now() + offset });
      const repo = await world.repo();
      const work = await world.checkout();
      const head = await work.commit(what);
      const before = Date.now();
      await work.git("push", "-q", gateway.remote(repo), "main");
      // Pushes the same commit to another repository: the pack is stored already, so it is held and then named.
      const other = await world.repo();
      await work.git("push", "-q", gateway.remote(other), "main");
      expect(await work.git("ls-remote", gateway.remote(repo), "main")).to.contain(head);
      const { tokens } = await world.actors.call(repoContract, repo.id, "listTokens", {
        state: "active",
        offset: 0,
        limit: 10,
      });
      expect(tokens[0]?.lastUsedAt).to.be.within(before, Date.now());
      const short = await world.token(repo, "read", 60);
      expect(
        (await work.tryGit("ls-remote", gateway.remote(repo, short.split("?")[0]))).code,
      ).to.equal(0);
      expect(gateway.faults).to.deep.equal([]);
    });
  }
});
