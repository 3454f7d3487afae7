import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, readdir, rm, stat, truncate, utimes, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { expect } from "chai";
import { ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import {
  GIT_CACHE_BYTES_MAX,
  GIT_CACHE_GRACE_MS,
  GIT_PROCESS_KIB_MAX,
} from "../../../schemas/repositories/limits.ts";
import { until } from "../../../scripts/testing/until.ts";
import { GIT_CACHE_FREE_SHARE, sweepCache } from "../cache/cache-sweep.ts";
import {
  GIT_PROCESS_CPU_S_MAX,
  GIT_PROCESS_FILE_BYTES_MAX,
  runGit,
  startGit,
} from "../process/git-process.ts";
import {
  ACCOUNT,
  type Checkout,
  type GitGateway,
  GitWorld,
  type TestRepo,
} from "../testing/git-world.ts";
import { post, pushBody } from "../testing/raw-push.ts";
import { FLUSH, pktLine } from "./pkt-line.ts";
import { PUSH_AHEAD_BYTES } from "./receive-pack.ts";

describe("resource limits of git processes", function () {
  this.timeout(600_000);
  let world: GitWorld;
  before(async () => {
    world = await GitWorld.start();
  });
  after(() => world[Symbol.asyncDispose]());

  async function filled(
    gateway: GitGateway,
    bytes = 100,
  ): Promise<{ repo: TestRepo; work: Checkout }> {
    const repo = await world.repo();
    const work = await world.checkout();
    await work.commit(randomBytes(bytes).toString("base64"));
    await work.git("push", "-q", gateway.remote(repo), "main");
    return { repo, work };
  }

  /**
   * Starts a push that sends only these bytes of its pack and then stops. With more than PUSH_AHEAD_BYTES the push
   * holds a slot.
   */
  function pushing(gateway: GitGateway, { path, token }: TestRepo, bytes: number) {
    const socket = connect(Number(new URL(gateway.url).port), "127.0.0.1");
    const command = { old: ZERO_ID, value: "1".repeat(40), ref: "refs/heads/x" };
    const head = [
      `POST ${path}/git-receive-pack HTTP/1.1`,
      "Host: x",
      `Authorization: Bearer ${token}`,
      "Content-Type: application/x-git-receive-pack-request",
      `Content-Length: ${4 * PUSH_AHEAD_BYTES}`,
    ];
    socket.write(`${head.join("\r\n")}\r\n\r\n`);
    // One object of 4 MiB, not packed.
    const first = Buffer.from("5041434b0000000200000001b0808010", "hex");
    const content = deflateSync(randomBytes(4 * 1024 * 1024), { level: 0 });
    const pack = Buffer.concat([first, content]).subarray(0, bytes);
    socket.write(pushBody([command], pack));
    return socket;
  }

  async function hangingPush(gateway: GitGateway, repo: TestRepo) {
    const socket = pushing(gateway, repo, PUSH_AHEAD_BYTES);
    const { slots } = gateway.service.parts;
    await until("the push holds a slot", () => slots.running > 0);
    return socket;
  }

  it("answers 503 with Retry-After when the queue is full", async () => {
    const gateway = await world.gateway({ slots: { processes: 1, queue: 0 } });
    const { repo, work } = await filled(gateway);
    await until("the slot is free", () => gateway.service.parts.slots.running === 0);
    // With a tag in the repository, only a git process can list the refs.
    await work.git("push", "-q", gateway.remote(repo), "main:refs/tags/one");
    await until("the slot is free", () => gateway.service.parts.slots.running === 0);
    const socket = await hangingPush(gateway, repo);
    const refused = await post(gateway, repo, "git-upload-pack", Buffer.from("0000"));
    expect(refused.status).to.equal(503);
    expect(Number(refused.headers.get("retry-after"))).to.be.above(0);
    expect(await refused.text()).to.contain("try again");
    const listed = await fetch(`${gateway.url}${repo.path}/info/refs?service=git-upload-pack`, {
      headers: { Authorization: `Bearer ${repo.token}` },
    });
    expect(listed.status).to.equal(503);
    expect(await listed.text()).to.contain("try again");
    socket.destroy();
    await until("the slot is free", () => gateway.service.parts.slots.running === 0);
    await work.git("fetch", "-q", gateway.remote(repo), "main");
    expect(gateway.faults).to.deep.equal([]);
  });

  it("a push occupies no process before PUSH_AHEAD_BYTES of its pack have arrived", async () => {
    const gateway = await world.gateway({ slots: { processes: 1, queue: 0 } });
    const { repo, work } = await filled(gateway);
    await until("the slot is free", () => gateway.service.parts.slots.running === 0);
    const sockets = [0, 1, 2].map(() => pushing(gateway, repo, PUSH_AHEAD_BYTES - 1));
    for (let i = 0; i < 3; i++) {
      await work.git("fetch", "-q", gateway.remote(repo), "main");
      // The gateway frees the slot of a fetch after it has sent the response. A push that held the slot would keep it.
      await until("the slot is free", () => gateway.service.parts.slots.running === 0);
    }
    for (const socket of sockets) socket.destroy();
    expect(gateway.faults).to.deep.equal([]);
  });

  it("a client that disconnects ends its processes and leaves no files behind", async () => {
    const gateway = await world.gateway();
    const { repo } = await filled(gateway, 3_000_000);
    const socket = await hangingPush(gateway, repo);
    await until("git runs", () =>
      childrenOf(process.pid).some((name) => name.includes("index-pack")),
    );
    socket.destroy();
    const { slots, cache } = gateway.service.parts;
    await until("it is over", () => slots.running === 0);
    await until(
      "git has ended",
      () => !childrenOf(process.pid).some((name) => name.includes("git ")),
    );
    await until(
      "nothing is left",
      async () => (await readdir(join(cache.files.root, "tmp"))).length === 0,
    );
    await until(
      "it uses nothing",
      async () => (await readdir(cache.files.uses(repo.id))).length === 0,
    );
    expect(gateway.faults).to.deep.equal([]);
  });

  it("a client that disconnects during a clone ends the git process that serves it", async () => {
    const gateway = await world.gateway();
    // More bytes than the buffers between the gateway and a client can hold.
    const { repo, work } = await filled(gateway, 16 * 1024 * 1024);
    const tip = await work.git("rev-parse", "main");
    const { slots, cache } = gateway.service.parts;
    await until("the push is over", () => slots.running === 0);
    const socket = connect(Number(new URL(gateway.url).port), "127.0.0.1");
    socket.pause();
    const question = Buffer.concat([
      pktLine(`want ${tip} side-band-64k ofs-delta\n`),
      FLUSH,
      pktLine("done\n"),
    ]);
    const head = [
      `POST ${repo.path}/git-upload-pack HTTP/1.1`,
      "Host: x",
      `Authorization: Bearer ${repo.token}`,
      "Content-Type: application/x-git-upload-pack-request",
      `Content-Length: ${question.length}`,
    ];
    socket.write(`${head.join("\r\n")}\r\n\r\n`);
    socket.write(question);
    const serving = () => childrenOf(process.pid).some((name) => name.includes("upload-pack"));
    await until("git serves it", serving);
    socket.destroy();
    await until("it has ended", () => !serving() && slots.running === 0);
    await until("it uses nothing", async () => {
      return (await readdir(cache.files.uses(repo.id))).length === 0;
    });
    expect(gateway.faults).to.deep.equal([]);
  });

  it("a process is limited in processor time, open files and memory", async () => {
    const config = { "alias.limits": "!ulimit -t; ulimit -f; ulimit -v" };
    const limits = async (fileBytesMax?: number) => {
      const given = fileBytesMax === undefined ? {} : { fileBytesMax };
      const { signal } = new AbortController();
      const { stdout } = await runGit(["limits"], { cwd: world.folder, config, signal, ...given });
      return stdout.toString().trim().split("\n").map(Number);
    };
    const others = [GIT_PROCESS_CPU_S_MAX, GIT_PROCESS_KIB_MAX];
    for (const [asked, bytes] of [
      [undefined, GIT_PROCESS_FILE_BYTES_MAX],
      [1_000_000, 1_000_000],
    ]) {
      const [seconds, blocks = 0, kib] = await limits(asked);
      expect([seconds, kib]).to.deep.equal(others);
      // Some shells count in blocks of 512 bytes, others in blocks of 1,024 bytes.
      expect([512, 1_024].map((size) => Math.ceil((bytes ?? 0) / size))).to.include(blocks);
    }
    const { signal } = new AbortController();
    const writes = { "alias.fill": "!head -c 2000000 /dev/zero > filled" };
    const filled = await runGit(["fill"], {
      cwd: world.folder,
      config: writes,
      signal,
      fileBytesMax: 1_000_000,
    });
    expect(filled.code).to.not.equal(0);
    expect((await stat(join(world.folder, "filled"))).size).to.be.at.most(1_000_448);
  });

  it("a process is killed with its children at its timeout", async () => {
    const { signal } = new AbortController();
    const cwd = world.folder;
    const hang = { "alias.hang": "!sleep 600 & sleep 600; true" };
    const startedAt = performance.now();
    const { code } = await runGit(["hang"], { cwd, config: hang, signal, msMax: 500 });
    expect(code).to.equal(null);
    expect(performance.now() - startedAt).to.be.within(499, 30_000);
    const waits = { "alias.wait": "!sleep 1; echo done" };
    const quick = await runGit(["wait"], { cwd, config: waits, signal, msMax: 30_000 });
    expect([quick.code, quick.stdout.toString()]).to.deep.equal([0, "done\n"]);
  });

  it("a process is killed with its children when its signal aborts, and is limited in memory", async () => {
    const cwd = world.folder;
    const leave = new AbortController();
    const config = { "alias.hang": "!sleep 600 & sleep 600; true" };
    const git = startGit(["hang"], { cwd, config, signal: leave.signal });
    leave.abort();
    expect((await git.exit).code).to.equal(null);
    const eats = { "alias.eat": "!head -c 2000000000 /dev/zero | tail -c 1999999999 | wc -c" };
    const eaten = await runGit(["eat"], {
      cwd,
      config: eats,
      signal: new AbortController().signal,
    });
    expect(eaten.stdout.toString().trim()).to.not.equal("1999999999");
  });

  it("a process is killed when its output exceeds the limit, not before", async () => {
    const say = (bytes: string) =>
      runGit(["say"], {
        cwd: world.folder,
        config: { "alias.say": `!head -c ${bytes} /dev/zero` },
        signal: AbortSignal.timeout(30_000),
        bytesMax: 100_000,
      });
    expect((await say("100000")).stdout).to.have.length(100_000);
    for (const more of ["100001", "1T"]) {
      const refused = await say(more).catch((error: unknown) => error);
      expect(refused, more).to.have.property("code", "limit_reached");
    }
  });

  it("a process sees nothing of this machine's configuration and environment", async () => {
    const cwd = world.folder;
    process.env.TRUNKLINE_TEST_SECRET = "secret";
    const { stdout } = await runGit(["show-env"], {
      cwd,
      config: { "alias.show-env": "!env" },
      signal: new AbortController().signal,
    });
    delete process.env.TRUNKLINE_TEST_SECRET;
    const environment = stdout.toString();
    expect(environment).to.contain("GIT_CONFIG_NOSYSTEM=1").and.to.contain("HOME=/nonexistent");
    expect(environment).to.not.contain("secret");
  });

  it("a deleted cache is rebuilt, also between requests of one clone", async () => {
    const gateway = await world.gateway();
    const { repo, work } = await filled(gateway);
    for (let i = 0; i < 3; i++) {
      // The gateway cleans up after it has sent the response to a push.
      await until("the push is over", () => gateway.service.parts.slots.running === 0);
      await rm(join(gateway.dataDir, "git", i % 2 ? "repos" : "packs"), { recursive: true });
      if (i === 2) await rm(join(gateway.dataDir, "git"), { recursive: true });
      const copy = await world.checkout();
      await copy.git("fetch", "-q", gateway.remote(repo), "main");
      await work.commit(`${i}`);
      await work.git("push", "-q", gateway.remote(repo), "main");
    }
    expect(gateway.faults).to.deep.equal([]);
  });

  it("a cache from before this machine's last boot, or of another bus, is not trusted", async () => {
    const gateway = await world.gateway();
    const { repo, work } = await filled(gateway);
    const head = await work.git("rev-parse", "main");
    await (await world.checkout()).git("fetch", "-q", gateway.remote(repo), "main");
    const { files } = gateway.service.parts.cache;
    await gateway.stop();
    // Files exist but are empty, as after a power cut.
    for (const version of await readdir(files.views(repo.id, 0))) {
      await truncate(join(files.views(repo.id, 0), version, "packed-refs"));
    }
    await writeFile(join(files.root, "boot"), "another\n");
    const later = await world.gateway({ dataDir: gateway.dataDir });
    const copy = await world.checkout();
    // Protocol version 0 lists refs by git.
    await copy.git("-c", "protocol.version=0", "fetch", "-q", later.remote(repo), "main");
    expect(await copy.git("rev-parse", "FETCH_HEAD")).to.equal(head);
    // A cache that was used since the last boot is kept.
    await writeFile(join(files.root, "packs", "kept"), "");
    await world.gateway({ dataDir: gateway.dataDir });
    expect(await readdir(join(files.root, "packs"))).to.include("kept");
    // A bus that was restored from a backup has another stream of packs.
    await files.discardUntrusted("2026-11-27T00:00:00Z");
    expect(await readdir(files.root)).to.deep.equal(["boot"]);
    expect(later.faults).to.deep.equal([]);
  });

  it("a cached pack of the wrong size is fetched again", async () => {
    const gateway = await world.gateway();
    const { files } = gateway.service.parts.cache;
    for (const end of [".pack", ".idx"]) {
      const { repo } = await filled(gateway);
      const copy = await world.checkout();
      await copy.git("fetch", "-q", gateway.remote(repo), "main");
      await rm(files.repo(repo.id), { recursive: true });
      const pool = files.poolFolder(ACCOUNT);
      for (const name of await readdir(pool)) {
        if (name.endsWith(end)) await truncate(join(pool, name), 20);
      }
      const again = await world.checkout();
      await again.git("fetch", "-q", gateway.remote(repo), "main:other", "--depth=1");
      await again.git("fsck", "--full");
    }
    expect(gateway.faults).to.deep.equal([]);
  });

  it("sweep() evicts the least recently used entries, and none in use", async () => {
    const gateway = await world.gateway({ cacheBytesMax: 400_000 });
    const repos: TestRepo[] = [];
    for (let i = 0; i < 4; i++) {
      const { repo } = await filled(gateway, 150_000);
      // Only a fetch by a client that lacks the objects puts the repository into the cache.
      const copy = await world.checkout();
      await copy.git("fetch", "-q", gateway.remote(repo), "main");
      repos.push(repo);
    }
    const { files } = gateway.service.parts.cache;
    const [first, second, third] = repos;
    if (!first || !second || !third) throw new Error("no repositories");
    // The gateway removes the marker of use after it has sent the response to a fetch.
    await until("nothing is in use", async () => {
      const uses = await Promise.all(repos.map(({ id }) => readdir(files.uses(id))));
      return uses.flat().length === 0;
    });
    const old = Date.now() / 1_000 - 100;
    for (const [i, { id }] of repos.entries()) await utimes(files.uses(id), old + i, old + i);
    await writeFile(join(files.uses(second.id), "1-1"), "");
    await utimes(files.uses(second.id), old + 1, old + 1);
    await gateway.service.sweep();
    const kept = await readdir(join(files.root, "repos"));
    expect(kept).to.not.include(first.id);
    expect(kept).to.include(second.id);
    expect(await bytesBelow(join(files.root, "packs"))).to.be.at.most(400_000);
    const dead = Date.now() / 1_000 - GIT_CACHE_GRACE_MS / 1_000 - 1;
    await utimes(join(files.uses(second.id), "1-1"), dead, dead);
    await mkdir(join(files.root, "tmp", "left"), { recursive: true });
    await utimes(join(files.root, "tmp", "left"), dead, dead);
    await gateway.service.sweep();
    expect(await readdir(join(files.root, "tmp"))).to.deep.equal([]);
    // If less than GIT_CACHE_FREE_SHARE of the disk is free, the sweep removes everything that is not in use. If more
    // is free, it removes nothing.
    const before = await bytesBelow(join(files.root, "packs"));
    const sweepWith = (free: number) => {
      const all = before / (1 - GIT_CACHE_FREE_SHARE);
      return sweepCache(files, {
        bytesMax: GIT_CACHE_BYTES_MAX,
        ages: gateway.service.parts.cache.ages,
        roomOf: async () => ({ free, all }),
      });
    };
    await sweepWith(GIT_CACHE_FREE_SHARE * before * 2);
    expect(await bytesBelow(join(files.root, "packs"))).to.equal(before);
    await sweepWith(0);
    expect(await bytesBelow(join(files.root, "packs"))).to.be.below(before);
    for (const repo of repos) {
      const copy = await world.checkout();
      await copy.git("fetch", "-q", gateway.remote(repo), "main");
    }
    expect(gateway.faults).to.deep.equal([]);
  });

  it("the negotiation of a fetch is limited in bytes", async () => {
    const gateway = await world.gateway();
    const { repo } = await filled(gateway);
    const lines = Buffer.concat(
      Array.from({ length: 170 }, () => pktLine(Buffer.alloc(65_000, "x"))),
    );
    const large = await post(gateway, repo, "git-upload-pack", Buffer.concat([lines, FLUSH]));
    expect(large.status).to.equal(413);
    expect(gateway.faults).to.deep.equal([]);
  });
});

/** Returns the commands of all direct and indirect child processes of a process. */
function childrenOf(pid: number): string[] {
  const lines = execFileSync("ps", ["-eo", "pid=,ppid=,args="]).toString().split("\n");
  const all = lines
    .map((line) => /^ *(\d+) +(\d+) (.*)$/.exec(line))
    .filter((match) => match !== null);
  const below = (parent: number): string[] =>
    all
      .filter(([, , ppid]) => Number(ppid) === parent)
      .flatMap(([, id, , args]) => [args ?? "", ...below(Number(id))]);
  return below(pid);
}

async function bytesBelow(folder: string): Promise<number> {
  const out = execFileSync("du", ["-sb", "--apparent-size", folder]).toString();
  return Number.parseInt(out, 10) - 2 * 4_096;
}
