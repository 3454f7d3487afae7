import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { expect } from "chai";
import { ActorError } from "../../../schemas/errors.ts";
import { SeededRandom } from "../../../scripts/testing/seeded-random.ts";
import { type OpenedRepositories, openRepositories } from "../open-repositories.ts";
import { ACCOUNT, GitWorld, type TestRepo } from "../testing/git-world.ts";
import { commitFiles } from "../write/commit-files.ts";

const WRITERS = 3;
const COMMITS = 25;

describe("a git cache that is emptied while a gateway runs", function () {
  this.timeout(600_000);
  let world: GitWorld;
  let opened: OpenedRepositories;
  let dataDir: string;
  const { signal } = new AbortController();
  before(async () => {
    world = await GitWorld.start();
    const gateway = await world.gateway();
    ({ dataDir } = gateway);
    const { parts } = gateway.service;
    opened = openRepositories({ ...parts, publicUrl: "http://127.0.0.1", now: Date.now });
  });
  after(async () => {
    await opened.close();
    await world[Symbol.asyncDispose]();
  });

  const addressOf = ({ name }: TestRepo) => ({ accountId: ACCOUNT, namespace: "tests", name });

  async function commit(repo: TestRepo, branch: string, content: string): Promise<string> {
    const changes = [{ path: `${branch}.txt`, content: Buffer.from(content) }];
    const asked = { branch, message: content, changes };
    return (await commitFiles(opened.repositories, addressOf(repo), asked, signal)).commit.hash;
  }

  async function log(repo: TestRepo, branch: string) {
    const reader = await opened.repositories.reader(addressOf(repo), signal);
    return await reader.log(branch, { limit: 1, offset: 0 });
  }

  it("still serves every commit and accepts pushes, or reports that it is temporarily unavailable", async () => {
    const seed = Number(process.env.TRUNKLINE_TEST_SEED ?? SeededRandom.newSeed());
    console.log(`      TRUNKLINE_TEST_SEED=${seed}`);
    const random = new SeededRandom(seed);
    const repo = await world.repo();
    const branches = Array.from({ length: WRITERS }, (_, at) => `b${at}`);
    const first = await Promise.all(branches.map((branch) => commit(repo, branch, "first")));
    let isOver = false;
    let [wiped, ended] = [0, 0];
    const wiping = (async () => {
      while (!isOver) {
        const folder = random.pick(["git", "git/repos", "git/tmp", `git/repos/${repo.id}`]);
        // Files created meanwhile may remain.
        await rm(join(dataDir, folder), { recursive: true, force: true }).catch(() => {});
        wiped += 1;
        const until = ended + random.integer(0, 3);
        while (!isOver && ended < until) await setImmediate();
      }
    })();
    const refused: ActorError[] = [];
    const unlessEmptied = async <T>(work: Promise<T>): Promise<T | undefined> => {
      try {
        return await work;
      } catch (error) {
        if (!(error instanceof ActorError) || error.code !== "unavailable") throw error;
        refused.push(error);
        return undefined;
      } finally {
        ended += 1;
      }
    };
    const written = branches.map(async (branch, at) => {
      let last = first[at];
      for (let number = 0; number < COMMITS; number++) {
        last = (await unlessEmptied(commit(repo, branch, `${branch} ${number}`))) ?? last;
        const shown = await unlessEmptied(log(repo, branch));
        if (shown) expect(shown.map(({ hash }) => hash)).to.deep.equal([last]);
      }
      return last;
    });
    const tips = await Promise.all(written).finally(() => {
      isOver = true;
    });
    await wiping;
    console.log(`      ${wiped} times emptied, ${refused.length} requests refused`);
    for (const [at, branch] of branches.entries()) {
      expect((await log(repo, branch))[0]?.hash).to.equal(tips[at]);
      await commit(repo, branch, "after");
    }
  });
});
