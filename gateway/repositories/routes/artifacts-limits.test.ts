import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdir, rm, stat } from "node:fs/promises";
import { request as ask, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { expect } from "chai";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { ActorError, ERRORS } from "../../../schemas/errors.ts";
import {
  COMMIT_BODY_BYTES_MAX,
  COMMIT_TRIES_MAX,
  FILE_BYTES_MAX,
  READ_BYTES_MAX,
} from "../../../schemas/repositories/limits.ts";
import { until } from "../../../scripts/testing/until.ts";
import { ArtifactsWorld } from "../../testing/artifacts-world.ts";
import { Archives } from "../read/read-archive.ts";
import { readDiff } from "../read/read-diff.ts";
import { Repositories } from "../repositories.ts";
import { commitFiles } from "../write/commit-files.ts";
import { FORK_REFS_BYTES_MAX, forkRepo } from "../write/fork-repo.ts";

describe("limits of repository operations", function () {
  this.timeout(240_000);
  const { signal } = new AbortController();
  let world: ArtifactsWorld;
  let name: string;
  before(async () => {
    world = await ArtifactsWorld.start();
  });
  after(() => world[Symbol.asyncDispose]());
  beforeEach(async () => {
    name = `r${randomBytes(6).toString("hex")}`;
    expect((await world.post("/limits/repos", { name })).status).to.equal(201);
  });

  const addressOf = (of = name) => ({
    accountId: world.accountId,
    namespace: "limits",
    name: of,
  });
  const put = async (path: string, content: string) => {
    const changes = [{ path, content }];
    const { status, result } = await world.post(`/limits/repos/${name}/commits`, {
      message: "m",
      changes,
    });
    expect(status).to.equal(201);
    return result.hash as string;
  };
  const codeOf = (run: Promise<unknown>) =>
    run.then(
      () => undefined,
      (error: unknown) => (error instanceof ActorError ? error.code : error),
    );

  /** Returns a service of repositories that awaits `meanwhile` before each call of an actor. */
  function through(meanwhile: (message: string) => Promise<unknown>): Repositories {
    const { parts } = world.opened.repositories;
    const { actors } = parts;
    const call: ActorClient["call"] = async (contract, key, message, ...rest) => {
      await meanwhile(message);
      return await actors.call(contract, key, message, ...rest);
    };
    const { run, send } = { run: actors.run.bind(actors), send: actors.send.bind(actors) };
    return new Repositories({ ...parts, actors: { run, send, call } });
  }

  it("a commit without an expected tip is attempted at most COMMIT_TRIES_MAX times", async () => {
    await put("a", "0");
    const raced = async (rivals: number) => {
      let [swaps, left] = [0, rivals];
      const repositories = through(async (message) => {
        if (message !== "swap") return;
        swaps += 1;
        if (left-- > 0) await put("rival", `${rivals} ${left}`);
      });
      const changes = [{ path: "b", content: Buffer.from(`${rivals}`) }];
      const run = commitFiles(repositories, addressOf(), { message: "m", changes }, signal);
      return { code: await codeOf(run), swaps };
    };
    expect(await raced(COMMIT_TRIES_MAX - 1)).to.deep.equal({
      code: undefined,
      swaps: COMMIT_TRIES_MAX,
    });
    expect(await raced(COMMIT_TRIES_MAX)).to.deep.equal({
      code: "branch_moved",
      swaps: COMMIT_TRIES_MAX,
    });
  });

  it("the body of a commit may have COMMIT_BODY_BYTES_MAX bytes, and one more is refused", async () => {
    const json = JSON.stringify({ message: "m", changes: [{ path: "a", content: "x" }] });
    const send = async (bytes: number) => {
      const { status } = await fetch(`${world.url}/v4${world.base}/limits/repos/${name}/commits`, {
        method: "POST",
        headers: { Authorization: `Bearer ${world.token}`, "Content-Type": "application/json" },
        body: json.padEnd(bytes),
      });
      return status;
    };
    expect(await send(COMMIT_BODY_BYTES_MAX)).to.equal(201);
    expect(await send(COMMIT_BODY_BYTES_MAX + 1)).to.equal(413);
  });

  it("refs of a fork are sent in one message up to FORK_REFS_BYTES_MAX, and in several past it", async () => {
    const tip = await put("a", "0");
    const main: [string, string] = ["refs/heads/main", tip];
    const bytesOf = (refs: [string, string][]) => Buffer.byteLength(JSON.stringify(refs));
    const refs = [main];
    for (let i = 0; bytesOf(refs) < FORK_REFS_BYTES_MAX - 1_000; i++) {
      refs.push([`refs/tags/${i}-${"x".repeat(600)}`, tip]);
    }
    const last: [string, string] = ["refs/tags/last-", tip];
    const left = FORK_REFS_BYTES_MAX - bytesOf([...refs, last]);
    last[0] += "y".repeat(left);
    expect(bytesOf([...refs, last])).to.equal(FORK_REFS_BYTES_MAX);
    const remote = (await world.ask(`/limits/repos/${name}`)).result.remote;
    const token = (await world.post("/limits/tokens", { repo: name, scope: "write", ttl: 3_600 }))
      .result.plaintext;
    const made = { remote, token };
    const work = await world.checkout();
    await work.git("fetch", "-q", world.remote(made), "main");
    const push = async (some: [string, string][]) => {
      for (let from = 0; from < some.length; from += 50) {
        const pushed = some.slice(from, from + 50).map(([ref]) => `FETCH_HEAD:${ref}`);
        await work.git("push", "-q", world.remote(made), ...pushed);
      }
    };
    await push([...refs.slice(1), last]);
    const forked = async (to: string) => {
      const messages: string[] = [];
      const repositories = through(async (message) => void messages.push(message));
      await forkRepo(repositories, addressOf(), { name: to }, signal);
      const { manifest } = await repositories.open(addressOf(to), signal);
      return { refs: manifest.refs.size, inParts: messages.includes("swap") };
    };
    expect(await forked(`${name}-at`)).to.deep.equal({ refs: refs.length + 1, inParts: false });
    await work.git("push", "-q", world.remote(made), `:${last[0]}`, `FETCH_HEAD:${last[0]}y`);
    expect(await forked(`${name}-past`)).to.deep.equal({ refs: refs.length + 1, inParts: true });
  });

  it("an account reads objects of half of READ_BYTES_MAX at once, and the next waits until a client has read one", async () => {
    const work = await world.checkout();
    const blob = await work.object("blob", Buffer.alloc(FILE_BYTES_MAX));
    const commit = await work.commitTree(await work.tree("100644", "large", blob));
    const { remote } = (await world.ask(`/limits/repos/${name}`)).result;
    const asked = { repo: name, scope: "write", ttl: 3_600 };
    const token = (await world.post("/limits/tokens", asked)).result.plaintext;
    await work.git("push", "-q", world.remote({ remote, token }), `${commit}:refs/heads/main`);
    const read = async () => {
      const url = `${world.url}/v4${world.base}/limits/repos/${name}/raw/main/large`;
      const request = ask(url, { headers: { Authorization: `Bearer ${world.token}` } }).end();
      const [response] = (await once(request, "response")) as [IncomingMessage];
      // The reservation lasts until a client has read the whole response.
      return response;
    };
    const readers: IncomingMessage[] = [];
    // Reads slowly, but fast enough for the responses not to be cut off.
    const reading = setInterval(() => {
      for (const response of readers) response.read();
    }, 500);
    try {
      for (let bytes = 0; bytes < READ_BYTES_MAX / 2; bytes += FILE_BYTES_MAX) {
        readers.push(await read());
      }
      expect(readers.map(({ statusCode }) => statusCode)).to.deep.equal(readers.map(() => 200));
      const past = await read();
      expect(past.statusCode).to.equal(ERRORS.busy.status);
      past.destroy();
      // Small objects have a reserve of their own.
      const tree = await world.ask(`/limits/repos/${name}/commit/${commit}`);
      expect(tree.status).to.equal(200);
      readers.pop()?.destroy();
      const room = async () => {
        const response = await read();
        if (response.statusCode === 200) return response;
        response.destroy();
        return undefined;
      };
      readers.push(await until("there is room again", room, 60_000));
    } finally {
      clearInterval(reading);
      for (const response of readers) response.destroy();
    }
  });

  it("archives and differences end at their timeout", async () => {
    const base = await put("a", "0");
    const head = await put("a", "1");
    const { parts } = world.opened.repositories;
    const repo = await world.opened.repositories.open(addressOf(), signal);
    const asked = { commit: head, format: "tar.gz" as const };
    const archives = (msMax: number) => new Archives(parts, { now: Date.now, msMax });
    expect(await codeOf(archives(1).get(repo, asked))).to.equal("deadline_exceeded");
    await using made = await archives(30_000).get(repo, asked);
    expect(made.bytes).to.be.greaterThan(0);
    const differing = (msMax: number) => readDiff(parts, repo, { base, head, signal, msMax });
    expect(await codeOf(differing(1))).to.equal("deadline_exceeded");
    expect((await differing(30_000)).files).to.have.length(1);
    await until("no place is held", () => world.git.parts.slots.running === 0);
  });

  it("an archive is refused when its file has more bytes than its limit", async () => {
    const commit = await put("a", randomBytes(30_000).toString("base64"));
    const { parts } = world.opened.repositories;
    const repo = await world.opened.repositories.open(addressOf(), signal);
    const get = async (format: "tar.gz" | "zip", writtenBytesMax?: number) => {
      const limit = writtenBytesMax !== undefined && { writtenBytesMax };
      const archives = new Archives(parts, { now: Date.now, ...limit });
      await using made = await archives.get(repo, { commit, format });
      await rm(made.path);
      return made.bytes;
    };
    for (const format of ["tar.gz", "zip"] as const) {
      const bytes = await get(format);
      expect(await codeOf(get(format, bytes - 1)), format).to.equal("object_too_large");
      expect(await get(format, bytes), format).to.equal(bytes);
    }
    const { root } = parts.cache.files;
    const left = await readdir(join(root, "tmp"));
    expect(left.filter((file) => file.includes("archive"))).to.deep.equal([]);
  });

  it("an archive is refused when its paths have more bytes than their limit", async () => {
    await put("a", "0");
    const commit = await put("d/e/f", "1");
    const paths = ["a", "d", "d/e", "d/e/f"].join("").length;
    const { parts } = world.opened.repositories;
    const repo = await world.opened.repositories.open(addressOf(), signal);
    const get = async (pathBytesMax: number) => {
      const archives = new Archives(parts, { now: Date.now, pathBytesMax });
      await using made = await archives.get(repo, { commit, format: "zip" });
      return made.bytes;
    };
    expect(await codeOf(get(paths - 1))).to.equal("object_too_large");
    expect(await get(paths)).to.be.greaterThan(0);
  });

  it("the archive cache keeps the latest used archives within its byte limit", async () => {
    const content = () => randomBytes(3_000).toString("base64");
    const commits = [
      await put("a", content()),
      await put("a", content()),
      await put("a", content()),
    ];
    const { parts } = world.opened.repositories;
    const repo = await world.opened.repositories.open(addressOf(), signal);
    const folder = join(parts.cache.files.root, "archives");
    let at = Date.now() - 1_000_000;
    const now = () => {
      at += 1_000;
      return at;
    };
    const get = async (commit: string, keptBytesMax?: number) => {
      const archives = new Archives(parts, { now, ...(keptBytesMax && { keptBytesMax }) });
      await using made = await archives.get(repo, { commit, format: "zip" });
      return made;
    };
    const [first = "", second = "", third = ""] = commits;
    const made = [await get(first), await get(second), await get(third)];
    const names = await readdir(folder);
    const sizes = names.map(async (file) => (await stat(join(folder, file))).size);
    const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    await rm(made[2]?.path ?? "");
    await get(third, bytes);
    expect(await readdir(folder)).to.have.members(names);
    await rm(made[2]?.path ?? "");
    await get(third, bytes - 1);
    expect(await readdir(folder)).to.have.members(names.filter((file) => !file.includes(first)));
  });
});
