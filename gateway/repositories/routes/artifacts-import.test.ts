import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, readdir, readFile, readlink } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import { join, normalize } from "node:path";
import { Readable } from "node:stream";
import { expect } from "chai";
import { createAddressPolicy } from "../../../actors/egress/address-policy.ts";
import { EgressAgents, egressFetch } from "../../../actors/egress/egress-fetch.ts";
import { createEgressGuard } from "../../../actors/egress/egress-guard.ts";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { RowNames } from "../../../actors/runtime/commit/stored-subjects.ts";
import { systemClock } from "../../../actors/runtime/lib/clock.ts";
import { BlobStore } from "../../../actors/runtime/store/blob-store.ts";
import { ALL_PERMISSIONS } from "../../../schemas/account/permissions.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { GIT_SIZES, type GitSizes } from "../../../schemas/repositories/git-sizes.ts";
import { IMPORT_URL_RULE } from "../../../schemas/repositories/import-url.ts";
import {
  IMPORT_DEPTH_MAX,
  IMPORTS_PER_ACCOUNT_MAX,
  REF_DEPTH_MAX,
} from "../../../schemas/repositories/limits.ts";
import { repo } from "../../../schemas/repositories/repo.ts";
import { repoEvents } from "../../../schemas/repositories/repo-events.ts";
import { selfSignedCertificate } from "../../../scripts/testing/self-signed-certificate.ts";
import { until } from "../../../scripts/testing/until.ts";
import { ArtifactsWorld } from "../../testing/artifacts-world.ts";
import { giveToken, openAccount } from "../../testing/test-gateway.ts";
import type { ImportFetch } from "../import/import-lfs.ts";
import { type ImportParts, importRepo } from "../import/import-repo.ts";
import { importWorker } from "../import/import-worker.ts";
import { AccountStorage } from "../packs/account-storage.ts";
import { PackStore } from "../packs/pack-store.ts";
import { ProcessSlots } from "../process/process-slots.ts";
import type { Checkout } from "../testing/git-world.ts";
import { upkeepWorker } from "../upkeep/upkeep-worker.ts";

const named = (content: Buffer) => ({
  oid: createHash("sha256").update(content).digest("hex"),
  size: content.length,
});

describe("imports", function () {
  this.timeout(240_000);
  let world: ArtifactsWorld;
  let server: Server;
  let importing: ImportParts;
  let slots: ProcessSlots;
  let origin: string;
  let tip: string;
  /**
   * The host's responses that are not files of the repository. Requests to `/slow.git` wait for `slow`; those to
   * `/stalled.git` wait for `stalled`, and are then answered by 404. `answers` has responses by the start of a path.
   */
  const slow = Promise.withResolvers<void>();
  const stalled = Promise.withResolvers<void>();
  const answers = new Map<string, { status: number; headers?: Record<string, string> }>();
  before(async () => {
    world = await ArtifactsWorld.start();
    const work = await world.checkout();
    await work.commit("1");
    await work.git("branch", "side");
    await work.commit("2");
    await work.git("tag", "-a", "v1", "-m", "first");
    await work.git("update-ref", "refs/pull/1/head", "HEAD");
    await work.git("branch", "-m", "main", "trunk");
    tip = await work.git("rev-parse", "HEAD");
    const served = join(world.folder, "served");
    await mkdir(served);
    await work.git("clone", "-q", "--mirror", ".", join(served, "repo.git"));
    await work.git("--git-dir", join(served, "repo.git"), "update-server-info");

    const certificate = selfSignedCertificate("localhost");
    const authorities = certificate.cert;
    server = createServer(certificate, async (request, response) => {
      const asked = normalize(new URL(request.url ?? "/", "https://localhost").pathname);
      if (asked.startsWith("/smart/")) return void (await passOn(request, response));
      if (asked.startsWith("/slow.git")) await slow.promise;
      if (asked.startsWith("/stalled.git")) await stalled.promise;
      const path = asked.replace("/slow.git", "/repo.git");
      const told = [...answers].find(([prefix]) => path.startsWith(prefix))?.[1];
      if (told) return void response.writeHead(told.status, told.headers).end();
      readFile(join(served, path)).then(
        (content) => response.end(content),
        () => response.writeHead(404).end(),
      );
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    origin = `https://localhost:${address.port}`;
    const policy = createAddressPolicy({ allow: ["127.0.0.0/8"] });
    const lookup = async (name: string) => (name === "localhost" ? ["127.0.0.1"] : ["10.0.0.1"]);
    const guard = createEgressGuard({ policy, lookup });
    const resolve: ImportParts["resolve"] = (target, signal, owner) =>
      guard.check(target, { signal, owner });
    const agents = new EgressAgents({ guard, ca: certificate.cert });
    const fetch: ImportFetch = (url, options) => egressFetch(url, { agents, ...options });
    slots = new ProcessSlots({ queueMs: 1_000 });
    importing = { ...world.git.parts, slots, resolve, authorities, fetch };
    const { bus } = world.world;
    const stored = {
      blobs: new BlobStore(bus, systemClock),
      rows: new RowNames(bus, { buckets: 1 }),
    };
    await world.world.worker([
      importWorker({ ...importing, toldMs: 0 }),
      upkeepWorker(world.git.parts, stored),
    ]);
  });
  after(async () => {
    server.closeAllConnections();
    server.close();
    await world[Symbol.asyncDispose]();
  });
  afterEach(() => expect(world.faults).to.deep.equal([]));

  /** Passes a request on to a private repository of the test server, with this repository's token. */
  async function passOn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "GET", headers } = request;
    const passed = await fetch(`${world.url}/git/${request.url?.slice("/smart/".length)}`, {
      method,
      headers: {
        authorization: smartToken,
        ...(headers["content-type"] && { "content-type": headers["content-type"] }),
        ...(headers["content-encoding"] && { "content-encoding": headers["content-encoding"] }),
        ...(headers["git-protocol"] && { "git-protocol": String(headers["git-protocol"]) }),
      },
      ...(method === "POST" && { body: Readable.toWeb(request) as ReadableStream, duplex: "half" }),
    });
    response.writeHead(passed.status, {
      "content-type": passed.headers.get("content-type") ?? "text/plain",
    });
    const content = Buffer.from(await passed.arrayBuffer());
    const isLarge = passed.headers.get("content-type") === "application/vnd.git-lfs+json";
    const here = `${origin}/smart/`;
    response.end(isLarge ? content.toString().replaceAll(`${world.url}/git/`, here) : content);
  }
  let smartToken = "";
  async function smartOrigin(name: string, work: Checkout, ...refs: string[]): Promise<string> {
    const { result } = await world.post("/origins/repos", { name });
    await work.git("push", "-q", world.remote(result), ...refs);
    smartToken = `Bearer ${result.token}`;
    return `${origin}/smart/${world.accountId}/origins/${name}.git`;
  }

  /** Returns the address for pushes to the repository that `smartOrigin` made last. */
  const remoteOf = (url: string) => {
    const remote = url.replace(`${origin}/smart/`, `${world.url}/git/`);
    return world.remote({ remote, token: smartToken.slice("Bearer ".length) });
  };
  /** Uploads a large file to the repository that `smartOrigin` made last. */
  async function putFile(url: string, content: Buffer): Promise<void> {
    const { oid, size } = named(content);
    const path = new URL(url).pathname.replace("/smart/", "/git/");
    const stored = await globalThis.fetch(`${world.url}${path}/info/lfs/objects/${oid}/${size}`, {
      method: "PUT",
      headers: { authorization: smartToken },
      body: content,
    });
    expect(stored.status).to.equal(200);
  }

  const start = (name: string, json: object) => world.post(`/imports/repos/${name}/import`, json);
  const ended = (name: string) =>
    until(
      "the import has ended",
      async () => {
        const { result } = await world.ask(`/imports/repos/${name}`);
        return result.status !== "importing" && result;
      },
      60_000,
    );
  const refsOf = async (name: string) =>
    (await world.ask(`/imports/repos/${name}/refs`)).result.map(
      (ref: { name: string }) => ref.name,
    );

  it("import branches, tags and the default branch, and report their progress", async () => {
    const { status, result } = await start("all", { url: `${origin}/repo.git` });
    expect(status).to.equal(201);
    expect(result.token).to.match(/^art_v1_/);
    const shown = await ended("all");
    expect(shown.status_reason).to.equal(null);
    expect(shown).to.deep.include({
      status: "ready",
      status_reason: null,
      default_branch: "trunk",
      source: `git:${origin}/repo.git`,
    });
    expect(await refsOf("all")).to.deep.equal([
      "refs/heads/side",
      "refs/heads/trunk",
      "refs/tags/v1",
    ]);
    const place = await world.checkout();
    await place.git("clone", "-q", world.remote(result), "copy");
    const copy = Object.assign(place, { folder: join(place.folder, "copy") });
    expect(await copy.git("rev-parse", "HEAD")).to.equal(tip);
    await copy.git("fsck", "--full", "--strict");
    await copy.commit("own");
    await copy.git("push", "-q", "origin", "trunk");
    const { events } = await world.world.client.call(repoEvents, world.accountId, "list", {
      after: 0,
      limit: 100,
    });
    expect(events.map(({ event }) => event.type)).to.include("artifacts.repo.imported");
  });

  it("respect the configured size limits", async () => {
    const work = await world.checkout();
    await work.commit("x".repeat(3_000));
    const url = await smartOrigin("sized", work, "main");
    const fault = async (name: string, given: Pick<GitSizes, "fileBytes" | "repoBytes">) => {
      const sizes = { ...GIT_SIZES, ...given };
      const address = { accountId: world.accountId, namespace: "imports", name };
      const { id } = await world.opened.repositories.create(address);
      const asked = { id, address, url, branch: null, depth: null, readOnly: false };
      const { signal } = new AbortController();
      const run = importRepo({ ...importing, sizes }, asked, signal, () => {});
      return await run.then(
        () => undefined,
        (error: Error) => error.message,
      );
    };
    expect(await fault("sized-1", { fileBytes: 3_000, repoBytes: 1_000 })).to.equal(undefined);
    expect(await fault("sized-2", { fileBytes: 2_999, repoBytes: 1_000 })).to.match(
      /^Cannot import: the file "file.txt" has 3000 bytes, more than 2999 /,
    );
    expect(await fault("sized-3", { fileBytes: 3_000, repoBytes: 100 })).to.match(/^Cannot import/);
    expect(await refsOf("sized-2")).to.deep.equal([]);
    // Git is stopped in the middle of a pack that is refused at its beginning.
    await work.commit(randomBytes(3_000_000).toString("base64"));
    await work.git("push", "-q", remoteOf(url), "main");
    expect(await fault("sized-4", { fileBytes: 5_000_000, repoBytes: 2_000_000 })).to.match(
      /^Cannot/,
    );
    const folder = join(world.folder, "git", "tmp");
    await until("no git runs in a temporary folder", async () => (await runIn(folder)) === 0);
  });

  /** Returns a function that runs an import. If `isCut`, the import breaks off before the default branch is set. */
  async function attempts(
    address: { accountId: string; namespace: string; name: string },
    { url, depth = null }: { url: string; depth?: number | null },
    status: "ready" | "importing" = "ready",
  ) {
    const { id } = await world.opened.repositories.make(address, {}, { source: null, status });
    const { actors, ...parts } = importing;
    const cut: ActorClient = {
      run: actors.run.bind(actors),
      send: actors.send.bind(actors),
      call: (contract, key, message, ...rest) =>
        message === "configure"
          ? Promise.reject(new Error("cut off"))
          : actors.call(contract, key, message, ...rest),
    };
    const asked = { id, address, url, branch: null, depth, readOnly: false };
    const { signal } = new AbortController();
    return async (isCut: boolean) => {
      const run = importRepo({ ...parts, actors: isCut ? cut : actors }, asked, signal, () => {});
      await run.catch((error: Error) => {
        if (!isCut || error.message !== "cut off") throw error;
      });
    };
  }

  it("that break off before the default branch is set import nothing, and everything at the next attempt", async () => {
    const address = { accountId: world.accountId, namespace: "imports", name: "cut-off" };
    const run = await attempts(address, { url: `${origin}/repo.git` });
    await run(true);
    expect(await refsOf("cut-off")).to.deep.equal([]);
    await run(false);
    expect(await refsOf("cut-off")).to.have.length(3);
    const { result } = await world.ask("/imports/repos/cut-off");
    expect(result.default_branch).to.equal("trunk");
  });

  it("that break off keep no boundary of a history that the origin has replaced since", async () => {
    const work = await world.checkout();
    for (let i = 0; i < 3; i++) await work.commit(`${i}`);
    const url = await smartOrigin("replaced", work, "main");
    const address = { accountId: world.accountId, namespace: "imports", name: "replaced" };
    const run = await attempts(address, { url, depth: 2 }, "importing");
    await run(true);
    const { id } = (await world.ask("/imports/repos/replaced")).result;
    const { signal } = new AbortController();
    const manifest = () => world.git.parts.manifests.read(id, address, signal);
    expect((await manifest()).shallow).to.have.length(1);
    await work.git("checkout", "-q", "--orphan", "single");
    await work.git("commit", "-q", "-m", "single");
    await work.git("push", "-qf", remoteOf(url), "single:main");
    await run(false);
    const { shallow, refs } = await manifest();
    expect([shallow, [...refs.keys()]]).to.deep.equal([[], ["refs/heads/main"]]);
  });

  it("import a single named branch, and may be read-only afterwards", async () => {
    const json = { url: `${origin}/repo.git`, branch: "side", read_only: true };
    const { result } = await start("one", json);
    expect(await ended("one")).to.deep.include({
      status: "ready",
      read_only: true,
      default_branch: "side",
    });
    expect(await refsOf("one")).to.deep.equal(["refs/heads/side"]);
    expect((await world.ask(`/imports/repos/one/commit/${tip}`)).status).to.equal(404);
    const work = await world.checkout();
    await work.commit("x");
    expect((await work.tryGit("push", world.remote(result), "main:y")).stderr).to.contain(
      "read-only",
    );
  });

  it("import as many commits of each branch as depth says, and pushes continue from there", async () => {
    const work = await world.checkout();
    for (let i = 0; i < 6; i++) await work.commit(`${i}`, `file-${i}`);
    await work.git("branch", "old", "main~3");
    const old = await work.git("rev-parse", "main~2");
    const url = await smartOrigin("deep", work, "main", "old");
    const { result } = await start("shallow", { url, depth: 2 });
    expect(await ended("shallow")).to.deep.include({ status: "ready", status_reason: null });
    const logOf = async (name: string, ref: string) =>
      (await world.ask(`/imports/repos/${name}/log?ref=${ref}`)).result;
    expect(await logOf("shallow", "main")).to.have.length(2);
    expect(await logOf("shallow", "old")).to.have.length(2);
    expect((await world.ask(`/imports/repos/shallow/commit/${old}`)).status).to.equal(404);

    // All operations work on a shallow import: clone, push, fork, commit and prune. Deepening the clone brings no
    // more history.
    const place = await world.checkout();
    await place.git("clone", "-q", world.remote(result), "copy");
    const copy = Object.assign(place, { folder: join(place.folder, "copy") });
    expect(await copy.git("rev-list", "--count", "main")).to.equal("2");
    await copy.git("fsck", "--full", "--strict");
    await copy.git("fetch", "-q", "--depth", "5");
    await copy.commit("own");
    await copy.git("push", "-q", "origin", "main");
    // A client with the whole history may also push to the shallow import.
    await work.git("fetch", "-q", world.remote(result), "main");
    await work.git("checkout", "-q", "-b", "more", "main");
    await work.commit("of all", "more");
    await work.git("push", "-q", world.remote(result), "more");
    const changes = [{ path: "by/rest", content: "x" }];
    const made = await world.post("/imports/repos/shallow/commits", { message: "m", changes });
    expect(made.status).to.equal(201);
    for (const options of [{}, { default_branch_only: true }]) {
      const name = `fork-${Object.keys(options).length}`;
      const fork = await world.post("/imports/repos/shallow/fork", { name, ...options });
      expect(fork.status).to.equal(201);
      expect(await logOf(name, "main")).to.have.length(4);
      const other = await world.checkout();
      await other.git("fetch", "-q", world.remote(fork.result), "main");
      await other.git("fsck", "--full", "--strict");
    }
    const secret = await copy.commit("secret");
    await copy.git("push", "-q", "origin", "main:secret");
    await copy.git("push", "-q", "origin", ":secret");
    const readable = async () =>
      (await world.ask(`/imports/repos/shallow/commit/${secret}`)).status === 200;
    expect(await readable()).to.equal(true);
    const pruned = await world.post("/imports/repos/shallow/prune", undefined);
    expect([pruned.status, pruned.result.id]).to.deep.equal([202, result.id]);
    expect(Date.parse(pruned.result.runs_at)).to.be.at.most(Date.now());
    await until("what no ref leads to is gone", async () => !(await readable()), 60_000);
    expect(await logOf("shallow", "main")).to.have.length(4);
    const again = await world.checkout();
    await again.git("fetch", "-q", world.remote(result), "main", "more");
    await again.git("fsck", "--full", "--strict");
    const { result: whole } = await start("whole", { url });
    expect((await ended("whole")).status).to.equal("ready");
    expect(await logOf("whole", "main")).to.have.length(6);
    expect(whole.name).to.equal("whole");
  });

  it("report their current step and its progress", async () => {
    const work = await world.checkout();
    for (let i = 0; i < 3; i++) await work.commit(`${i}`.repeat(5_000), `file-${i}`);
    const url = await smartOrigin("told", work, "main");
    const told: unknown[] = [];
    const { actors } = world.git.parts;
    const send = actors.send.bind(actors);
    actors.send = async (contract, key, message, ...rest) => {
      if (message === "importProgressed") told.push(rest[0]);
      await send(contract, key, message, ...rest);
    };
    await start("told", { url });
    expect(await ended("told")).to.deep.include({ status: "ready", status_progress: null });
    actors.send = send;
    expect(told[0]).to.deep.equal({ step: "asking", percent: null });
    expect(told).to.deep.include({ step: "receiving", percent: 100 });
    expect(told.at(-1)).to.deep.equal({ step: "checking", percent: null });
  });

  it("report why they failed", async () => {
    answers.set("/private.git", { status: 401, headers: { "WWW-Authenticate": "Basic" } });
    answers.set("/forbidden.git", { status: 403 });
    answers.set("/moved.git", {
      status: 302,
      headers: { Location: `${origin}/elsewhere.html` },
    });
    const port = new URL(origin).port;
    const failures: [object, RegExp][] = [
      [
        { url: `${origin}/private.git` },
        /requires authentication \(HTTP 401\): credentials are needed/,
      ],
      [
        { url: `${origin}/forbidden.git` },
        /requires authentication \(HTTP 403\): credentials are needed/,
      ],
      [{ url: `${origin}/repo.git`, depth: 1 }, /shallow/],
      [{ url: `${origin}/none.git` }, /not found/],
      [
        { url: `${origin}/moved.git` },
        /a redirect leads to .*elsewhere.html", which is no address of a repository/,
      ],
      [{ url: `${origin}/repo.git`, branch: "nope" }, /no branch "nope"/],
      [{ url: `https://inside.example:${port}/repo.git` }, /not one this service fetches/],
      [{ url: "https://192.168.0.1/repo.git" }, /not one this service fetches/],
      [{ url: "https://[::ffff:10.0.0.1]/repo.git" }, /not one this service fetches/],
    ];
    for (const [number, [json, reason]] of failures.entries()) {
      expect((await start(`fail-${number}`, json)).status).to.equal(201);
      const shown = await ended(`fail-${number}`);
      expect(shown.status).to.equal("failed");
      expect(shown.status_reason, JSON.stringify(json)).to.match(reason);
      expect(await refsOf(`fail-${number}`)).to.deep.equal([]);
    }
    const listed = await until("the listing says why", async () => {
      const { result } = await world.ask("/imports/repos?search=fail-&limit=100");
      const told: { status: string; status_reason: string | null }[] = result;
      return told.every(({ status }) => status === "failed") && told;
    });
    for (const [number, [, reason]] of failures.entries()) {
      const found = Object(listed.find((entry) => Object(entry).name === `fail-${number}`));
      expect(found.status_reason).to.match(reason);
    }
  });

  it("name the refs that were not imported because of their names", async () => {
    const work = await world.checkout();
    await work.commit("1");
    const deep = (number: number) => `refs/heads/n${number}/${"d/".repeat(REF_DEPTH_MAX - 3)}x`;
    const served = join(world.folder, "served", "names.git");
    const bare = async (...parameters: string[]) =>
      await work.git("--git-dir", served, ...parameters);
    await work.git("clone", "-q", "--mirror", ".", served);
    const tip = await work.git("rev-parse", "HEAD");
    for (let number = 10; number < 31; number++) await bare("update-ref", deep(number), tip);
    await bare("update-server-info");
    await start("names", { url: `${origin}/names.git` });
    const shown = await ended("names");
    expect(shown.status).to.equal("ready");
    expect(await refsOf("names")).to.deep.equal(["refs/heads/main"]);
    expect(shown.status_reason).to.match(/^21 refs were not imported, .* not valid here: /);
    expect(shown.status_reason.match(/refs\/heads\/n\d+\/d/g)).to.have.length(20);
    expect(shown.status_reason)
      .to.contain("refs/heads/n10/d")
      .and.to.match(/, and 1 more$/);

    await bare("update-ref", "-d", "refs/heads/main");
    await bare("update-server-info");
    await start("names-2", { url: `${origin}/names.git` });
    const empty = await ended("names-2");
    expect([empty.status, empty.status_reason]).to.deep.equal([shown.status, shown.status_reason]);
    expect(await refsOf("names-2")).to.deep.equal([]);
  });

  it("that run twice name again what they left out, also if the origin has changed since", async () => {
    const work = await world.checkout();
    await work.commit("1");
    const served = join(world.folder, "served", "twice.git");
    await work.git("clone", "-q", "--mirror", ".", served);
    const bare = async (...parameters: string[]) => {
      await work.git("--git-dir", served, ...parameters);
      await work.git("--git-dir", served, "update-server-info");
    };
    const deep = (name: string) => `refs/heads/${name}/${"d/".repeat(REF_DEPTH_MAX - 3)}x`;
    const tip = await work.git("rev-parse", "HEAD");
    const [namespace, url] = ["imports", `${origin}/twice.git`];
    const address = { accountId: world.accountId, namespace, name: "twice" };
    const status = "importing";
    const { id } = await world.opened.repositories.make(address, {}, { source: null, status });
    const asked = { id, address, url, branch: null, depth: null, readOnly: false };
    const run = (parts: ImportParts) =>
      importRepo(parts, asked, new AbortController().signal, () => {});
    const cut: ActorClient = {
      run: importing.actors.run.bind(importing.actors),
      send: importing.actors.send.bind(importing.actors),
      call: (contract, key, message, ...rest) =>
        message === "swap"
          ? Promise.reject(new Error("cut off"))
          : importing.actors.call(contract, key, message, ...rest),
    };
    await bare("update-ref", deep("first"), tip);
    const broken = await run({ ...importing, actors: cut }).catch((error: Error) => error.message);
    expect(broken).to.equal("cut off");
    await bare("update-ref", "-d", deep("first"));
    await bare("update-ref", deep("second"), tip);
    const lacking = await run(importing);
    expect(lacking).to.match(/^1 ref was not imported, .*: refs\/heads\/second\/d/);
    await bare("update-ref", "-d", deep("second"));
    expect(await run(importing)).to.equal(lacking);
  });

  it("import the large files of the history, and name those that the origin does not serve", async () => {
    const work = await world.checkout();
    const contents = [randomBytes(700_000), randomBytes(10)];
    const lost = randomBytes(20);
    for (const [number, content] of [...contents, lost].entries()) {
      const oid = createHash("sha256").update(content).digest("hex");
      const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${content.length}\n`;
      await work.commit(pointer, `large-${number}.bin`);
    }
    const url = await smartOrigin("large", work, "main");
    for (const content of contents) await putFile(url, content);
    await start("large", { url });
    const shown = await ended("large");
    expect(shown.status).to.equal("ready");
    expect(shown.status_reason).to.contain("does not give 1 of 3 large files");
    expect(shown.status_reason).to.contain(named(lost).oid);
    const [repoId, oids] = [shown.id, contents.map((content) => named(content).oid)];
    const address = { accountId: world.accountId, namespace: "imports", name: "large" };
    const { objects } = await world.world.client.call(repo, repoId, "findLfsObjects", {
      address,
      oids,
    });
    expect(objects.map(({ bytes }) => bytes)).to.deep.equal([700_000, 10]);

    await putFile(url, lost);
    await start("large-2", { url });
    expect((await ended("large-2")).status_reason).to.equal(null);
  });

  /** Runs an import with other limits, and returns its error, or undefined if it succeeded. */
  async function faultOf(name: string, url: string, bounds: Partial<ImportParts>) {
    const address = { accountId: world.accountId, namespace: "imports", name };
    const { id } = await world.opened.repositories.create(address);
    const asked = { id, address, url, branch: null, depth: null, readOnly: false };
    const { signal } = new AbortController();
    const run = importRepo({ ...importing, ...bounds }, asked, signal, () => {});
    return await run.then(
      () => undefined,
      (error: Error) => (error instanceof ActorError ? `${error.code}: ${error.message}` : error),
    );
  }

  it("end all fetches of large files before they report that one failed", async () => {
    const work = await world.checkout();
    const contents = Array.from({ length: 6 }, () => randomBytes(10));
    for (const content of contents) {
      const { oid, size } = named(content);
      const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${size}\n`;
      await work.commit(pointer, `${oid}.bin`);
    }
    const url = await smartOrigin("failing", work, "main");
    for (const content of contents) await putFile(url, content);
    let [running, begun] = [0, 0];
    const fetch: ImportFetch = async (address, options) => {
      if (options.method === "POST") return await importing.fetch(address, options);
      running += 1;
      begun += 1;
      try {
        if (begun < 4) await once(options.signal, "abort");
        throw new ActorError("limit_reached", "no more");
      } finally {
        running -= 1;
      }
    };
    expect(await faultOf("failing", url, { fetch })).to.equal("limit_reached: no more");
    expect([running, begun]).to.deep.equal([0, 4]);
  });

  it("end at their timeout", async () => {
    const url = `${origin}/repo.git`;
    expect(await faultOf("late-1", url, { msMax: 30_000 })).to.equal(undefined);
    // The error of the timeout replaces the error of the interrupted step.
    const resolve: ImportParts["resolve"] = async (_, signal) => {
      await once(signal, "abort");
      throw new ActorError("cancelled", "Cannot wait: the caller has left");
    };
    const msMax = 3_000;
    const faults = await Promise.all([
      faultOf("late-2", `${origin}/slow.git`, { msMax }),
      faultOf("late-3", url, { msMax, resolve }),
    ]);
    const late = "deadline_exceeded: Cannot import: it takes longer than 1 minutes";
    expect(faults).to.deep.equal([late, late]);
    expect(await refsOf("late-2")).to.deep.equal([]);
  });

  it("respect the limits of the account's bytes and of the number and size of files", async () => {
    const work = await world.checkout();
    const sizes = [400, 600];
    for (const [number, size] of sizes.entries()) {
      const oid = named(Buffer.alloc(size)).oid;
      const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${size}\n`;
      await work.commit(pointer, `large-${number}.bin`);
    }
    const url = await smartOrigin("bounded", work, "main");
    const bounded = (name: string, more: Partial<ImportParts>) => faultOf(name, url, more);
    const within = (repoBytes: number) => ({ sizes: { ...GIT_SIZES, repoBytes } });
    // A large file may have half of the bytes that a repository may have.
    expect(await bounded("file-at", within(1_200))).to.equal(undefined);
    expect(await bounded("file-past", within(1_198))).to.match(
      /^limit_reached: Cannot import: the large file [0-9a-f]{64} has 600 bytes, more than 599$/,
    );
    expect(await bounded("count-at", { lfsObjectsMax: 2 })).to.equal(undefined);
    expect(await bounded("count-past", { lfsObjectsMax: 1 })).to.match(/^limit_reached: /);

    const { parts } = world.git;
    const storage = (bytesMax: number) =>
      new AccountStorage(world.world.client, { now: Date.now, bytesMax: () => bytesMax });
    const before = await parts.storage.get(world.accountId, new AbortController().signal);
    const full = (name: string, bytesMax: number) => {
      const blobs = new BlobStore(world.world.bus, systemClock);
      const held = storage(bytesMax);
      const packs = new PackStore(blobs, world.world.client, { storage: held });
      return bounded(name, { storage: held, packs });
    };
    expect(await full("account-at", before.bytes + before.heldBytes + 100_000)).to.equal(undefined);
    expect(await full("account-past", 1)).to.match(/^(storage_full|limit_reached): .*account/);
    for (const name of ["file-past", "count-past", "account-past"]) {
      expect(await refsOf(name)).to.deep.equal([]);
    }
  });

  it("are repeated if no process was free in time", async () => {
    const { signal } = new AbortController();
    const leave: (() => void)[] = [];
    for (let i = 0; i < slots.max; i++) {
      leave.push(await slots.enter({ id: `r${i}`, accountId: `a${i}` }, signal));
    }
    await start("patient", { url: `${origin}/repo.git` });
    await until("it waits for a process", () => slots.waiting === 1, 30_000);
    await until("it has waited for too long", () => slots.waiting === 0, 30_000);
    for (const free of leave) free();
    expect(await ended("patient")).to.deep.include({ status: "ready", status_reason: null });
  });

  it("refuse writes until they have ended", async () => {
    const { result } = await start("slow", { url: `${origin}/slow.git` });
    const work = await world.checkout();
    await work.commit("x");
    const pushed = await work.tryGit("push", world.remote(result), "main");
    expect(pushed.stderr).to.contain("409");
    const changes = [{ path: "a", content: "x" }];
    const change = (json: object) => world.ask("/imports/repos/slow", { method: "PATCH", json });
    for (const refused of [
      await change({ read_only: true }),
      await change({ default_branch: "side" }),
      await world.post("/imports/repos/slow/prune", undefined),
      await world.post("/imports/repos/slow/commits", { message: "m", changes }),
      await world.post("/imports/repos/slow/fork", { name: "x" }),
      await start("slow", { url: `${origin}/repo.git` }),
    ]) {
      expect([refused.status, refused.errors[0]?.code]).to.deep.equal([409, 10302]);
    }
    slow.resolve();
    expect((await ended("slow")).status).to.equal("ready");
    expect(await refsOf("slow")).to.have.length(3);
  });

  it("run and wait IMPORTS_PER_ACCOUNT_MAX at a time for one account, and leave a slot to others", async () => {
    const url = `${origin}/stalled.git`;
    const names = Array.from({ length: IMPORTS_PER_ACCOUNT_MAX }, (_, index) => `stalled-${index}`);
    for (const name of names) expect((await start(name, { url })).status).to.equal(201);
    const past = await start("past", { url });
    expect([past.status, past.errors[0]?.code]).to.deep.equal([409, 1007]);
    expect(past.errors[0]?.message).to.contain("16 imports of the account run or wait");
    expect((await world.ask("/imports/repos/past")).status).to.equal(404);
    const repeated = await start(names[0] ?? "", { url });
    expect([repeated.status, repeated.errors[0]?.code]).to.deep.equal([409, 10302]);

    const { accountId, token } = world;
    const { client } = world.world;
    world.accountId = await openAccount(client, "Two");
    world.token = await giveToken(client, world.accountId, ALL_PERMISSIONS);
    expect((await start("other", { url: `${origin}/repo.git` })).status).to.equal(201);
    expect((await ended("other")).status).to.equal("ready");
    Object.assign(world, { accountId, token });

    // The import of a deleted repository counts until it ends.
    const deleted = names.pop();
    const { status } = await world.ask(`/imports/repos/${deleted}`, { method: "DELETE" });
    expect(status).to.equal(202);
    expect((await start("past", { url })).status).to.equal(409);
    expect((await world.ask(`/imports/repos/${names.at(-1)}`)).result.status).to.equal("importing");
    stalled.resolve();
    for (const name of names) expect((await ended(name)).status).to.equal("failed");
    await until("an import may start", async () => (await start("past", { url })).status === 201);
    expect((await ended("past")).status).to.equal("failed");
  });

  it("refuse an address that is not https, and a taken name", async () => {
    for (const url of [
      "http://example.com/x.git",
      "ssh://example.com/x.git",
      "git@example.com:x.git",
      "file:///etc",
      "ext::sh -c id",
      "--upload-pack=id",
      "https://user:secret@example.com/x.git",
      "https://example.com/a b",
      "https://public.example\\@127.0.0.1/x.git",
      "https://",
      "",
      7,
    ]) {
      const { status, errors } = await start("bad", { url });
      expect([status, errors[0]?.code, errors[0]?.source], String(url)).to.deep.equal([
        400,
        10104,
        { pointer: "/url" },
      ]);
      if (typeof url === "string") expect(errors[0]?.message).to.contain(`url ${IMPORT_URL_RULE}`);
    }
    // A refused import does not count.
    for (let i = 0; i <= IMPORTS_PER_ACCOUNT_MAX; i++) {
      const taken = await start("all", { url: `${origin}/repo.git` });
      expect([taken.status, taken.errors[0]?.code]).to.deep.equal([409, 10201]);
    }
    for (const depth of [0, IMPORT_DEPTH_MAX + 1, 1.5, "1"]) {
      const refused = await start("bad", { url: `${origin}/repo.git`, depth });
      expect(refused.errors[0]?.source?.pointer, String(depth)).to.equal("/depth");
    }
    const most = { url: `${origin}/none.git`, depth: IMPORT_DEPTH_MAX };
    expect((await start("most", most)).status).to.equal(201);
    expect((await ended("most")).status).to.equal("failed");
  });
});

/** Counts the processes that run in a folder or below it. The system must list its processes in /proc. */
async function runIn(folder: string): Promise<number> {
  const names = await readdir("/proc").catch(() => []);
  const folders = names
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => readlink(`/proc/${pid}/cwd`).catch(() => ""));
  return (await Promise.all(folders)).filter((cwd) => cwd.startsWith(folder)).length;
}
