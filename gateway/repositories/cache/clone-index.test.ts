import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { repo as repoContract } from "../../../schemas/repositories/repo.ts";
import { until } from "../../../scripts/testing/until.ts";
import {
  ACCOUNT,
  type Checkout,
  type GitGateway,
  GitWorld,
  type TestRepo,
} from "../testing/git-world.ts";
import { compactPacks } from "../upkeep/compact-packs.ts";
import { PACKS_INDEX } from "./cache-files.ts";
import { GIT_BITMAPS_GROWTH } from "./clone-index.ts";

const signal = new AbortController().signal;

describe("bitmaps of cloned repositories", function () {
  this.timeout(120_000);
  let world: GitWorld;
  before(async () => {
    world = await GitWorld.start();
  });
  after(() => world[Symbol.asyncDispose]());

  const address = ({ name }: TestRepo) => ({ accountId: ACCOUNT, namespace: "tests", name });

  async function packBytes(repo: TestRepo): Promise<number> {
    const { packs } = await world.actors.call(repoContract, repo.id, "manifest", {
      address: address(repo),
      after: { version: 0, row: -1 },
      packsAfter: 0,
    });
    return packs.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  const folderOf = ({ dataDir }: GitGateway, { id }: TestRepo) =>
    join(dataDir, "git", "repos", id, "0", "objects", "pack");
  const inFolder = async (gateway: GitGateway, repo: TestRepo) =>
    (await readdir(folderOf(gateway, repo))).filter((name) => !name.endsWith(".lock"));
  const hasIndex = async (gateway: GitGateway, repo: TestRepo) =>
    (await inFolder(gateway, repo)).includes(PACKS_INDEX);
  /**
   * Returns the name of the bitmap file if the index exists. Git writes the bitmap before it puts the index in place.
   */
  async function bitmapOf(gateway: GitGateway, repo: TestRepo): Promise<string | undefined> {
    const names = await inFolder(gateway, repo);
    return names.includes(PACKS_INDEX) ? names.find((name) => name.endsWith(".bitmap")) : undefined;
  }

  async function pushed(gateway: GitGateway, repo: TestRepo, work: Checkout, text: string) {
    const head = await work.commit(text, `${text.length}.txt`);
    await work.git("push", "-q", gateway.remote(repo), "main");
    return head;
  }

  /** Clones with a request that was not sent before, so that git serves it and not the cache of responses. */
  async function cloned(gateway: GitGateway, repo: TestRepo, head: string): Promise<void> {
    const copy = await world.checkout();
    await copy.git("fetch", "-q", gateway.remote(repo), "main");
    expect(await copy.git("rev-parse", "FETCH_HEAD")).to.equal(head);
    await copy.git("fsck", "--full", "--strict");
    expect(gateway.faults).to.deep.equal([]);
  }

  it("are built at the byte threshold, not one byte below, and rebuilt after growth by GIT_BITMAPS_GROWTH", async () => {
    const plain = await world.gateway();
    const repo = await world.repo();
    const work = await world.checkout();
    const first = await pushed(plain, repo, work, "first");
    const bytes = await packBytes(repo);
    const later = await world.gateway({ bitmapsFromBytes: bytes + 1 });
    await cloned(later, repo, first);
    const { manifests, cloneIndexes } = later.service.parts;
    const manifest = await manifests.read(repo.id, address(repo), signal);
    const opened = { id: repo.id, accountId: ACCOUNT, address: address(repo), manifest };
    await cloneIndexes.want(opened);
    expect(await hasIndex(later, repo), "one less").to.equal(false);

    const gateway = await world.gateway({ bitmapsFromBytes: bytes });
    await cloned(gateway, repo, first);
    await until("there are bitmaps", () => bitmapOf(gateway, repo));
    const made = await bitmapOf(gateway, repo);
    const copies = await world.checkout();
    for (const option of ["--depth=1", "--filter=blob:none", "--filter=tree:0"]) {
      await copies.git("clone", "-q", "--bare", option, gateway.remote(repo), option.slice(2));
      expect(await copies.git("-C", option.slice(2), "rev-parse", "main")).to.equal(first);
    }
    const second = await pushed(gateway, repo, work, "x");
    expect(await packBytes(repo)).to.be.within(bytes, bytes * 10);
    await cloned(gateway, repo, second);
    const large = Array.from({ length: 2_000 }, () => Math.random()).join("\n");
    const third = await pushed(gateway, repo, work, large);
    expect(await packBytes(repo)).to.be.above(2 * bytes * GIT_BITMAPS_GROWTH);
    await cloned(gateway, repo, third);
    await until("they are others", async () => {
      const now = await bitmapOf(gateway, repo);
      return now !== undefined && now !== made;
    });
    await cloned(gateway, repo, third);
  });

  it("are removed before a pack that they name; running clones that use them keep the pack", async () => {
    const gateway = await world.gateway({ bitmapsFromBytes: 1 });
    const repo = await world.repo();
    const work = await world.checkout();
    await pushed(gateway, repo, work, "one");
    const head = await pushed(gateway, repo, work, "three");
    await cloned(gateway, repo, head);
    await until("there are bitmaps", () => bitmapOf(gateway, repo));
    const old = (await inFolder(gateway, repo)).filter((name) => name.endsWith(".pack"));
    expect(old).to.have.length(2);
    const { parts } = gateway.service;
    const call: typeof world.actors.call = (...asked) => world.actors.call(...asked);
    const task = { key: repo.id, signal, call };
    await compactPacks(parts, address(repo), { prune: false }, task);

    const manifest = await parts.manifests.read(repo.id, address(repo), signal);
    expect(manifest.packs.size).to.equal(1);
    const opened = { id: repo.id, accountId: ACCOUNT, address: address(repo), manifest };
    const seen: string[] = [];
    await until("the replaced packs have gone", async () => {
      await (await parts.cache.openObjects(opened, manifest, signal))[Symbol.asyncDispose]();
      const left = (await inFolder(gateway, repo)).filter((name) => old.includes(name)).length;
      seen.push(`${(await hasIndex(gateway, repo)) ? "bitmaps" : "none"}, ${left} packs`);
      return left === 0;
    });
    expect([...new Set(seen)]).to.deep.equal([
      "bitmaps, 2 packs",
      "none, 2 packs",
      "none, 0 packs",
    ]);
    await cloned(gateway, repo, head);
  });

  it("are discarded if git cannot use them, and the next clone is served without bitmaps", async () => {
    const gateway = await world.gateway({ bitmapsFromBytes: 1 });
    const repo = await world.repo();
    const work = await world.checkout();
    const head = await pushed(gateway, repo, work, "one");
    await cloned(gateway, repo, head);
    await until("there are bitmaps", () => bitmapOf(gateway, repo));
    await rm(join(folderOf(gateway, repo), PACKS_INDEX));
    await writeFile(join(folderOf(gateway, repo), PACKS_INDEX), "MIDX but broken");
    const next = await pushed(gateway, repo, work, "three");
    const copy = await world.checkout();
    await until("it is served", async () => {
      const { code } = await copy.tryGit("fetch", "-q", gateway.remote(repo), "main");
      return code === 0;
    });
    expect(await copy.git("rev-parse", "FETCH_HEAD")).to.equal(next);
  });
});
