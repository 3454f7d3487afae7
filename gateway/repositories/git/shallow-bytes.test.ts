import { cp, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { Child } from "../../../scripts/bench/child.ts";
import { SeededRandom } from "../../../scripts/testing/seeded-random.ts";
import { type GitGateway, GitWorld, runGitClient, type TestRepo } from "../testing/git-world.ts";

const COMMITS = 400;
const FILES = 10;

describe("the bytes of a shallow fetch", function () {
  this.timeout(120_000);
  let world: GitWorld;
  let gateway: GitGateway;
  let repo: TestRepo;
  let reference: Child;
  let referenceUrl: string;
  before(async () => {
    world = await GitWorld.start();
    gateway = await world.gateway();
    repo = await world.repo();
    const work = await world.checkout();
    const made = await runGitClient(work.folder, ["fast-import", "--quiet"], history());
    expect(made).to.deep.include({ code: 0 });
    // Makes new deltas, as git does for a client's first push: those of `fast-import` are larger.
    await work.git("repack", "-adfq");
    await work.git("push", "-q", gateway.remote(repo), "main");
    const root = join(world.folder, "reference");
    await cp(join(work.folder, ".git"), join(root, "repo.git"), { recursive: true });
    reference = await Child.start("repositories/git-http-process", root);
    referenceUrl = `${await reference.ask<string>("url")}/repo.git`;
  });
  after(async () => {
    await reference[Symbol.asyncDispose]();
    await world[Symbol.asyncDispose]();
  });

  async function packBytes(remote: string, depth: number): Promise<number> {
    const copy = await world.checkout();
    const limits = ["-c", "fetch.unpackLimit=1", "-c", "transfer.unpackLimit=1"];
    await copy.git(...limits, "fetch", "-q", `--depth=${depth}`, remote, "main");
    const folder = join(copy.folder, ".git", "objects", "pack");
    const packs = (await readdir(folder)).filter((name) => name.endsWith(".pack"));
    expect(packs).to.have.length(1);
    return (await stat(join(folder, packs[0] ?? ""))).size;
  }

  for (const depth of [1, 2, 50, 200]) {
    it(`equal those of git http-backend at depth ${depth}`, async () => {
      const [own, plain] = await Promise.all([
        packBytes(gateway.remote(repo), depth),
        packBytes(referenceUrl, depth),
      ]);
      expect(own).to.be.below(1.1 * plain);
    });
  }
});

/**
 * Returns a history for `git fast-import`. Its files grow and shrink, so that git stores some newer versions as
 * deltas of older ones.
 */
function history(): string {
  const random = new SeededRandom(7);
  const below = (end: number) => random.integer(0, end - 1);
  const words = Array.from({ length: 3_000 }, () => below(36 ** 7).toString(36));
  const line = () => Array.from({ length: 8 }, () => words[below(words.length)]).join(" ");
  const files = Array.from({ length: FILES }, () => Array.from({ length: 200 }, line));
  const commits = Array.from({ length: COMMITS }, (_, commit) => {
    const changed = commit === 0 ? files.keys() : [below(FILES), below(FILES), below(FILES)];
    const contents = Array.from(new Set(changed), (number) => {
      const file = files[number] ?? [];
      for (let edit = 0; commit > 0 && edit < 3; edit++) {
        const gone = below(3);
        file.splice(below(file.length), gone, ...Array.from({ length: below(3) }, line));
      }
      const text = file.join("\n");
      return `M 100644 inline src/file-${number}.txt\ndata ${text.length}\n${text}\n`;
    });
    const head = `commit refs/heads/main\ncommitter A <a@example.com> ${1_700_000_000 + commit} +0000\n`;
    return `${head}data 1\nx\n${contents.join("")}\n`;
  });
  return commits.join("");
}
