import { expect } from "chai";
import { TREE_DEPTH_MAX } from "../../../schemas/repositories/limits.ts";
import { repo as repoContract } from "../../../schemas/repositories/repo.ts";
import { until } from "../../../scripts/testing/until.ts";
import {
  ACCOUNT,
  type Checkout,
  type GitGateway,
  GitWorld,
  type TestRepo,
} from "../testing/git-world.ts";
import { warmSpawner } from "../testing/warm-spawner.ts";
import { TREE_DEPTH_TRUSTED } from "./inspect-pack.ts";
import { measureWholeDepth } from "./tree-depth.ts";

const signal = new AbortController().signal;

describe("depth of directories", function () {
  this.timeout(900_000);
  let world: GitWorld;
  let gateway: GitGateway;
  before(async () => {
    world = await GitWorld.start();
    gateway = await world.gateway();
    await world.upkeep(gateway);
  });
  after(() => world[Symbol.asyncDispose]());
  afterEach(() => expect(gateway.faults).to.deep.equal([]));

  const depthOf = async ({ id, name }: TestRepo) => {
    const { treeDepth } = await world.actors.call(repoContract, id, "manifest", {
      address: { accountId: ACCOUNT, namespace: "tests", name },
      after: { version: 0, row: -1 },
      packsAfter: 0,
    });
    return treeDepth;
  };
  async function around(work: Checkout, tree: string, levels: number): Promise<string> {
    let id = tree;
    for (let i = 0; i < levels; i++) id = await work.tree("40000", "d", id);
    return id;
  }
  const push = async (work: Checkout, repo: TestRepo, tree: string, branch = "main") => {
    const commit = await work.commitTree(tree);
    return await work.tryGit("push", gateway.remote(repo), `+${commit}:refs/heads/${branch}`);
  };

  it("is limited in the whole repository, even if each push adds too little to be measured", async () => {
    const repo = await world.repo();
    const work = await world.checkout();
    let tree = await work.tree("100644", "f", await work.object("blob", "x"));
    tree = await around(work, tree, TREE_DEPTH_TRUSTED - 1);
    expect((await push(work, repo, tree)).code).to.equal(0);
    for (let depth = TREE_DEPTH_TRUSTED; depth < TREE_DEPTH_MAX; depth += TREE_DEPTH_TRUSTED) {
      tree = await around(work, tree, TREE_DEPTH_TRUSTED);
      expect((await push(work, repo, tree)).code, `${depth}`).to.equal(0);
    }
    expect(await depthOf(repo)).to.equal(TREE_DEPTH_MAX);
    const past = await push(work, repo, await around(work, tree, 1));
    expect(past.code).to.not.equal(0);
    expect(past.stderr).to.contain(`${TREE_DEPTH_MAX + 1} deep, more than ${TREE_DEPTH_MAX}`);
    expect((await push(work, repo, await around(work, tree, 3), "other")).code).to.not.equal(0);
    // A push whose directories do not contain the deep ones is accepted.
    const flat = await work.tree("100644", "g", await work.object("blob", "y"));
    expect((await push(work, repo, flat, "flat")).code).to.equal(0);
    expect(await depthOf(repo)).to.equal(TREE_DEPTH_MAX);
  });

  it("allows repeated changes in nested directories, and is measured again by upkeep", async () => {
    const repo = await world.repo();
    const work = await world.checkout();
    const path = `${Array.from({ length: 24 }, (_, i) => `d${i}`).join("/")}/file`;
    const rounds = Math.ceil(TREE_DEPTH_MAX / 25) + 3;
    for (let i = 0; i < rounds; i++) {
      await work.commit(`${i}`, path);
      await work.git("push", "-q", gateway.remote(repo), "main");
    }
    const summed = await depthOf(repo);
    expect(summed)
      .to.be.above(TREE_DEPTH_MAX - 25)
      .and.at.most(TREE_DEPTH_MAX);
    await world.actors.call(repoContract, repo.id, "prune", {});
    await until("it is measured", async () => (await depthOf(repo)) === 25, 60_000);
    await work.commit("after", path);
    await work.git("push", "-q", gateway.remote(repo), "main");
    expect(await depthOf(repo)).to.equal(50);
  });

  it("measureWholeDepth() reads at most treesMax directories, and none below the depth limit", async () => {
    const work = await world.checkout();
    const place = { cwd: work.folder, environment: { GIT_DIR: ".git" } };
    const leaf = await work.tree("100644", "f", await work.object("blob", "x"));
    const tree = await around(work, leaf, 9);
    const measured = (treesMax: number) => measureWholeDepth([tree], place, signal, { treesMax });
    expect(await measured(10)).to.equal(10);
    expect(await measured(9)).to.equal(undefined);
    const edged = (treeEdgesMax: number) =>
      measureWholeDepth([tree], place, signal, { treeEdgesMax });
    expect([await edged(9), await edged(8)]).to.deep.equal([10, undefined]);
    expect(await measureWholeDepth([leaf, tree, leaf], place, signal)).to.equal(10);
    expect(await measureWholeDepth([], place, signal)).to.equal(0);
    const deep = await around(work, tree, TREE_DEPTH_MAX - 10);
    expect(await measureWholeDepth([deep], place, signal)).to.equal(TREE_DEPTH_MAX);
    const deeper = await around(work, deep, 20);
    expect(await measureWholeDepth([deeper], place, signal)).to.equal(TREE_DEPTH_MAX + 1);
  });

  it("measureWholeDepth() ends in the middle of a wide level, with output that it does not read", async () => {
    const wide = 3_000;
    const work = await world.checkout();
    const files = Array.from({ length: wide }, (_, at) => [`${at}/d/f`, `${at}`] as const);
    const commit = await work.commitFiles(new Map(files));
    const tree = await work.git("rev-parse", `${commit}^{tree}`);
    const place = { cwd: work.folder, environment: { GIT_DIR: ".git" } };
    await warmSpawner(work.folder);
    expect(await measureWholeDepth([tree], place, signal)).to.equal(3);
    const treeEdgesMax = 1.5 * wide;
    expect(await measureWholeDepth([tree], place, signal, { treeEdgesMax })).to.equal(undefined);
  });
});
