import { createHash, randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { systemClock } from "../../../actors/runtime/lib/clock.ts";
import { BlobStore } from "../../../actors/runtime/store/blob-store.ts";
import { BLOB_CHUNK_BYTES } from "../../../schemas/limits.ts";
import { GIT_SIZES, lfsObjectBytes } from "../../../schemas/repositories/git-sizes.ts";
import { lfsBlob } from "../../../schemas/repositories/lfs.ts";
import { LFS_BATCH_MAX } from "../../../schemas/repositories/limits.ts";
import { repo as repoContract } from "../../../schemas/repositories/repo.ts";
import { gitLfs } from "../../../scripts/testing/git-lfs.ts";
import { until } from "../../../scripts/testing/until.ts";
import { ACCOUNT, type GitGateway, GitWorld, type TestRepo } from "../testing/git-world.ts";
import { LFS_QUESTION_BYTES_MAX } from "./lfs-answers.ts";

/** The limit without settings. */
const OBJECT_BYTES_MAX = lfsObjectBytes(GIT_SIZES);
const TYPE = "application/vnd.git-lfs+json";

interface BatchObjectAnswer {
  oid: string;
  size: number;
  authenticated?: boolean;
  actions?: Record<string, { href: string; header: Record<string, string> }>;
  error?: { code: number; message: string };
}

const made = (content: Uint8Array) => ({
  oid: createHash("sha256").update(content).digest("hex"),
  size: content.length,
});

describe("Git LFS", function () {
  this.timeout(120_000);
  let world: GitWorld;
  let gateway: GitGateway;
  before(async () => {
    world = await GitWorld.start();
    gateway = await world.gateway();
  });
  after(() => world[Symbol.asyncDispose]());
  afterEach(() => expect(gateway.faults).to.deep.equal([]));

  async function ask(
    repo: TestRepo,
    path: string,
    {
      json,
      token = repo.token,
      at = gateway,
      ...init
    }: RequestInit & { json?: unknown; token?: string | null; at?: GitGateway } = {},
  ) {
    const response = await fetch(
      path.startsWith("http") ? path : `${at.url}${repo.path}/info/lfs/${path}`,
      {
        ...init,
        ...(json !== undefined && { method: "POST", body: JSON.stringify(json) }),
        headers: {
          Accept: TYPE,
          ...(json !== undefined && { "Content-Type": TYPE }),
          ...(token !== null && { Authorization: `Basic ${btoa(`x:${token}`)}` }),
          ...(init.headers as Record<string, string>),
        },
      },
    );
    const bytes = Buffer.from(await response.arrayBuffer());
    const isJson = response.headers.get("content-type") === TYPE;
    const body = isJson ? JSON.parse(bytes.toString()) : undefined;
    return { status: response.status, headers: response.headers, bytes, body };
  }

  async function batch(
    repo: TestRepo,
    operation: string,
    objects: { oid: string; size: number }[],
    token = repo.token,
  ): Promise<BatchObjectAnswer[]> {
    const json = { operation, transfers: ["basic"], ref: { name: "refs/heads/main" }, objects };
    const { status, body } = await ask(repo, "objects/batch", { json, token });
    expect(status, JSON.stringify(body)).to.equal(200);
    expect(body.transfer).to.equal("basic");
    return body.objects;
  }

  const put = (repo: TestRepo, { oid, size }: { oid: string; size: number }, body: Uint8Array) =>
    ask(repo, `objects/${oid}/${size}`, { method: "PUT", body: body as Uint8Array<ArrayBuffer> });

  async function upload(repo: TestRepo, content: Uint8Array) {
    const object = made(content);
    expect((await put(repo, object, content)).status).to.equal(200);
    return object;
  }

  const blobs = () => new BlobStore(world.world.bus, systemClock);

  for (const [how, remoteOf, config] of [
    ["password", (repo: TestRepo) => gateway.remote(repo), []],
    [
      "bearer",
      ({ path }: TestRepo) => `${gateway.url}${path}`,
      (repo: TestRepo) => [["http.extraHeader", `Authorization: Bearer ${repo.token}`]],
    ],
  ] as const) {
    it(`serves the real git-lfs with the token as ${how}: push, clone, fetch`, async function () {
      // The first run builds git-lfs, which takes minutes.
      this.timeout(900_000);
      const programs = await gitLfs(await world.checkout().then(({ folder }) => folder));
      if (programs === undefined) return this.skip();
      const repo = await world.repo();
      const settings = typeof config === "function" ? config(repo) : [];
      const open = async () => {
        const work = await world.checkout({ programs });
        await work.git("lfs", "install", "--local");
        for (const [name, value] of settings) await work.git("config", name ?? "", value ?? "");
        await work.git("remote", "add", "origin", remoteOf(repo));
        return work;
      };
      const work = await open();
      await work.git("lfs", "track", "*.bin");
      const files = new Map<string, Buffer>();
      for (const [number, bytes] of [10, BLOB_CHUNK_BYTES, 5_000_000].entries()) {
        files.set(`file-${number}.bin`, randomBytes(bytes));
      }
      for (const [name, content] of files) await writeFile(join(work.folder, name), content);
      await work.git("add", ".");
      await work.git("commit", "-q", "-m", "large files");
      const pushed = await work.tryGit("push", "-u", "origin", "main");
      expect(pushed.code, pushed.stderr).to.equal(0);
      expect(pushed.stderr).not.to.match(/error|warning/i);
      // A second push uploads nothing, because the server has all objects.
      await work.git("lfs", "push", "--all", "origin");

      const copy = await open();
      await copy.git("pull", "-q", "origin", "main");
      for (const [name, content] of files) {
        expect((await readFile(join(copy.folder, name))).equals(content), name).to.equal(true);
      }
      await copy.git("lfs", "fsck");
    });
  }

  it("batch() returns an action for each object, and objects download as they were uploaded", async () => {
    const repo = await world.repo();
    const content = randomBytes(2 * BLOB_CHUNK_BYTES + 77);
    const object = made(content);
    const missing = { oid: "f".repeat(64), size: 3 };
    expect(await batch(repo, "download", [missing])).to.deep.equal([
      { ...missing, error: { code: 404, message: "Object does not exist" } },
    ]);
    const [told] = await batch(repo, "upload", [object]);
    const base = `${gateway.url}${repo.path}/info/lfs`;
    const header = { Authorization: `Basic ${btoa(`x:${repo.token}`)}` };
    expect(told).to.deep.equal({
      ...object,
      authenticated: true,
      actions: {
        upload: { href: `${base}/objects/${object.oid}/${object.size}`, header },
        verify: { href: `${base}/objects/verify`, header },
      },
    });
    expect((await ask(repo, "objects/verify", { json: object })).status).to.equal(404);
    expect((await put(repo, object, content)).status).to.equal(200);
    expect((await put(repo, object, content)).status, "once more").to.equal(200);
    expect((await ask(repo, "objects/verify", { json: object })).status).to.equal(200);
    const other = { ...object, size: object.size + 1 };
    expect((await ask(repo, "objects/verify", { json: other })).status).to.equal(422);
    expect(await batch(repo, "upload", [object])).to.deep.equal([object]);
    const [found] = await batch(repo, "download", [object]);
    expect(found?.actions).to.deep.equal({
      download: { href: `${base}/objects/${object.oid}`, header },
    });
    const whole = await ask(repo, `objects/${object.oid}`);
    expect(whole.status).to.equal(200);
    expect(whole.headers.get("content-length")).to.equal(String(object.size));
    expect(whole.bytes.equals(content)).to.equal(true);
    expect((await batch(repo, "download", [other]))[0]?.error?.code).to.equal(422);
  });

  it("download() serves any byte range, so that an interrupted download can resume", async () => {
    const repo = await world.repo();
    for (const bytes of [10, 3 * BLOB_CHUNK_BYTES + 5]) {
      const content = randomBytes(bytes);
      const { oid } = await upload(repo, content);
      const ranges = [
        [0, 0],
        [bytes - 1, bytes - 1],
        [1, bytes - 2],
        [Math.floor(bytes / 2), bytes - 1],
        [Math.min(BLOB_CHUNK_BYTES, bytes - 2), Math.min(BLOB_CHUNK_BYTES + 1, bytes - 1)],
        [Math.min(BLOB_CHUNK_BYTES - 1, 3), Math.min(2 * BLOB_CHUNK_BYTES - 1, bytes - 1)],
      ] as const;
      for (const [start, end] of ranges) {
        const headers = { Range: `bytes=${start}-${end}` };
        const part = await ask(repo, `objects/${oid}`, { headers });
        expect(part.status).to.equal(206);
        expect(part.headers.get("content-range")).to.equal(`bytes ${start}-${end}/${bytes}`);
        expect(part.bytes.equals(content.subarray(start, end + 1)), `${start}`).to.equal(true);
      }
      const past = await ask(repo, `objects/${oid}`, { headers: { Range: `bytes=${bytes}-` } });
      expect(past.status).to.equal(416);
      const known = await ask(repo, `objects/${oid}`, { headers: { "If-None-Match": `"${oid}"` } });
      expect(known.status).to.equal(304);
    }
  });

  it("upload() refuses and discards an object whose bytes do not match its id", async () => {
    const repo = await world.repo();
    for (const bytes of [100, 2 * BLOB_CHUNK_BYTES + 1]) {
      const content = randomBytes(bytes);
      const object = made(content);
      const changed = Buffer.from(content);
      changed[bytes - 1] = (changed[bytes - 1] ?? 0) ^ 1;
      for (const wrong of [
        changed,
        content.subarray(1),
        Buffer.concat([content, Buffer.from("x")]),
      ]) {
        const { status, body } = await put(repo, object, wrong);
        expect(status).to.equal(422);
        expect(body.message).to.match(/^Cannot store: /);
        expect(body.request_id).to.be.a("string");
      }
      expect((await put(repo, { ...object, size: bytes - 1 }, content)).status).to.equal(422);
      expect(await blobs().has(lfsBlob(ACCOUNT, object.oid))).to.equal(false);
      expect((await ask(repo, `objects/${object.oid}`)).status).to.equal(404);
      expect((await put(repo, object, content)).status).to.equal(200);
    }
    for (const path of [`objects/${"A".repeat(64)}/3`, "objects/abc/3", "objects/../3"]) {
      const { status } = await ask(repo, path, { method: "PUT", body: "abc" });
      expect(status, path).to.be.oneOf([404, 422]);
    }
    const { oid } = made(Buffer.from("abc"));
    for (const size of ["-3", "3.5", "x", "3e0"]) {
      const { status } = await ask(repo, `objects/${oid}/${size}`, { method: "PUT", body: "abc" });
      expect(status, size).to.equal(422);
    }
  });

  it("accepts only tokens of the repository: answers 401 without one, 403 with another, and 403 to a write with a read token", async () => {
    const [repo, other] = [await world.repo(), await world.repo()];
    const content = Buffer.from("shown to whom it is for");
    const object = await upload(repo, content);
    const reading = await world.token(repo, "read");
    const json = { operation: "download", objects: [object] };
    const none = await ask(repo, "objects/batch", { json, token: null });
    expect(none.status).to.equal(401);
    expect(none.headers.get("lfs-authenticate")).to.equal('Basic realm="git"');
    expect(none.body.message).to.be.a("string");
    for (const token of [other.token, "nonsense"]) {
      expect((await ask(repo, "objects/batch", { json, token })).status).to.equal(403);
      expect((await ask(repo, `objects/${object.oid}`, { token })).status).to.equal(403);
    }
    expect((await batch(repo, "download", [object], reading))[0]?.actions).to.have.key("download");
    expect((await ask(repo, `objects/${object.oid}`, { token: reading })).bytes).to.deep.equal(
      content,
    );
    const writing = { operation: "upload", objects: [made(Buffer.from("new"))] };
    const refused = await ask(repo, "objects/batch", { json: writing, token: reading });
    expect(refused.status).to.equal(403);
    expect(refused.body.message).to.contain("can only read");
    const { oid } = made(Buffer.from("new"));
    const denied = await ask(repo, `objects/${oid}/3`, {
      method: "PUT",
      body: "new",
      token: reading,
    });
    expect(denied.status).to.equal(403);
    // An object that only another repository has must be uploaded again. To know its id is not enough.
    expect((await ask(other, `objects/${object.oid}`)).status).to.equal(404);
    expect((await batch(other, "upload", [object]))[0]?.actions).to.have.property("upload");
    await upload(other, content);
    expect((await ask(other, `objects/${object.oid}`)).bytes).to.deep.equal(content);
  });

  it("is read-only if the repository is", async () => {
    const repo = await world.repo();
    const object = await upload(repo, Buffer.from("before"));
    await world.actors.call(repoContract, repo.id, "configure", { readOnly: true });
    const json = { operation: "upload", objects: [object] };
    expect((await ask(repo, "objects/batch", { json })).status).to.equal(403);
    const content = Buffer.from("after");
    const { status, body } = await put(repo, made(content), content);
    expect(status).to.equal(403);
    expect(body.message).to.equal("The repository is read-only");
    expect((await ask(repo, `objects/${object.oid}`)).status).to.equal(200);
  });

  it("batch() accepts LFS_BATCH_MAX objects, each up to half of a repository's limit, and refuses more of either", async () => {
    const repo = await world.repo();
    const many = (count: number) =>
      Array.from({ length: count }, (_, i) => ({ oid: i.toString(16).padStart(64, "0"), size: 1 }));
    expect(await batch(repo, "upload", many(LFS_BATCH_MAX))).to.have.length(LFS_BATCH_MAX);
    const json = { operation: "upload", objects: many(LFS_BATCH_MAX + 1) };
    expect((await ask(repo, "objects/batch", { json })).status).to.equal(413);
    const [one = { oid: "", size: 0 }] = many(1);
    const [atLimit] = await batch(repo, "upload", [{ ...one, size: OBJECT_BYTES_MAX }]);
    expect(atLimit?.actions).to.have.property("upload");
    const [past] = await batch(repo, "upload", [{ ...one, size: OBJECT_BYTES_MAX + 1 }]);
    expect(past?.error?.code).to.equal(422);
    const { status } = await put(repo, { ...one, size: OBJECT_BYTES_MAX + 1 }, Buffer.from("x"));
    expect(status).to.equal(422);
    // Two files of the largest size fill the repository, so a third one is refused.
    const [, , third] = await batch(
      repo,
      "upload",
      many(3).map(({ oid }) => ({ oid, size: OBJECT_BYTES_MAX })),
    );
    expect(third?.error?.code).to.equal(507);
  });

  it("refuses malformed requests and says why", async () => {
    const repo = await world.repo();
    const object = { oid: "0".repeat(64), size: 1 };
    for (const [json, status] of [
      [{ operation: "delete", objects: [object] }, 400],
      [{ operation: "upload" }, 400],
      [{ operation: "upload", objects: [{ oid: 7 }] }, 400],
      [{ operation: "upload", hash_algo: "sha512", objects: [object] }, 409],
    ] as const) {
      const answer = await ask(repo, "objects/batch", { json });
      expect(answer.status, JSON.stringify(json)).to.equal(status);
      expect(answer.body.message).to.match(/^Cannot /);
    }
    const told = await batch(repo, "upload", [
      { oid: "short", size: 1 },
      { ...object, size: -1 },
    ]);
    expect(told.map(({ error }) => error?.code)).to.deep.equal([422, 422]);
    const padded = (bytes: number) => {
      const text = JSON.stringify({ operation: "download", objects: [], padding: "" });
      return { ...JSON.parse(text), padding: "x".repeat(bytes - text.length) };
    };
    const atLimit = await ask(repo, "objects/batch", { json: padded(LFS_QUESTION_BYTES_MAX) });
    expect(atLimit.status).to.equal(200);
    const past = await ask(repo, "objects/batch", { json: padded(LFS_QUESTION_BYTES_MAX + 1) });
    expect(past.status).to.equal(413);
    const text = await ask(repo, "objects/batch", { method: "POST", body: "{" });
    expect(text.status).to.equal(415);
    expect((await ask(repo, "elsewhere")).status).to.equal(404);
  });

  it("limits concurrent transfers, and asks one more to retry later", async () => {
    const busy = await world.gateway({ transfersMax: 1 });
    const repo = await world.repo();
    const content = randomBytes(1_000);
    const object = await upload(repo, content);
    const slow = randomBytes(4 * BLOB_CHUNK_BYTES);
    const { oid, size } = made(slow);
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    const uploading = ask(repo, `objects/${oid}/${size}`, {
      method: "PUT",
      body: readable,
      at: busy,
      duplex: "half",
    } as RequestInit & { at: GitGateway });
    await writer.write(slow.subarray(0, 2 * BLOB_CHUNK_BYTES + 1));
    await until("some of it is stored", async () =>
      [...(await blobs().names("git"))].includes(lfsBlob(ACCOUNT, oid)),
    );
    const refused = await ask(repo, `objects/${object.oid}`, { at: busy });
    expect(refused.status).to.equal(503);
    expect(refused.headers.get("retry-after")).to.equal("2");
    await writer.write(slow.subarray(2 * BLOB_CHUNK_BYTES + 1));
    await writer.close();
    expect((await uploading).status).to.equal(200);
    expect((await ask(repo, `objects/${object.oid}`, { at: busy })).status).to.equal(200);
  });

  it("an upload whose client disconnects stores no object, and can be repeated", async () => {
    const repo = await world.repo();
    const content = randomBytes(4 * BLOB_CHUNK_BYTES);
    const { oid, size } = made(content);
    const leave = new AbortController();
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    const uploading = ask(repo, `objects/${oid}/${size}`, {
      method: "PUT",
      body: readable,
      duplex: "half",
      signal: leave.signal,
    } as RequestInit).catch(() => "left");
    await writer.write(content.subarray(0, 2 * BLOB_CHUNK_BYTES + 1));
    await until("some of it is stored", async () =>
      [...(await blobs().names("git"))].includes(lfsBlob(ACCOUNT, oid)),
    );
    leave.abort();
    expect(await uploading).to.equal("left");
    expect((await ask(repo, `objects/${oid}`)).status).to.equal(404);
    await until(
      "what came of it is gone",
      async () => ![...(await blobs().names("git"))].includes(lfsBlob(ACCOUNT, oid)),
    );
    expect(await upload(repo, content)).to.deep.equal({ oid, size });
  });
});
