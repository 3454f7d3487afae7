import { mkdtemp, readdir, rm, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { expect } from "chai";
import { repo as repoContract } from "../../../schemas/repositories/repo.ts";
import { until } from "../../../scripts/testing/until.ts";
import { ACCOUNT, GitWorld } from "../testing/git-world.ts";
import { AnswerCache, type AnswerLimits, GIT_ANSWER_MEMORY_BYTES } from "./answer-cache.ts";
import { CacheFiles } from "./cache-files.ts";

describe("cached fetch responses", () => {
  let folder: string;
  let files: CacheFiles;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-answers-"));
    files = new CacheFiles(folder);
    await files.prepare();
  });
  afterEach(() => rm(folder, { recursive: true }));

  const key = (question: string, version = 1, id = "r") => ({ id, version, question: [question] });
  const small = Buffer.alloc(GIT_ANSWER_MEMORY_BYTES, "s");
  const large = Buffer.alloc(GIT_ANSWER_MEMORY_BYTES + 1, "l");

  async function keep(answers: AnswerCache, which: ReturnType<typeof key>, content: Buffer) {
    const recording = answers.record(which);
    recording?.add(content.subarray(0, 10));
    recording?.add(content.subarray(10));
    await recording?.keep({ hasPack: true });
  }

  async function find(answers: AnswerCache, which: ReturnType<typeof key>) {
    const found = await answers.find(which);
    return found && (await buffer(found.content));
  }

  /** Names of the entries on disk. */
  async function kept(): Promise<string[]> {
    const [own] = await readdir(files.answers);
    return own === undefined ? [] : await readdir(join(files.answers, own));
  }

  it("returns a small or large stored response to the same request only", async () => {
    const answers = new AnswerCache(files);
    for (const content of [Buffer.alloc(0), small, large]) {
      const which = key(`of ${content.length}`);
      expect(await find(answers, which)).to.equal(undefined);
      await keep(answers, which, content);
      expect((await find(answers, which))?.equals(content)).to.equal(true);
    }
    expect(await find(answers, key("another"))).to.equal(undefined);
    expect(await find(answers, { ...key(""), question: ["of ", "0"] })).to.equal(undefined);
    expect(await find(answers, key("of 0", 1, "other"))).to.equal(undefined);
    expect(await kept()).to.have.length(1);
  });

  it("returns nothing for another version of the repository, and drops responses of earlier versions", async () => {
    const answers = new AnswerCache(files);
    await keep(answers, key("q", 1), large);
    await keep(answers, key("q", 1, "other"), large);
    expect(await find(answers, key("q", 2))).to.equal(undefined);
    await keep(answers, key("q", 2), small);
    expect(await find(answers, key("q", 1))).to.equal(undefined);
    expect(await find(answers, key("q", 1, "other"))).to.not.equal(undefined);
    expect(await kept()).to.have.length(1);
  });

  it("stores no partial response, and records one response at a time per request", async () => {
    const answers = new AnswerCache(files);
    const first = answers.record(key("q"));
    expect(answers.record(key("q"))).to.equal(undefined);
    first?.add(large);
    first?.drop();
    await first?.keep({ hasPack: true });
    await until("it may be recorded anew", async () => {
      const again = answers.record(key("q"));
      again?.drop();
      return again !== undefined;
    });
    expect(await find(answers, key("q"))).to.equal(undefined);
    await until("nothing is left", async () => {
      return (await readdir(join(folder, "tmp"))).length === 0;
    });
  });

  it("stays within its limits for disk, memory and one response by evicting the least recently used", async () => {
    const limits: AnswerLimits = {
      bytes: 2 * large.length,
      memoryBytes: 2 * small.length + 1_000,
      answerBytes: large.length,
    };
    const answers = new AnswerCache(files, limits);
    for (const content of [large, small]) {
      const name = (number: number) => key(`${content.length} ${number}`);
      await keep(answers, name(1), content);
      await keep(answers, name(2), content);
      await find(answers, name(1));
      await keep(answers, name(3), content);
      expect(await find(answers, name(2))).to.equal(undefined);
      expect(await find(answers, name(1))).to.not.equal(undefined);
      expect(await find(answers, name(3))).to.not.equal(undefined);
    }
    expect(answers.bytes).to.be.at.most(limits.bytes + limits.memoryBytes);
    expect(await kept()).to.have.length(2);
    await keep(answers, key("too large"), Buffer.concat([large, Buffer.alloc(1)]));
    expect(await find(answers, key("too large"))).to.equal(undefined);
  });

  it("treats a response as missing if its file is deleted or truncated, and stores it again", async () => {
    const answers = new AnswerCache(files);
    await keep(answers, key("q"), large);
    await rm(files.answers, { recursive: true });
    expect(await find(answers, key("q"))).to.equal(undefined);
    await keep(answers, key("q"), large);
    const [own = ""] = await readdir(files.answers);
    const [name = ""] = await kept();
    await truncate(join(files.answers, own, name), 5);
    expect(await find(answers, key("q"))).to.equal(undefined);
    expect(answers.bytes).to.equal(0);
    await keep(answers, key("q"), large);
    expect((await find(answers, key("q")))?.equals(large)).to.equal(true);
    await answers.close();
    expect(await readdir(files.answers)).to.deep.equal([]);
  });

  it("serves clones of the current repository, and only to clients with access", async function () {
    this.timeout(120_000);
    await using world = await GitWorld.start();
    const gateway = await world.gateway();
    const { answers, slots, cache } = gateway.service.parts;
    const repo = await world.repo();
    const work = await world.checkout();
    const noise = () => Buffer.from(Array.from({ length: 300_000 }, () => Math.random() * 256));
    const commit = async () => {
      const id = await work.object("blob", noise());
      await work.git("update-index", "--add", "--cacheinfo", `100644,${id},noise`);
      await work.git("commit", "-q", "-m", "x");
      await work.git("push", "-q", gateway.remote(repo), "main");
      return await work.git("rev-parse", "HEAD");
    };
    const clone = async (...options: string[]) => {
      const copy = await world.checkout();
      await copy.git("clone", "-q", "--bare", ...options, gateway.remote(repo), "copy.git");
      await copy.git("-C", "copy.git", "fsck", "--full", "--strict");
      return await copy.git("-C", "copy.git", "rev-parse", "main");
    };
    let head = await commit();
    expect(await clone()).to.equal(head);
    await until("it is kept", () => answers.bytes > 300_000);

    // The files that git needs are removed, so the response must come from the cache of responses.
    await rm(cache.files.repo(repo.id), { recursive: true });
    const leave = await Promise.all(
      Array.from({ length: 6 }, () =>
        slots.enter({ id: repo.id, accountId: ACCOUNT }, AbortSignal.timeout(60_000)),
      ),
    );
    expect(await clone()).to.equal(head);
    for (const end of leave) end();
    expect(await readdir(join(cache.files.root, "repos"))).to.deep.equal([]);

    // Each clone depth has its own stored response, and each change of the repository makes all stored responses
    // outdated.
    expect(await clone("--depth", "1")).to.equal(head);
    head = await commit();
    expect(await clone()).to.equal(head);
    await work.git("push", "-q", gateway.remote(repo), "main:refs/heads/other");
    const copy = await world.checkout();
    await copy.git("fetch", "-q", gateway.remote(repo), "other");
    expect(await clone()).to.equal(head);

    await until("nobody writes there", () => slots.running === 0);
    await rm(cache.files.root, { recursive: true });
    expect(await clone()).to.equal(head);
    expect(await clone()).to.equal(head);

    const [token] = (await world.token(repo, "read")).split("?");
    const guest = await world.checkout();
    const fetch = () => guest.tryGit("clone", "-q", gateway.remote(repo, token), "copy");
    expect((await fetch()).code).to.equal(0);
    const { tokens } = await world.actors.call(repoContract, repo.id, "listTokens", {
      state: "active",
      offset: 0,
      limit: 10,
    });
    const [shown] = tokens.filter(({ scope }) => scope === "read");
    await world.actors.call(repoContract, repo.id, "revokeToken", { id: shown?.id ?? "" });
    await rm(join(guest.folder, "copy"), { recursive: true });
    expect((await fetch()).stderr).to.contain("403");
    expect(gateway.faults).to.deep.equal([]);
  });
});
