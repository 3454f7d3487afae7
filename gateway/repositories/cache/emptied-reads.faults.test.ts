import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { expect } from "chai";
import { ActorError } from "../../../schemas/errors.ts";
import { SeededRandom } from "../../../scripts/testing/seeded-random.ts";
import { lfsPointers } from "../lfs/lfs-pointers.ts";
import { type OpenedRepositories, openRepositories } from "../open-repositories.ts";
import { Archives } from "../read/read-archive.ts";
import { readDiff } from "../read/read-diff.ts";
import { ACCOUNT, type GitGateway, GitWorld, type TestRepo } from "../testing/git-world.ts";
import { commitFiles } from "../write/commit-files.ts";

/** More commits than a log reads one by one, so that a git process walks the history. */
const HISTORY = 130;
const ROUNDS = 6;
/** A path whose commit git must check, because the path is not plain. */
const CHECKED = "a name with spaces";
/** Error texts of git's client when the gateway refuses a request, or cuts off a response that has begun. */
const CUT_OFF =
  /error: 503|early EOF|hung up|disconnect|unexpected|expected flush|RPC failed|fetch-pack/;

describe("reads of a git cache that is emptied under them", function () {
  this.timeout(600_000);
  let world: GitWorld;
  let gateway: GitGateway;
  let opened: OpenedRepositories;
  let history: string[];
  let repo: TestRepo;
  const { signal } = new AbortController();
  before(async () => {
    world = await GitWorld.start();
    gateway = await world.gateway();
    const { parts } = gateway.service;
    opened = openRepositories({ ...parts, publicUrl: "http://127.0.0.1", now: Date.now });
    repo = await world.repo();
    const work = await world.checkout();
    history = [];
    for (let at = 0; at < HISTORY; at++) history.unshift(await work.commit(`content ${at}`));
    await work.git("push", "-q", gateway.remote(repo), "main");
  });
  after(async () => {
    await opened.close();
    await world[Symbol.asyncDispose]();
  });

  const address = () => ({ accountId: ACCOUNT, namespace: "tests", name: repo.name });

  /** Returns reads of all kinds. Each asserts that its own result is right. */
  function reads(): Record<string, (round: number) => Promise<void>> {
    const { repositories } = opened;
    const archives = new Archives(repositories.parts, { now: Date.now });
    const open = () => repositories.open(address(), signal);
    const reader = () => repositories.reader(address(), signal);
    return {
      async log() {
        const shown = await (await reader()).log("main", { limit: 20, offset: 105 });
        expect(shown.map(({ hash }) => hash)).to.deep.equal(history.slice(105, 125));
      },
      async diff(round) {
        const [head = "", base = ""] = history.slice(round);
        const diff = await readDiff(repositories.parts, await open(), { base, head, signal });
        expect(diff.patch).to.include(`+content ${HISTORY - 1 - round}`);
      },
      async archive(round) {
        const commit = history[round] ?? "";
        await using made = await archives.get(await open(), { commit, format: "zip" });
        expect(made.bytes).to.be.greaterThan(100);
      },
      async file(round) {
        const found = await (await reader()).file(history[round] ?? "", "file.txt");
        expect(String(await found?.content())).to.equal(`content ${HISTORY - 1 - round}`);
      },
      async "large files"() {
        const found = await lfsPointers(
          repositories.parts,
          await open(),
          [history[0] ?? ""],
          signal,
        );
        expect(found.size).to.equal(0);
      },
      async "commit by git"(round) {
        const content = Buffer.from(`${round} ${performance.now()}`);
        const changes = [{ path: CHECKED, content }];
        const asked = { branch: "other", base: "main", message: "x", changes };
        if (round > 0) Object.assign(asked, { base: undefined });
        await commitFiles(repositories, address(), asked, signal);
      },
    };
  }

  /** Clones and pushes with git's own client. A separate git process of the gateway serves each of its requests. */
  async function cloneAndPush(round: number): Promise<void> {
    const work = await world.checkout();
    const cloned = await work.tryGit("clone", "-q", gateway.remote(repo), "copy");
    if (cloned.code !== 0) {
      expect(cloned.stderr).to.match(CUT_OFF);
      throw new ActorError("unavailable", "cut off");
    }
    expect(await work.git("-C", "copy", "rev-list", "--count", "main")).to.equal(`${HISTORY}`);
    const commit = await work.git(
      "-C",
      "copy",
      "commit-tree",
      "HEAD^{tree}",
      "-p",
      "HEAD",
      "-m",
      "x",
    );
    const to = `${commit}:refs/heads/pushed-${round}`;
    const pushed = await work.tryGit("-C", "copy", "push", "-q", gateway.remote(repo), to);
    if (pushed.code === 0) return;
    expect(pushed.stderr).to.match(/error: 503/);
    throw new ActorError("unavailable", pushed.stderr);
  }

  it("answer rightly, or say that they cannot at present", async () => {
    const seed = Number(process.env.TRUNKLINE_TEST_SEED ?? SeededRandom.newSeed());
    console.log(`      TRUNKLINE_TEST_SEED=${seed}`);
    const random = new SeededRandom(seed);
    let isOver = false;
    let [wiped, refused, answered] = [0, 0, 0];
    const wiping = (async () => {
      while (!isOver) {
        const folder = random.pick(["git", "git/repos", "git/tmp", "git/packs"]);
        await rm(join(gateway.dataDir, folder), { recursive: true, force: true }).catch(() => {});
        wiped += 1;
        for (let turns = random.integer(50, 400); turns > 0 && !isOver; turns--)
          await setImmediate();
      }
    })();
    const faults: unknown[] = [];
    const run = async (name: string, read: (round: number) => Promise<void>) => {
      for (let round = 0; round < ROUNDS; round++) {
        try {
          await read(round);
          answered += 1;
        } catch (error) {
          if (error instanceof ActorError && error.code === "unavailable") refused += 1;
          else faults.push(`${name}: ${error}`);
        }
      }
    };
    const all = { ...reads(), "clone and push": cloneAndPush };
    await Promise.all(Object.entries(all).map(([name, read]) => run(name, read))).finally(() => {
      isOver = true;
    });
    await wiping;
    console.log(`      ${wiped} times emptied, ${answered} answered, ${refused} refused`);
    expect([...faults, ...gateway.faults]).to.deep.equal([]);
    expect(answered).to.be.greaterThan(0);
    for (const read of Object.values(reads())) await read(1);
  });
});
