import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:https";
import { join, normalize } from "node:path";
import { expect } from "chai";
import { createAddressPolicy } from "../../actors/egress/address-policy.ts";
import { createResolver } from "../../actors/egress/resolver.ts";
import { repoEvents } from "../../schemas/repo-events.ts";
import { selfSignedCertificate } from "../../scripts/testing/self-signed-certificate.ts";
import { until } from "../../scripts/testing/until.ts";
import { importWorker } from "../git/import-worker.ts";
import { ArtifactsWorld } from "../testing/artifacts-world.ts";

describe("imports", function () {
  this.timeout(60_000);
  let world: ArtifactsWorld;
  let server: Server;
  let origin: string;
  let tip: string;
  /** What the host answers a path, where it is not a file of the repository. */
  const slow = Promise.withResolvers<void>();
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
    const authorities = join(world.folder, "authorities.pem");
    await writeFile(authorities, certificate.cert);
    server = createServer(certificate, async (request, response) => {
      const asked = normalize(new URL(request.url ?? "/", "https://localhost").pathname);
      if (asked.startsWith("/slow.git")) await slow.promise;
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
    const resolve = createResolver({ policy, lookup });
    await world.world.worker([importWorker({ ...world.git.parts, resolve, authorities })]);
  });
  after(async () => {
    server.closeAllConnections();
    server.close();
    await world[Symbol.asyncDispose]();
  });
  afterEach(() => expect(world.faults).to.deep.equal([]));

  const start = (name: string, json: object) => world.post(`/imports/repos/${name}/import`, json);
  const ended = (name: string) =>
    until("the import has ended", async () => {
      const { result } = await world.ask(`/imports/repos/${name}`);
      return result.status !== "importing" && result;
    });
  const refsOf = async (name: string) =>
    (await world.ask(`/imports/repos/${name}/refs`)).result.map(
      (ref: { name: string }) => ref.name,
    );

  it("bring branches and tags, and the default branch, and say how far they are", async () => {
    const { status, result } = await start("all", { url: `${origin}/repo.git`, depth: 1 });
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
    expect(events.map(({ event }) => event.type)).to.include("imported");
  });

  it("bring one branch where it is named, and may be read-only from then on", async () => {
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

  it("say why they have failed", async () => {
    answers.set("/private.git", { status: 401, headers: { "WWW-Authenticate": "Basic" } });
    answers.set("/moved.git", {
      status: 302,
      headers: { Location: `${origin}/repo.git/info/refs` },
    });
    const port = new URL(origin).port;
    const failures: [object, RegExp][] = [
      [{ url: `${origin}/private.git` }, /requires authentication/],
      [{ url: `${origin}/none.git` }, /not found/],
      [{ url: `${origin}/moved.git` }, /302|redirect/i],
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
  });

  it("let nobody write before they have ended", async () => {
    const { result } = await start("slow", { url: `${origin}/slow.git` });
    const work = await world.checkout();
    await work.commit("x");
    const pushed = await work.tryGit("push", world.remote(result), "main");
    expect(pushed.stderr).to.contain("409");
    const changes = [{ path: "a", content: "x" }];
    for (const refused of [
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

  it("refuse what is no https address, and a name that is taken", async () => {
    for (const url of [
      "http://example.com/x.git",
      "ssh://example.com/x.git",
      "git@example.com:x.git",
      "file:///etc",
      "ext::sh -c id",
      "--upload-pack=id",
      "https://user:secret@example.com/x.git",
      "https://example.com/a b",
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
    }
    const taken = await start("all", { url: `${origin}/repo.git` });
    expect([taken.status, taken.errors[0]?.code]).to.deep.equal([409, 10201]);
    const depth = await start("bad", { url: `${origin}/repo.git`, depth: 0 });
    expect(depth.errors[0]?.source?.pointer).to.equal("/depth");
  });
});
