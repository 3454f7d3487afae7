import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { systemClock } from "../../../actors/runtime/lib/clock.ts";
import { BlobStore } from "../../../actors/runtime/store/blob-store.ts";
import { until } from "../../../scripts/testing/until.ts";
import type { OpenedRepo } from "../opened-repo.ts";
import { ObjectReaders } from "../read/read-objects.ts";
import { ACCOUNT, type GitGateway, GitWorld, newRepoId } from "../testing/git-world.ts";
import { Manifest } from "./manifest-reader.ts";

const OTHER = "b".repeat(32);

/** A store that counts the blobs that are being read. Blobs of the account `held` have no end. */
class WatchedBlobs extends BlobStore {
  held: string | undefined;
  gets = 0;
  running = 0;

  override async *get(
    name: string,
    options: { signal?: AbortSignal } = {},
  ): AsyncGenerator<Uint8Array> {
    this.gets += 1;
    this.running += 1;
    try {
      if (this.held !== undefined && name.includes(this.held)) {
        if (options.signal) await once(options.signal, "abort");
        throw options.signal?.reason;
      }
      yield* super.get(name, options);
    } finally {
      this.running -= 1;
    }
  }
}

describe("RepoCache", function () {
  this.timeout(120_000);
  let world: GitWorld;
  let pushing: GitGateway;
  let blobs: WatchedBlobs;
  let gateway: GitGateway;
  let readers: ObjectReaders;
  const { signal } = new AbortController();
  before(async () => {
    world = await GitWorld.start();
    pushing = await world.gateway();
  });
  after(() => world[Symbol.asyncDispose]());
  // Each test has a gateway with an empty cache.
  beforeEach(async () => {
    blobs = new WatchedBlobs(world.world.bus, systemClock);
    gateway = await world.gateway({ blobs });
    readers = new ObjectReaders(gateway.service.parts.cache, { now: Date.now, readersMax: 64 });
  });
  afterEach(() => readers.close());

  /** Pushes a commit to a new repository, and opens the repository in the gateway of the test. */
  async function pushed(accountId = ACCOUNT): Promise<{ repo: OpenedRepo; commit: string }> {
    const { id, name, token, path } = await world.repo({}, accountId);
    const work = await world.checkout();
    const commit = await work.commit(name);
    await work.git("push", "-q", pushing.remote({ id, name, token, path }), "main");
    const address = { accountId, namespace: "tests", name };
    const manifest = await gateway.service.parts.manifests.read(id, address, signal);
    return { repo: { id, accountId, address, manifest }, commit };
  }
  const forks = (repo: OpenedRepo, count: number) =>
    Array.from({ length: count }, () => ({ ...repo, id: newRepoId() }));
  const temporary = () => readdir(join(gateway.service.parts.cache.files.root, "tmp"));

  it("fetches the pack that many forks share once, however many are read at the same time", async () => {
    const { repo, commit } = await pushed();
    const reads = forks(repo, 20).map((fork) => readers.reader(fork, signal).head(commit));
    const found = await Promise.all(reads);
    expect(found.map((head) => head?.type)).to.deep.equal(Array(20).fill("commit"));
    expect(blobs.gets).to.equal(1);
  });

  it("ends a fetch when nobody waits for it any more, and fetches anew for the next reader", async () => {
    const { repo, commit } = await pushed();
    blobs.held = ACCOUNT;
    const [one, two, three] = forks(repo, 3) as [OpenedRepo, OpenedRepo, OpenedRepo];
    const clients = Array.from({ length: 3 }, () => new AbortController());
    const [first, second, third] = clients.map((client) => client.signal) as AbortSignal[];
    const { cache } = gateway.service.parts;
    const opened = [
      readers.reader(one, first as AbortSignal).head(commit),
      readers.reader(two, second as AbortSignal).head(commit),
      cache.open(three, three.manifest, third as AbortSignal),
    ].map((open) => open.catch((error: unknown) => error));
    await until("the fetch runs", () => blobs.running === 1);
    for (const [number, client] of clients.entries()) {
      expect(blobs.running).to.equal(1);
      client.abort(`left ${number}`);
      expect(await opened[number]).to.equal(`left ${number}`);
    }
    await until("the fetch has ended", () => blobs.running === 0);
    await until("its files are gone", async () => (await temporary()).length === 0);
    blobs.held = undefined;
    expect((await readers.reader(one, signal).head(commit))?.type).to.equal("commit");
    expect(blobs.gets).to.equal(2);
  });

  it("an account that opens many repositories leaves room to open those of others", async () => {
    const { repo } = await pushed();
    const other = await pushed(OTHER);
    blobs.held = ACCOUNT;
    const left = new AbortController();
    const [pack] = repo.manifest.packs.values();
    if (!pack) throw new Error("no pack");
    const many = forks(repo, 20).map((fork, number) => {
      const sha256 = String(number).padStart(64, "0");
      const packs = new Map([[sha256, { ...pack, sha256 }]]);
      return { ...fork, manifest: new Manifest({ ...fork.manifest, packs }) };
    });
    const reads = many.map((fork) => readers.reader(fork, left.signal).head("HEAD"));
    for (const read of reads) read.catch(() => {});
    await until("12 of them are being opened", () => blobs.running === 12);
    const found = await readers.reader(other.repo, signal).head(other.commit);
    expect(found?.type).to.equal("commit");
    expect(blobs.running).to.equal(12);
    left.abort();
    await Promise.allSettled(reads);
    await until("all fetches have ended", () => blobs.running === 0);
  });

  it("open() does not show the refs of another manifest with the same version", async () => {
    const { repo, commit } = await pushed();
    const { cache } = gateway.service.parts;
    const refsIn = async (manifest: Manifest) => {
      await using view = await cache.open(repo, manifest, signal);
      return await readFile(join(view.cwd, "packed-refs"), "latin1");
    };
    const rows = new Map([[0, { "refs/heads/other": commit }]]);
    const rival = new Manifest({ ...repo.manifest, rows });
    expect(await refsIn(repo.manifest)).to.contain(`${commit} refs/heads/main`);
    expect(await refsIn(rival)).to.contain(`${commit} refs/heads/other`);
    expect(await refsIn(repo.manifest)).to.contain(`${commit} refs/heads/main`);
    expect(await readdir(cache.files.views(repo.id, 0))).to.have.length(2);
  });
});
