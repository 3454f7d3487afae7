import { mkdtemp, rm, writeFile } from "node:fs/promises";
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
      readersMax: 4,
    });
  });
  afterEach(() => readers.close());

  /** Creates a repository with one file. `open` reads its current manifest. */
  async function pushed(content = "content", accountId = ACCOUNT) {
    const repo = await world.repo({}, accountId);
    const work = await world.checkout();
    const commit = await work.commit(content);
    const push = () => work.git("push", "-q", gateway.remote(repo), "main");
    await push();
    const address = { accountId, namespace: "tests", name: repo.name };
    const open = async (): Promise<OpenedRepo> => ({
      id: repo.id,
      accountId,
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
    // Each repository has an account of its own.
    const accounts = Array.from({ length: 5 }, (_, number) => `${number}`.repeat(32));
    const pushes = await Promise.all(accounts.map((account) => pushed("content", account)));
    const opened = await Promise.all(pushes.map(({ open }) => open()));
    const last = opened.pop() as OpenedRepo;
    for (const repo of [...opened, last]) await read(repo, "HEAD");
    expect(readers.size).to.equal(4);
    using held = new DisposableStack();
    for (const repo of opened) held.use(await readers.view(repo, signal));
    const refused = await read(last, "HEAD").catch((error: unknown) => error);
    expect(refused).to.include({ code: "busy" });
    const [first] = opened as [OpenedRepo];
    expect(await read(first, `${pushes[0]?.commit}:file.txt`)).to.equal("content");
  });

  it("gives one account at most half of the processes, so that others can read", async () => {
    const pushes = await Promise.all([pushed(), pushed(), pushed()]);
    const opened = await Promise.all(pushes.map(({ open }) => open()));
    const [first, second, third] = opened as [OpenedRepo, OpenedRepo, OpenedRepo];
    const other = await pushed("content", "b".repeat(32));
    for (const repo of [first, second, third]) await read(repo, "HEAD");
    // The third one has ended the first one, which was not in use.
    expect(readers.size).to.equal(2);
    using _two = await readers.view(second, signal);
    using _three = await readers.view(third, signal);
    const refused = await read(first, "HEAD").catch((error: unknown) => error);
    expect(refused).to.include({ code: "busy" });
    expect(String(refused)).to.contain("of this account");
    expect(await read(await other.open(), `${other.commit}:file.txt`)).to.equal("content");
  });

  it("fails at once after a response that it does not know, and repeats the other requests", async () => {
    const { open, commit } = await pushed();
    const repo = await open();
    using view = await readers.view(repo, signal);
    const programs = await mkdtemp(join(world.folder, "programs-"));
    await writeFile(join(programs, "git"), '#!/bin/sh\necho "neither of these"\nexec cat >&2\n', {
      mode: 0o755,
    });
    const path = process.env.PATH;
    process.env.PATH = `${programs}:${path}`;
    let reading: ReadProcess;
    try {
      reading = new ReadProcess(view);
    } finally {
      process.env.PATH = path;
    }
    const asked = [reading.read(commit), reading.read(commit)].map((answer) =>
      answer.catch((error: unknown) => error),
    );
    expect(String(await asked[0])).to.equal(
      'Error: Cannot read object: git gave the unknown response "neither of these"',
    );
    expect(reading.ended).to.equal(true);
    expect(await asked[1]).to.be.instanceOf(ReadProcessGone);
    await reading.exit;
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
    const reading = new ReadProcess(view);
    expect((await reading.read(commit))?.type).to.equal("commit");
    // Some of the first requests may get a response before the process ends, but the last one does not.
    const asked = Array.from({ length: READS_WAITING_MAX }, () =>
      reading.read(commit).catch((error: unknown) => error),
    );
    reading.close();
    expect(await asked.at(-1)).to.be.instanceOf(ReadProcessGone);
    await until("it has ended", () => reading.ended);
    expect(await reading.read(commit).catch((error: unknown) => error)).to.be.instanceOf(
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
