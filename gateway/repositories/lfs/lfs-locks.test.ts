import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import {
  LFS_LOCK_PATH_CHARS_MAX,
  LFS_LOCKS_LISTED_MAX,
} from "../../../schemas/repositories/limits.ts";
import { gitLfs } from "../../../scripts/testing/git-lfs.ts";
import { type GitGateway, GitWorld, type TestRepo } from "../testing/git-world.ts";

const TYPE = "application/vnd.git-lfs+json";

describe("locks of Git LFS", function () {
  this.timeout(120_000);
  let world: GitWorld;
  let gateway: GitGateway;
  before(async () => {
    world = await GitWorld.start();
    gateway = await world.gateway();
  });
  after(() => world[Symbol.asyncDispose]());
  afterEach(() => expect(gateway.faults).to.deep.equal([]));

  async function ask(repo: TestRepo, path: string, json?: object, token = repo.token, user = "x") {
    const response = await fetch(`${gateway.url}${repo.path}/info/lfs/${path}`, {
      ...(json && { method: "POST", body: JSON.stringify(json) }),
      headers: {
        Accept: TYPE,
        "Content-Type": TYPE,
        Authorization: `Basic ${btoa(`${user}:${token}`)}`,
      },
    });
    // biome-ignore lint/suspicious/noExplicitAny: a test looks at the body of whatever answer it gets.
    return { status: response.status, body: (await response.json()) as any };
  }

  it("keep two users of the real git-lfs from changing one file, until one unlocks or is forced", async function () {
    // The first run builds git-lfs, which takes minutes.
    this.timeout(900_000);
    const programs = await gitLfs(await world.checkout().then(({ folder }) => folder));
    if (programs === undefined) return this.skip();
    const repo = await world.repo();
    const open = async (user: string) => {
      const token = (await world.token(repo, "write")).split("?")[0];
      const work = await world.checkout({ programs });
      const remote = gateway.remote(repo, token).replace("//x:", `//${user}:`);
      await work.git("lfs", "install", "--local");
      await work.git("remote", "add", "origin", remote);
      const { host } = new URL(gateway.url);
      await work.git("config", `lfs.http://${host}${repo.path}/info/lfs.locksverify`, "true");
      return work;
    };
    const alice = await open("alice");
    await alice.git("lfs", "track", "--lockable", "*.bin");
    await writeFile(join(alice.folder, "a.bin"), "1");
    await alice.git("add", ".");
    await alice.git("commit", "-q", "-m", "1");
    await alice.git("push", "-q", "-u", "origin", "main");
    const bob = await open("bob");
    await bob.git("pull", "-q", "origin", "main");

    await alice.git("lfs", "lock", "a.bin");
    expect(await bob.git("lfs", "locks")).to.match(/^a\.bin\s+alice\s/);
    const locked = await bob.tryGit("lfs", "lock", "a.bin");
    expect(locked.code).not.to.equal(0);
    expect(locked.stderr + locked.stdout).to.contain('"a.bin" is locked already, by "alice"');

    // The file is replaced, because the client has made lockable files read-only.
    await rm(join(bob.folder, "a.bin"));
    await writeFile(join(bob.folder, "a.bin"), "2");
    await bob.git("add", ".");
    await bob.git("commit", "-q", "-m", "2");
    const pushed = await bob.tryGit("push", "origin", "main");
    expect(pushed.code).not.to.equal(0);
    expect(pushed.stdout + pushed.stderr).to.match(/locked files/i);

    const refused = await bob.tryGit("lfs", "unlock", "a.bin");
    expect(refused.code).not.to.equal(0);
    await bob.git("lfs", "unlock", "--force", "a.bin");
    expect(await alice.git("lfs", "locks")).to.equal("");
    await bob.git("push", "-q", "origin", "main");
    await alice.git("lfs", "lock", "a.bin");
    await alice.git("lfs", "unlock", "a.bin");
  });

  it("follow the File Locking API: pages, and the permissions of each token", async () => {
    const repo = await world.repo();
    const reads = await world.token(repo, "read");
    const other = (await world.token(repo, "write")).split("?")[0] ?? "";
    const made = await ask(repo, "locks", { path: "a.bin", ref: { name: "refs/heads/main" } });
    expect(made.status).to.equal(201);
    expect(made.body.lock).to.deep.include({ path: "a.bin", owner: { name: "x" } });
    expect(made.body.lock.locked_at).to.match(/^\d{4}-\d\d-\d\dT/);
    const again = await ask(repo, "locks", { path: "a.bin" }, other);
    expect([again.status, again.body.lock]).to.deep.equal([409, made.body.lock]);
    const byReader = await ask(repo, "locks", { path: "b.bin" }, reads);
    expect(byReader.status).to.equal(403);
    expect((await ask(repo, "locks/verify", {}, reads)).status).to.equal(403);
    expect((await ask(repo, "locks", undefined, reads)).body.locks).to.deep.equal([made.body.lock]);
    expect((await ask(repo, "locks/verify", {})).body).to.deep.equal({
      ours: [made.body.lock],
      theirs: [],
    });
    expect((await ask(repo, "locks/verify", {}, other)).body.theirs).to.have.length(1);

    await ask(repo, "locks", { path: "b.bin" }, other);
    const first = await ask(repo, "locks?limit=1");
    expect(first.body.locks).to.have.length(1);
    const rest = await ask(repo, `locks?limit=1&cursor=${first.body.next_cursor}`);
    expect(rest.body.locks).to.have.length(1);
    expect(rest.body).not.to.have.property("next_cursor");
    const paths = [...first.body.locks, ...rest.body.locks].map(({ path }) => path);
    expect(paths.sort()).to.deep.equal(["a.bin", "b.bin"]);
    expect((await ask(repo, "locks?path=b.bin")).body.locks).to.have.length(1);
    expect((await ask(repo, "locks?path=none")).body.locks).to.deep.equal([]);

    const unlock = (token: string, json: object) =>
      ask(repo, `locks/${made.body.lock.id}/unlock`, json, token);
    expect((await unlock(reads, { force: true })).status).to.equal(403);
    const refused = await unlock(other, {});
    expect(refused.status).to.equal(403);
    expect(refused.body.message).to.contain("--force");
    expect((await unlock(repo.token, {})).body).to.deep.equal({ lock: made.body.lock });
    expect((await unlock(repo.token, {})).status).to.equal(404);
  });

  it("refuse a path past its bound, an odd limit, and an unknown token", async () => {
    const repo = await world.repo();
    const path = "p".repeat(LFS_LOCK_PATH_CHARS_MAX);
    expect((await ask(repo, "locks", { path })).status).to.equal(201);
    const past = await ask(repo, "locks", { path: `${path}p` });
    expect([past.status, past.body.message]).to.satisfy(
      ([status, text]: [number, string]) => status === 400 && text.includes("/path"),
    );
    expect((await ask(repo, "locks?limit=-1")).status).to.equal(400);
    expect((await ask(repo, `locks?limit=${10 * LFS_LOCKS_LISTED_MAX}`)).status).to.equal(200);
    expect((await ask(repo, "locks", undefined, "unknown")).status).to.equal(403);
  });
});
