import { expect } from "chai";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { repo as repoContract } from "../../../schemas/repositories/repo.ts";
import { ACCOUNT, GitWorld, type TestRepo } from "../testing/git-world.ts";

const REPO_BYTES = 1_000_000;

describe("a push that is refused after the repository decided about some of its refs", function () {
  this.timeout(120_000);
  let world: GitWorld;
  before(async () => {
    world = await GitWorld.start();
  });
  after(() => world[Symbol.asyncDispose]());

  /**
   * Pushes a deletion and a new branch while the repository is pruned: the first `swap` deletes the branch and answers
   * `g` for the other one. `first` runs after the first `swap`, and `later` before each later one.
   */
  async function pushed(
    swapped: { first?(repo: TestRepo): Promise<void>; later?(): void },
    { isAtomic = false } = {},
  ) {
    const repo = await world.repo();
    const actors = await world.world.newClient();
    let swaps = 0;
    const pruning: ActorClient = {
      run: actors.run.bind(actors),
      send: actors.send.bind(actors),
      call: async (contract, key, message, input, ...rest) => {
        if (message !== "swap") return await actors.call(contract, key, message, input, ...rest);
        swaps += 1;
        if (swaps > 1) swapped.later?.();
        // Another generation shows that a prune has changed the repository meanwhile.
        const asked = swaps === 1 ? Object.assign({}, input, { generation: 7 }) : input;
        const reply = await actors.call(contract, key, message, asked, ...rest);
        if (swaps === 1) await swapped.first?.(repo);
        return reply;
      },
    };
    const plain = await world.gateway();
    const gateway = await world.gateway({ actors: pruning, sizes: { repoBytes: REPO_BYTES } });
    const work = await world.checkout();
    await work.commit("first");
    await work.git("push", "-q", plain.remote(repo), "main", "main:old");
    await work.commit("second");
    const remote = gateway.remote(repo);
    const atomic = isAtomic ? ["--atomic"] : [];
    const { stdout, stderr } = await work.tryGit(
      ...["push", "--porcelain", ...atomic, remote, ":old", "main:new"],
    );
    const listed = await work.git("ls-remote", "--heads", plain.remote(repo));
    const refs = listed.split("\n").map((line) => line.split("\t")[1]);
    expect([...gateway.faults, ...plain.faults]).to.deep.equal([]);
    return { said: stdout + stderr, refs };
  }

  const busy = () => {
    throw new ActorError("busy", "Cannot push: the host is busy");
  };

  it("reports the deletion that took place, and a refusal only at the other ref", async () => {
    const { said, refs } = await pushed({ later: busy });
    expect(refs).to.deep.equal(["refs/heads/main"]);
    expect(said).to.contain("-\t:refs/heads/old\t[deleted]");
    expect(said).to.contain(
      "!\trefs/heads/main:refs/heads/new\t[remote rejected] (Cannot push: the host is busy)",
    );
  });

  it("does so too if the repository has no more room for the pack", async () => {
    const { said, refs } = await pushed({
      async first({ id, name }) {
        const address = { accountId: ACCOUNT, namespace: "tests", name };
        const objects = [{ oid: "1".repeat(64), bytes: REPO_BYTES, heldMs: 60_000 }];
        await world.actors.call(repoContract, id, "nameLfsObjects", { address, objects });
      },
    });
    expect(refs).to.deep.equal(["refs/heads/main"]);
    expect(said).to.contain("-\t:refs/heads/old\t[deleted]");
    expect(said).to.contain(
      "!\trefs/heads/main:refs/heads/new\t[remote rejected] (unpacker error)",
    );
    expect(said).to.contain("remote unpack failed: the repository would be too large");
  });

  it("refuses all refs of an atomic push, of which none changed", async () => {
    const { said, refs } = await pushed({ later: busy }, { isAtomic: true });
    expect(refs).to.deep.equal(["refs/heads/main", "refs/heads/old"]);
    expect(said).to.not.contain("[deleted]");
    expect(said.match(/\[remote rejected\] \(Cannot push: the host is busy\)/g)).to.have.length(2);
  });
});
