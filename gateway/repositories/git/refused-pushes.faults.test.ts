import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { expect } from "chai";
import express from "express";
import { pino } from "pino";
import { ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import {
  PUSH_OPTIONS_BYTES_MAX,
  PUSH_OPTIONS_MAX,
  REFS_MAX,
} from "../../../schemas/repositories/limits.ts";
import { refuseWhenFull } from "../../http/middleware/refuse-when-full.ts";
import { requestId } from "../../http/middleware/request-id.ts";
import { ACCOUNT, type Checkout, type GitGateway, GitWorld } from "../testing/git-world.ts";
import { EMPTY_PACK, post, pushBody } from "../testing/raw-push.ts";
import { refuseGit } from "./git-router.ts";
import { PktReader } from "./pkt-line.ts";

/** Bytes of one file of a push: fewer than the limit for one file. */
const FILE_BYTES = 20_000_000;

describe("a push that is refused long before its end", function () {
  this.timeout(600_000);
  let world: GitWorld;
  let gateway: GitGateway;
  before(async () => {
    world = await GitWorld.start();
    gateway = await world.gateway({ sizes: { repoBytes: 50_000 } });
  });
  after(() => world[Symbol.asyncDispose]());
  afterEach(() => expect(gateway.faults).to.deep.equal([]));

  async function holding(bytes: number): Promise<Checkout> {
    const work = await world.checkout();
    // Git spends no time on deltas of random bytes.
    await work.git("config", "core.bigFileThreshold", "1k");
    await work.git("config", "core.compression", "0");
    for (let left = bytes; left > 0; left -= FILE_BYTES) {
      const content = randomBytes(Math.min(left, FILE_BYTES));
      await writeFile(join(work.folder, `file-${left}`), content);
    }
    await work.git("add", ".");
    await work.git("commit", "-q", "-m", "x");
    return work;
  }

  /** More bytes than the connection and the gateway can hold while git checks the first ones. */
  const LARGE_BYTES = 200_000_000;

  for (const bytes of [100_000, 10_000_000, LARGE_BYTES]) {
    it(`shows git its reason, and no fault of the connection, with ${bytes} bytes`, async () => {
      const work = await holding(bytes);
      const repo = await world.repo();
      const { code, stderr } = await work.tryGit("push", gateway.remote(repo), "main");
      expect(code).to.equal(1);
      const reason = /remote unpack failed: the repository would be too large: it has 0 bytes/;
      expect(stderr).to.match(reason).and.to.contain("50000 (TRUNKLINE_GIT_REPO_BYTES)");
      expect(stderr).to.contain("[remote rejected] main -> main (unpacker error)");
      expect(stderr).to.not.match(/RPC failed|curl|unexpected|hung up|fatal/);
      // The user reads the reason at once, and need not wait until the whole pack is sent.
      if (bytes === LARGE_BYTES) expect(stderr).to.contain("remote: the repository would be too");
    });
  }

  it("refuses each ref of a push of too many, with the limit", async () => {
    const repo = await world.repo();
    // Git itself compares each ref with all others, which would take minutes.
    const commands = Array.from({ length: REFS_MAX + 1 }, (_, i) => ({
      old: ZERO_ID,
      value: "a".repeat(40),
      ref: `refs/tags/n${i}`,
    }));
    const push = async (capabilities: string) =>
      await post(gateway, repo, "git-receive-pack", pushBody(commands, EMPTY_PACK, capabilities));
    const response = await push("report-status side-band-64k");
    expect(response.status).to.equal(200);
    const bands = new PktReader(Readable.from([Buffer.from(await response.arrayBuffer())]));
    const lines: Buffer[] = [];
    for (let line = await bands.line(); line instanceof Buffer; line = await bands.line()) {
      if (line[0] === 1) lines.push(line.subarray(1));
    }
    const report = Buffer.concat(lines).toString();
    const limit = `Cannot push: more than ${REFS_MAX} refs in one push; push fewer at once`;
    expect(report).to.contain(`unpack ${limit}\n`);
    expect(report.split(`ng refs/tags/n`)).to.have.length(1 + commands.length);
    expect(report.split(` ${limit}\n`)).to.have.length(2 + commands.length);
    // A client that cannot show a report learns of the refusal by the status.
    for (const capabilities of ["report-status", "side-band-64k"]) {
      const bare = await push(capabilities);
      expect([bare.status, await bare.text()]).to.deep.equal([413, `${limit}\n`]);
    }
    const second = await push("report-status-v2 side-band-64k");
    expect(second.status).to.equal(200);
    expect(await second.text()).to.contain(`unpack ${limit}\n`);
  });

  it("shows git that it sends too many push options", async () => {
    const work = await world.checkout();
    await work.commit("first");
    const remote = gateway.remote(await world.repo());
    const options = Array.from({ length: PUSH_OPTIONS_MAX + 1 }, () => ["-o", "x"]).flat();
    for (const atomic of [[], ["--atomic"]]) {
      const { code, stderr } = await work.tryGit("push", ...atomic, ...options, remote, "main");
      expect(code, stderr).to.equal(1);
      const limit = `more than ${PUSH_OPTIONS_MAX} push options`;
      expect(stderr).to.contain(`main -> main (Cannot push: ${limit}`);
      expect(stderr).to.not.match(/RPC failed|curl|unexpected|hung up|fatal|failed to report/);
    }
  });

  it("shows git that its push options have too many bytes", async () => {
    const work = await world.checkout();
    await work.commit("first");
    const options = Array.from({ length: 5 }, () => ["-o", "x".repeat(1_000)]).flat();
    const remote = gateway.remote(await world.repo());
    const { code, stderr } = await work.tryGit("push", ...options, remote, "main");
    expect(code, stderr).to.equal(1);
    const limit = `more than ${PUSH_OPTIONS_BYTES_MAX} bytes of push options`;
    expect(stderr).to.contain(`main -> main (Cannot push: ${limit})`);
    expect(stderr).to.not.match(/RPC failed|curl|unexpected|hung up|fatal|failed to report/);
  });

  it("shows git that too many requests are in progress", async () => {
    const busy = await world.gateway({ bodiesBytesMax: 100_000 });
    using others = busy.service.parts.bodies.open([ACCOUNT]);
    others.take(90_000);
    const work = await holding(10_000_000);
    const { code, stderr } = await work.tryGit("push", busy.remote(await world.repo()), "main");
    expect(code).to.equal(1);
    expect(stderr).to.contain("too many large requests are in progress; try again");
    expect(stderr).to.not.match(/RPC failed|curl|unexpected|hung up|fatal/);
    expect(busy.faults).to.deep.equal([]);
  });

  it("shows git that the disk of the server is full", async () => {
    let isFull = false;
    const app = express()
      .use(requestId(pino({ level: "silent" })))
      .use(refuseWhenFull(() => isFull))
      .use("/git", gateway.service.router, refuseGit);
    const server = createServer(app).listen(0, "127.0.0.1");
    await once(server, "listening");
    try {
      const { port } = server.address() as AddressInfo;
      const { path, token } = await world.repo();
      const remote = `http://x:${token}@127.0.0.1:${port}${path}`;
      const work = await world.checkout();
      await work.commit("first");
      await work.git("push", "-q", remote, "main");
      isFull = true;
      await work.commit("second");
      const { code, stderr } = await work.tryGit("push", remote, "main");
      expect(code).to.equal(128);
      expect(stderr).to.contain("remote: Cannot store more: the disk of this instance is full");
      expect(stderr).to.not.contain("RPC failed");
      // Git deletes a ref by a push too, and its first request is the same.
      const deleting = await work.tryGit("push", remote, "--delete", "main");
      expect(deleting.stderr).to.contain("fetches still work. Delete repositories by REST");
      await work.git("fetch", "-q", remote, "main");
      const lfs = await fetch(`http://127.0.0.1:${port}${path}/info/lfs/locks`, { method: "POST" });
      expect(lfs.status).to.equal(507);
      expect(await lfs.text()).to.contain('"message":"Cannot store more: the disk');
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  it("shows git that its token can only read, before it sends anything", async () => {
    const work = await holding(10_000_000);
    const repo = await world.repo();
    const remote = gateway.remote(repo, encodeURIComponent(await world.token(repo, "read")));
    const { code, stderr } = await work.tryGit("push", remote, "main");
    expect(code).to.equal(128);
    expect(stderr).to.contain("remote: Insufficient permissions: this token can only read");
    expect(stderr).to.not.match(/RPC failed|curl|unexpected|hung up/);
  });
});
