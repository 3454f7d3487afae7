import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { GIT_CACHE_GRACE_MS } from "../../schemas/git-limits.ts";
import { ZERO_ID } from "../../schemas/git-names.ts";
import { until } from "../../scripts/testing/until.ts";
import { runGit, startGit } from "./git-process.ts";
import { FLUSH, pktLine } from "./pkt-line.ts";
import { type Checkout, type GitGateway, GitWorld, type TestRepo } from "./testing/git-world.ts";
import { post, pushBody } from "./testing/raw-push.ts";

describe("git's share of the machine", function () {
  this.timeout(60_000);
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

  /** A push whose pack does not come: it holds a slot. */
  async function hangingPush(gateway: GitGateway, { path, token }: TestRepo) {
    const socket = connect(Number(new URL(gateway.url).port), "127.0.0.1");
    const command = { old: ZERO_ID, value: "1".repeat(40), ref: "refs/heads/x" };
    const head = [
      `POST ${path}/git-receive-pack HTTP/1.1`,
      "Host: x",
      `Authorization: Bearer ${token}`,
      "Content-Type: application/x-git-receive-pack-request",
      "Content-Length: 1000000",
    ];
    socket.write(`${head.join("\r\n")}\r\n\r\n`);
    socket.write(pushBody([command], Buffer.from("5041434b0000000200000005", "hex")));
    const { slots } = gateway.service.parts;
    await until("the push holds a slot", () => slots.running > 0);
    return socket;
  }

  it("503 with Retry-After where as many wait as the queue holds", async () => {
    const gateway = await world.gateway({ slots: { processes: 1, queue: 0 } });
    const { repo, work } = await filled(gateway);
    await until("the slot is free", () => gateway.service.parts.slots.running === 0);
    const socket = await hangingPush(gateway, repo);
    const refused = await post(gateway, repo, "git-upload-pack", Buffer.from("0000"));
    expect(refused.status).to.equal(503);
    expect(Number(refused.headers.get("retry-after"))).to.be.above(0);
    expect(await refused.text()).to.contain("try again");
    socket.destroy();
    await until("the slot is free", () => gateway.service.parts.slots.running === 0);
    await work.git("fetch", "-q", gateway.remote(repo), "main");
    expect(gateway.faults).to.deep.equal([]);
  });

  it("a client that leaves takes its processes along, and leaves nothing behind", async () => {
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
      () => !childrenOf(process.pid).some((name) => name.includes("git")),
    );
    await until(
      "nothing is left",
      async () => (await readdir(join(cache.files.root, "tmp"))).length === 0,
    );
    const uses = await readdir(cache.files.uses(repo.id));
    expect(uses).to.deep.equal([]);
    expect(gateway.faults).to.deep.equal([]);
  });

  it("a process ends with its signal, with all it started, and has no more memory than it may", async () => {
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

  it("a process knows nothing of this machine's configuration and environment", async () => {
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

  it("a cache that vanishes is made again, also between requests of one clone", async () => {
    const gateway = await world.gateway();
    const { repo, work } = await filled(gateway);
    for (let i = 0; i < 3; i++) {
      await rm(join(gateway.dataDir, "git", i % 2 ? "repos" : "packs"), { recursive: true });
      if (i === 2) await rm(join(gateway.dataDir, "git"), { recursive: true });
      const copy = await world.checkout();
      await copy.git("fetch", "-q", gateway.remote(repo), "main");
      await work.commit(`${i}`);
      await work.git("push", "-q", gateway.remote(repo), "main");
    }
    expect(gateway.faults).to.deep.equal([]);
  });

  it("sweep() evicts what was used longest ago, and nothing that is in use", async () => {
    const gateway = await world.gateway({ cacheBytesMax: 400_000 });
    const repos: TestRepo[] = [];
    for (let i = 0; i < 4; i++) {
      const { repo, work } = await filled(gateway, 150_000);
      await work.git("fetch", "-q", gateway.remote(repo), "main");
      repos.push(repo);
    }
    const { files } = gateway.service.parts.cache;
    const [first, second, third] = repos;
    if (!first || !second || !third) throw new Error("no repositories");
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
    for (const repo of repos) {
      const copy = await world.checkout();
      await copy.git("fetch", "-q", gateway.remote(repo), "main");
    }
    expect(gateway.faults).to.deep.equal([]);
  });

  it("a fetch's negotiation has a bound", async () => {
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

/** Commands of all processes below one. */
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
