import { rm } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { until } from "../../../scripts/testing/until.ts";
import type { OpenedRepo } from "../opened-repo.ts";
import { runGit } from "../process/git-process.ts";
import { ACCOUNT, type GitGateway, GitWorld } from "../testing/git-world.ts";
import { ObjectReaders, READER_AGE_MS_MAX, READER_IDLE_MS } from "./read-objects.ts";
import { READS_WAITING_MAX, ReadProcess, ReadProcessGone } from "./read-process.ts";

describe("reading objects", function () {
  this.timeout(60_000);
  let world: GitWorld;
  let gateway: GitGateway;
  let readers: ObjectReaders;
  const clock = { now: 0 };
  const { signal } = new AbortController();
  before(async () => {
    world = await GitWorld.start();
    gateway = await world.gateway();
  });
  after(() => world[Symbol.asyncDispose]());
  beforeEach(() => {
    clock.now = 1_000_000;
    readers = new ObjectReaders(gateway.service.parts.cache, {
      now: () => clock.now,
      readersMax: 2,
    });
  });
  afterEach(() => readers.close());

  /** Creates a repository with one file. `open` reads its current manifest. */
  async function pushed(content = "content") {
    const repo = await world.repo();
    const work = await world.checkout();
    const commit = await work.commit(content);
    const push = () => work.git("push", "-q", gateway.remote(repo), "main");
    await push();
    const address = { accountId: ACCOUNT, namespace: "tests", name: repo.name };
    const open = async (): Promise<OpenedRepo> => ({
      id: repo.id,
      accountId: ACCOUNT,
      address,
      manifest: await gateway.service.parts.manifests.read(repo.id, address, signal),
    });
    return { work, commit, push, open };
  }
  const read = async (repo: OpenedRepo, name: string) =>
    (await readers.reader(repo, signal).read(name))?.content.toString();

  it("answers many requests in their order, whatever characters names contain", async () => {
    const { open, commit } = await pushed();
    const repo = await open();
    const reader = readers.reader(repo, signal);
    const names = [
      "file.txt",
      "no\nsuch",
      "nope missing\n",
      "file.txt",
      "a\nb missing\nc",
      "\u00e4",
    ];
    const found = await Promise.all(names.map((name) => reader.read(`${commit}:${name}`)));
    expect(found.map((one) => one?.content.toString())).to.deep.equal([
      "content",
      undefined,
      undefined,
      "content",
      undefined,
      undefined,
    ]);
    expect(await reader.head("0".repeat(40))).to.equal(undefined);
    expect(await reader.head(commit)).to.include({ id: commit, type: "commit" });
    expect(readers.size).to.equal(1);
  });

  it("finds stored objects after another process emptied and rebuilt the cache", async () => {
    const { open, commit, push, work } = await pushed();
    const before = await open();
    expect(await read(before, `${commit}:file.txt`)).to.equal("content");
    // The reading process still has the files of the folder that is removed here.
    await rm(gateway.service.parts.cache.files.root, { recursive: true });
    const next = await work.commit("next");
    await push();
    const { cache } = gateway.service.parts;
    const repo = await open();
    await (await cache.openObjects(repo, repo.manifest, signal))[Symbol.asyncDispose]();
    expect(await read(repo, `${next}:file.txt`)).to.equal("next");
    expect(await read(repo, `${commit}:file.txt`)).to.equal("content");
    await rm(join(cache.files.objects(repo.id, 0), "pack"), { recursive: true });
    using view = await readers.view(repo, signal);
    const listed = await runGit(["rev-list", "--count", next], { ...view, signal });
    expect(listed.stdout.toString()).to.equal("2\n");
  });

  it("reads large objects completely beside small ones", async () => {
    const content = "0123456789abcdef".repeat(200_000);
    const { open, commit } = await pushed(content);
    const reader = readers.reader(await open(), signal);
    const [one, head, other] = await Promise.all([
      reader.read(`${commit}:file.txt`),
      reader.head(`${commit}^{tree}`),
      reader.read(`${commit}:file.txt`),
    ]);
    expect(one?.content.toString()).to.equal(content);
    expect(other?.content.equals(one?.content ?? Buffer.alloc(0))).to.equal(true);
    expect(head?.type).to.equal("tree");
  });

  it("reuses the same process over pushes, and sees their objects", async () => {
    const { work, push, open } = await pushed();
    await read(await open(), "HEAD");
    const { cwd } = await held(await open());
    for (let i = 0; i < 3; i++) {
      const commit = await work.commit(`new ${i}`);
      await push();
      expect(await read(await open(), `${commit}:file.txt`)).to.equal(`new ${i}`);
    }
    expect((await held(await open())).cwd).to.equal(cwd);
  });

  it("limits its processes: ends the least recently used one to make room, and never one in use", async () => {
    const [one, two, three] = await Promise.all([pushed(), pushed(), pushed()]);
    const opened = await Promise.all([one.open(), two.open(), three.open()]);
    const [first, second, third] = opened as [OpenedRepo, OpenedRepo, OpenedRepo];
    for (const repo of opened) await read(repo, "HEAD");
    expect(readers.size).to.equal(2);
    using _one = await readers.view(first, signal);
    using _two = await readers.view(second, signal);
    const refused = await read(third, "HEAD").catch((error: unknown) => error);
    expect(refused).to.include({ code: "busy" });
    expect(await read(first, `${one.commit}:file.txt`)).to.equal("content");
  });

  it("ends processes that are idle or old", async () => {
    const { open, commit } = await pushed();
    const repo = await open();
    await read(repo, commit);
    clock.now += READER_IDLE_MS;
    readers.sweep();
    expect(readers.size).to.equal(1);
    clock.now += 1;
    readers.sweep();
    expect(readers.size).to.equal(0);
    await read(repo, commit);
    for (let at = 0; at <= READER_AGE_MS_MAX; at += READER_IDLE_MS) {
      clock.now += READER_IDLE_MS;
      await read(repo, commit);
    }
    expect(readers.size).to.equal(1);
    expect(await read(repo, `${commit}:file.txt`)).to.equal("content");
  });

  it("repeats a request with another process if one is killed", async () => {
    const { open, commit } = await pushed();
    const repo = await open();
    using view = await readers.view(repo, signal);
    const process = new ReadProcess(view);
    expect((await process.read(commit))?.type).to.equal("commit");
    // Some of the first requests may get a response before the process ends, but the last one does not.
    const asked = Array.from({ length: READS_WAITING_MAX }, () =>
      process.read(commit).catch((error: unknown) => error),
    );
    process.close();
    expect(await asked.at(-1)).to.be.instanceOf(ReadProcessGone);
    await until("it has ended", () => process.ended);
    expect(await process.read(commit).catch((error: unknown) => error)).to.be.instanceOf(
      ReadProcessGone,
    );
    expect(await read(repo, `${commit}:file.txt`)).to.equal("content");
  });

  it("concurrent requests share one process", async () => {
    const { open, commit } = await pushed();
    const repo = await open();
    const all = await Promise.all(
      Array.from({ length: 50 }, () => read(repo, `${commit}:file.txt`)),
    );
    expect(new Set(all)).to.deep.equal(new Set(["content"]));
    expect(readers.size).to.equal(1);
  });

  async function held(repo: OpenedRepo) {
    using view = await readers.view(repo, signal);
    return { cwd: view.cwd };
  }
});
