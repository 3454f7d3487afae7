import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { REPO_PACKS_MAX } from "../../../actors/repositories/repo/judge-push.ts";
import { COMPACT_PACKS } from "../../../schemas/repositories/limits.ts";
import { repo as repoContract } from "../../../schemas/repositories/repo.ts";
import { until } from "../../../scripts/testing/until.ts";
import {
  ACCOUNT,
  type Checkout,
  type GitGateway,
  GitWorld,
  runGitClient,
  type TestRepo,
} from "../testing/git-world.ts";
import { rawPush } from "../testing/raw-push.ts";
import { packsIn, storePacks } from "../testing/store-packs.ts";

const FILES = 1_500;
/** Branches that push at the same time. */
const BRANCHES = 4;
/**
 * Commits of each branch whose packs are stored without a push. A push to a repository of 2,000 packs takes 0.2 s of
 * processor time, so the test makes only the last pushes before the limit.
 */
const STORED = 475;
/** Commits that are pushed after the limit was reached, while upkeep runs. */
const PAST = 200;
/** Time limit for a compaction. It is long, because a failed compaction is retried only after a minute. */
const COMPACTED_MS = 600_000;

describe("compaction after thin pushes", function () {
  this.timeout(3_600_000);
  let world: GitWorld;
  let gateway: GitGateway;
  let repo: TestRepo;
  let work: Checkout;
  beforeEach(async () => {
    world = await GitWorld.start();
    gateway = await world.gateway();
    repo = await world.repo();
    work = await world.checkout();
  });
  afterEach(() => world[Symbol.asyncDispose]());

  async function packs(): Promise<number> {
    const { id, name } = repo;
    const manifest = await world.actors.call(repoContract, id, "manifest", {
      address: { accountId: ACCOUNT, namespace: "tests", name },
      after: { version: 0, row: -1 },
      packsAfter: 0,
    });
    return manifest.packs.length;
  }

  /**
   * Makes a first commit of many files, and `count` commits after it on each branch. Pushes only the first commit, to
   * main and all branches. The repository then gets the first `stored` commits of each branch without pushes, each in
   * a pack of its own.
   */
  async function history(count: number, stored = 0): Promise<string[][]> {
    await runImport(firstCommit());
    const first = await work.git("rev-parse", "first");
    for (const branch of ["main", ...branches]) {
      await work.git("push", "-q", gateway.remote(repo), `first:refs/heads/${branch}`);
    }
    const before = new Set(await packsIn(work));
    // At a checkpoint fast-import closes its pack and begins the next one.
    if (stored > 0) await runImport(laterCommits(1, stored, "checkpoint\n\n"));
    const packs = (await packsIn(work)).filter((path) => !before.has(path));
    expect(packs).to.have.length(BRANCHES * stored);
    await runImport(laterCommits(stored + 1, count));
    const all = await Promise.all(
      branches.map(async (branch) => {
        const listed = await work.git("rev-list", "--reverse", `first..${branch}`);
        return [first, ...listed.split("\n")];
      }),
    );
    const commands = all.map((commits, at) => {
      return { old: first, value: commits[stored] ?? "", ref: `refs/heads/b${at}` };
    });
    await storePacks(world, gateway, repo, packs, commands);
    return all;
  }

  async function runImport(stream: string): Promise<void> {
    // Keeps packs of a few objects, which fast-import would otherwise unpack.
    const command = ["-c", "fastimport.unpackLimit=1", "fast-import", "--quiet"];
    const ran = await runGitClient(work.folder, command, stream);
    expect(ran.code, ran.stderr).to.equal(0);
  }

  /** Pushes commits one by one, each with the thin pack that git makes for it. */
  async function pushThin(branch: string, commits: readonly string[]): Promise<void> {
    await makeThinPacks(work, commits);
    for (const [at, value] of commits.slice(1).entries()) {
      const old = commits[at] ?? "";
      const report = await rawPush(
        gateway,
        repo,
        [{ old, value, ref: `refs/heads/${branch}` }],
        await readFile(join(work.folder, `${value}.pack`)),
      );
      expect(report).to.contain(`ok refs/heads/${branch}`);
    }
  }

  async function expectWhole(tips: Record<string, string>): Promise<void> {
    const copy = await world.checkout();
    await copy.git("fetch", "-q", gateway.remote(repo), "+refs/heads/*:refs/heads/x/*");
    await copy.git("fsck", "--full", "--strict");
    for (const [branch, tip] of Object.entries(tips)) {
      expect(await copy.git("rev-parse", `x/${branch}`)).to.equal(tip);
    }
  }

  it("leaves out objects that a large first pack already has", async () => {
    const [commits = []] = await history(COMPACT_PACKS);
    await world.upkeep(gateway);
    await pushThin("b0", commits);
    await until("few packs", async () => (await packs()) < COMPACT_PACKS / 2, COMPACTED_MS);
    await expectWhole({ b0: commits.at(-1) ?? "" });
    expect(gateway.faults).to.deep.equal([]);
  });

  // The stored packs come from fast-import and hold no base objects, so only the pushed packs hold objects twice.
  it("accepts thin pushes up to REPO_PACKS_MAX packs, most without base objects, and more once upkeep ran", async () => {
    const many = (REPO_PACKS_MAX - 4) / BRANCHES;
    const all = await history((REPO_PACKS_MAX + PAST) / BRANCHES, STORED);
    expect(await packs()).to.equal(1 + BRANCHES * STORED);
    await Promise.all(
      all.map((commits, at) => pushThin(`b${at}`, commits.slice(STORED, many + 1))),
    );
    const [first = []] = all;
    let next = many + 1;
    const push = () => work.tryGit("push", gateway.remote(repo), `${first[next]}:refs/heads/b0`);
    for (; (await packs()) < REPO_PACKS_MAX; next++) expect((await push()).code).to.equal(0);
    const refused = await push();
    expect(refused.code).to.equal(1);
    expect(refused.stderr).to.contain("too many packs");
    await world.upkeep(gateway);
    await until("few packs", async () => (await packs()) < COMPACT_PACKS, COMPACTED_MS);
    const rest = all.map((commits, at) => commits.slice(at === 0 ? next - 1 : many));
    await Promise.all(rest.map((commits, at) => pushThin(`b${at}`, commits)));
    await until("few packs", async () => (await packs()) < COMPACT_PACKS, COMPACTED_MS);
    const tips = all.map((commits, at) => [`b${at}`, commits.at(-1) ?? ""]);
    await expectWhole(Object.fromEntries(tips));
    expect(gateway.faults).to.deep.equal([]);
  });
});

const branches = Array.from({ length: BRANCHES }, (_, at) => `b${at}`);

/** Returns a page of text in which only one line differs, so that git stores a delta. */
const page = (file: number, line: string) =>
  `${Array.from({ length: 60 }, (_, at) => `line ${at} of file ${file}: ${(file * 7919 + at * 104729) % 99991}`).join("\n")}\n${line}\n`;

const author = (seconds: number) => `committer A <a@example.com> ${1_700_000_000 + seconds} +0000`;

function file(number: number, line: string): string {
  const content = page(number, line);
  const path = `d${number % 30}/f${number}`;
  return `M 100644 inline ${path}\ndata ${Buffer.byteLength(content)}\n${content}\n`;
}

/** Returns the input of fast-import for the first commit. */
function firstCommit(): string {
  const first = Array.from({ length: FILES }, (_, number) => file(number, "first"));
  return `commit refs/heads/first\n${author(0)}\ndata 5\nfirst\n${first.join("")}\n`;
}

/** Returns the input of fast-import for some commits of each branch, with `then` after each commit. */
function laterCommits(from: number, to: number, then = ""): string {
  const lines: string[] = [];
  for (const branch of branches) {
    for (let at = from; at <= to; at++) {
      const text = `${branch} ${at}`;
      const parent = at === 1 ? "refs/heads/first" : `refs/heads/${branch}^0`;
      const begin = at === from ? `from ${parent}\n` : "";
      lines.push(
        `commit refs/heads/${branch}\n${author(at)}\ndata ${text.length}\n${text}\n${begin}${file((at * 31) % FILES, text)}\n${then}`,
      );
    }
  }
  return lines.join("");
}

/** A shell script: reads lines of a commit and its parent, and writes the thin pack of each commit to a file. */
const THIN_PACKS = `while read value old; do
  printf '%s\\n^%s\\n' $value $old |
    git pack-objects --thin --revs --stdout --delta-base-offset -q >$value.pack || exit 1
done`;

/**
 * Makes a thin pack of each commit after the first, based on the commit before it. A shell starts git faster than
 * this large process.
 */
async function makeThinPacks({ folder }: Checkout, commits: readonly string[]): Promise<void> {
  const shell = spawn("sh", ["-c", THIN_PACKS], {
    cwd: folder,
    stdio: ["pipe", "inherit", "inherit"],
  });
  const lines = commits.slice(1).map((value, at) => `${value} ${commits[at]}\n`);
  shell.stdin.end(lines.join(""));
  const [code] = await once(shell, "close");
  expect(code).to.equal(0);
}
