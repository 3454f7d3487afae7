import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:https";
import { join, normalize } from "node:path";
import { expect } from "chai";
import { createAddressPolicy } from "../../../actors/egress/address-policy.ts";
import { EgressAgents, egressFetch } from "../../../actors/egress/egress-fetch.ts";
import { createEgressGuard } from "../../../actors/egress/egress-guard.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { GIT_SIZES } from "../../../schemas/repositories/git-sizes.ts";
import { IMPORT_REDIRECTS_MAX } from "../../../schemas/repositories/limits.ts";
import { repo } from "../../../schemas/repositories/repo.ts";
import { selfSignedCertificate } from "../../../scripts/testing/self-signed-certificate.ts";
import { ArtifactsWorld } from "../../testing/artifacts-world.ts";
import { runGit } from "../process/git-process.ts";
import { readAuthorities } from "./git-authorities.ts";
import { pinTo } from "./import-origin.ts";
import { type ImportParts, importRepo } from "./import-repo.ts";

const FIRST = "info/refs?service=git-upload-pack";
const PAUSES_MS = [1, 1, 1];

type Answer = (times: number) =>
  | {
      status: number;
      headers?: Record<string, string>;
      body?: string;
    }
  /** The host never responds. */
  | "none"
  | undefined;

describe("the origin of an import", function () {
  this.timeout(120_000);
  let world: ArtifactsWorld;
  let server: Server;
  let importing: ImportParts;
  let origin: string;
  /**
   * Responses of the origin's host by the start of the path, computed from the number of earlier requests for the
   * same URL. For other paths the host sends the repository's files.
   */
  const answers = new Map<string, Answer>();
  const requested: string[] = [];
  /** Connections to the origin's host, also those without a request. */
  let connections = 0;
  const large = Buffer.from("a large file");
  const oid = createHash("sha256").update(large).digest("hex");
  before(async () => {
    world = await ArtifactsWorld.start();
    const work = await world.checkout();
    const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${large.length}\n`;
    await work.commit(pointer, "large.bin");
    const served = join(world.folder, "served");
    await mkdir(served);
    await work.git("clone", "-q", "--mirror", ".", join(served, "repo.git"));
    await work.git("--git-dir", join(served, "repo.git"), "update-server-info");
    const certificate = selfSignedCertificate("localhost");
    server = createServer(certificate, (request, response) => {
      const { url = "/" } = request;
      const times = requested.filter((path) => path === url).length;
      requested.push(url);
      const answer = [...answers].find(([prefix]) => url.startsWith(prefix))?.[1](times);
      if (answer === "none") return;
      if (answer) return void response.writeHead(answer.status, answer.headers).end(answer.body);
      readFile(join(served, normalize(new URL(url, "https://localhost").pathname))).then(
        (content) => response.end(content),
        () => response.writeHead(404).end(),
      );
    }).listen(0, "127.0.0.1");
    server.on("connection", () => {
      connections += 1;
    });
    await once(server, "listening");
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    origin = `https://localhost:${address.port}`;
    const policy = createAddressPolicy({ allow: ["127.0.0.0/8"] });
    const lookup = async (name: string) => (name === "localhost" ? ["127.0.0.1"] : ["10.0.0.1"]);
    const guard = createEgressGuard({ policy, lookup });
    const file = join(world.folder, "authorities.pem");
    await writeFile(file, certificate.cert);
    const authorities = readAuthorities(file) ?? "";
    const agents = new EgressAgents({ guard, ca: authorities });
    importing = {
      ...world.git.parts,
      resolve: (target, signal, owner) => guard.check(target, { signal, owner }),
      authorities,
      fetch: (url, options) => egressFetch(url, { agents, ...options }),
      retryPausesMs: PAUSES_MS,
    };
  });
  after(async () => {
    server.closeAllConnections();
    server.close();
    await world[Symbol.asyncDispose]();
  });
  beforeEach(() => {
    answers.clear();
    requested.length = 0;
    connections = 0;
  });

  let imports = 0;
  /**
   * Runs an import of a path of the origin's host, or of a whole address. Returns its text about missing content or
   * the reason of its failure, the number of imported refs, and the default branch.
   */
  async function bring(path: string, parts: Partial<ImportParts> = {}) {
    const name = `import-${imports++}`;
    const address = { accountId: world.accountId, namespace: "imports", name };
    const { id } = await world.opened.repositories.create(address);
    const importingNow = { status: "importing" as const, failure: null };
    await world.world.client.call(repo, id, "setStatus", importingNow);
    const url = path.startsWith("/") ? `${origin}${path}` : path;
    const asked = { id, address, url, branch: null, depth: null };
    const { signal } = new AbortController();
    const run = importRepo(
      { ...importing, ...parts },
      { ...asked, readOnly: false },
      signal,
      () => {},
    );
    const said = await run.catch((error: unknown) => {
      if (error instanceof ActorError) return `${error.code}: ${error.message}`;
      throw error;
    });
    const { result } = await world.ask(`/imports/repos/${name}/refs`);
    const { default_branch: branch } = (await world.ask(`/imports/repos/${name}`)).result;
    return { said, refs: result.length, branch };
  }
  const redirectTo = (Location: string, status = 301) =>
    answers.set("/old.git/", () => ({
      status,
      headers: { Location },
    }));

  for (const status of [301, 308]) {
    it(`is followed over redirects of its first request (${status})`, async () => {
      redirectTo(`${origin}/renamed.git/${FIRST}`, status);
      answers.set("/renamed.git/", () => ({
        status,
        headers: { Location: `/repo.git/${FIRST}` },
      }));
      expect((await bring("/old.git")).refs).to.equal(1);
      const rest = requested.slice(requested.indexOf(`/repo.git/${FIRST}`));
      expect(rest.filter((path) => !path.startsWith("/repo.git"))).to.deep.equal([]);
    });
  }

  it("is not followed to an internal address, over http, with a password, or to another path", async () => {
    const { port } = new URL(origin);
    const refused: [string, RegExp][] = [
      [`https://inside.example:${port}/repo.git/${FIRST}`, /not one this service fetches/],
      [`http://localhost:${port}/repo.git/${FIRST}`, /only to https addresses/],
      [`https://user:secret@localhost:${port}/repo.git/${FIRST}`, /only to https addresses/],
      [`https://localhost.:${port}/repo.git/${FIRST}`, /only to https addresses/],
      [`https://localhost:22/repo.git/${FIRST}`, /not one this service fetches/],
      [`${origin}/repo.git`, /which is no address of a repository/],
    ];
    for (const [location, reason] of refused) {
      redirectTo(location);
      const { said, refs } = await bring("/old.git");
      expect(said, location).to.match(reason);
      expect(said, location).not.to.contain("secret");
      expect(refs, location).to.equal(0);
    }
  });

  it("is refused without a connection if git would read another host than the guard", async () => {
    const { port } = new URL(origin);
    // The guard checks "public.example", whose address is allowed. Git would connect to 127.0.0.1.
    const resolve = async () => ["127.0.0.2"];
    const { said, refs } = await bring(`https://public.example\\@127.0.0.1:${port}/repo.git`, {
      resolve,
    });
    expect([connections, refs]).to.deep.equal([0, 0]);
    expect(said).to.match(/^address_refused: .*HTTPS address of a git repository/);
  });

  it("is refused at a blocked port", async () => {
    const { said } = await bring("https://localhost:22/repo.git");
    expect(said).to.match(/^address_refused: .*not one this service fetches/);
  });

  it("is only at the checked address, whatever host git reads", async () => {
    const { port: text } = new URL(origin);
    const port = Number(text);
    const connect = async (host: string, address: string, url: string) => {
      connections = 0;
      await runGit(["ls-remote", "--", url], {
        cwd: world.folder,
        environment: { GIT_ALLOW_PROTOCOL: "https" },
        config: pinTo(address, { host, port }),
        signal: AbortSignal.timeout(60_000),
      });
      return connections;
    };
    const elsewhere = `https://public.example\\@127.0.0.1:${port}/repo.git`;
    expect(await connect("public.example", "127.0.0.2", elsewhere)).to.equal(0);
    // curl would read "-a.example" in a pin as the command to remove the pin of "a.example".
    for (const host of ["public.example", "-a.example", "[::1]"]) {
      const url = `https://${host}:${port}/repo.git`;
      expect(await connect(host, "127.0.0.1", url), host).to.be.above(0);
    }
  });

  it("is not left for another host that it names for missing objects", async () => {
    const { port } = new URL(origin);
    answers.set("/repo.git/objects/info/http-alternates", () => ({
      status: 200,
      body: `https://127.0.0.1:${port}/other.git/objects\n${origin}/other.git/objects\n`,
    }));
    answers.set("/repo.git/objects/", () => ({ status: 404 }));
    expect((await bring("/repo.git")).refs).to.equal(0);
    expect(requested).to.include("/repo.git/objects/info/http-alternates");
    expect(requested.filter((path) => !path.startsWith("/repo.git"))).to.deep.equal([]);
  });

  it("has one of its branches as default branch, also if its HEAD names none of them", async () => {
    const work = await world.checkout();
    const first = await work.commit("1");
    for (const branch of ["a", "b"]) await work.git("branch", branch);
    const tip = await work.commit("2");
    await work.git("branch", "-m", "main", "trunk");
    const folder = join(world.folder, "served", "heads.git");
    await work.git("clone", "-q", "--mirror", ".", folder);
    const headAt = async (head: string) => {
      await writeFile(join(folder, "HEAD"), `${head}\n`);
      await work.git("--git-dir", folder, "update-server-info");
      return (await bring("/heads.git")).branch;
    };
    expect(await headAt("ref: refs/heads/b")).to.equal("b");
    expect(await headAt("ref: refs/heads/gone")).to.equal("a");
    expect(await headAt(tip)).to.equal("trunk");
    await work.git("--git-dir", folder, "update-ref", "refs/heads/master", first);
    expect(await headAt("ref: refs/heads/gone")).to.equal("master");
    expect(await headAt(tip)).to.equal("trunk");
  });

  it("is left when its files together take more of the disk than a repository may have, however small each is", async () => {
    const work = await world.checkout();
    await work.git("config", "core.compression", "0");
    // Each commit is a pack of its own, so git fetches one file after another. The host never sends the last one.
    const packs = 12;
    for (let i = 0; i < packs; i++) {
      await work.commit(randomBytes(900_000).toString("hex"), `file-${i}`);
      await work.git("repack", "-dq");
    }
    await work.git("update-server-info");
    const folder = join(world.folder, "served", "many.git");
    await cp(join(work.folder, ".git"), folder, { recursive: true });
    answers.set("/many.git/objects/pack/pack-", () => {
      const fetched = requested.filter((path) => path.endsWith(".pack"));
      return fetched.at(-1) === requested.at(-1) && fetched.length >= packs ? "none" : undefined;
    });
    const sizes = { ...GIT_SIZES, repoBytes: 1_000_000 };
    const { said, refs } = await bring("/many.git", { sizes });
    expect(said).to.match(
      /^limit_reached: Cannot import: it takes more than 18777216 bytes on disk/,
    );
    expect(refs).to.equal(0);
  });

  it("is followed over IMPORT_REDIRECTS_MAX redirects and not one more", async () => {
    const chain = (redirects: number) => {
      answers.set("/hop-", (times) => {
        const hop = Number(/^\/hop-(\d+)/.exec(requested.at(-1) ?? "")?.[1]);
        expect(times).to.be.below(3);
        const next = hop === redirects ? `/repo.git/${FIRST}` : `/hop-${hop + 1}.git/${FIRST}`;
        return { status: 302, headers: { Location: next } };
      });
    };
    chain(IMPORT_REDIRECTS_MAX);
    expect((await bring("/hop-1.git")).refs).to.equal(1);
    requested.length = 0;
    chain(IMPORT_REDIRECTS_MAX + 1);
    expect((await bring("/hop-1.git")).said).to.match(
      /^too_many_redirects: .* redirects more than/,
    );
  });

  it("is not followed over a redirect of a later request", async () => {
    answers.set("/repo.git/objects/", () => ({
      status: 302,
      headers: { Location: `${origin}/other.git` },
    }));
    const { said, refs } = await bring("/repo.git");
    expect(said).to.match(/^upstream_unavailable: /);
    expect(refs).to.equal(0);
    expect(requested.some((path) => path.startsWith("/other.git"))).to.equal(false);
  });

  it("is retried after a 5xx, once after each pause, and no more", async () => {
    const failing = (failures: number) =>
      answers.set(`/repo.git/${FIRST}`, (times) =>
        times < failures ? { status: 503 } : undefined,
      );
    failing(PAUSES_MS.length);
    expect((await bring("/repo.git")).refs).to.equal(1);
    requested.length = 0;
    failing(PAUSES_MS.length + 1);
    const { said, refs } = await bring("/repo.git");
    expect(said).to.match(/^upstream_unavailable: .*503/);
    expect(refs).to.equal(0);
    expect(requested).to.have.length(PAUSES_MS.length + 1);
  });

  it("is retried after a 5xx during the fetch, and never after a 4xx", async () => {
    let isDown = true;
    answers.set("/repo.git/objects/", () => {
      if (!isDown) return undefined;
      isDown = false;
      return { status: 502 };
    });
    expect((await bring("/repo.git")).refs).to.equal(1);
    requested.length = 0;
    answers.set("/gone.git/", () => ({ status: 410 }));
    expect((await bring("/gone.git")).refs).to.equal(0);
    expect(requested).to.have.length(1);
  });

  it("is retried for large files after a 5xx", async () => {
    const download = { href: `${origin}/large-file` };
    const objects = [{ oid, size: large.length, actions: { download } }];
    answers.set("/repo.git/info/lfs/objects/batch", (times) =>
      times === 0 ? { status: 500 } : { status: 200, body: JSON.stringify({ objects }) },
    );
    answers.set("/large-file", (times) =>
      times === 0 ? { status: 503 } : { status: 200, body: large.toString() },
    );
    expect(await bring("/repo.git")).to.deep.equal({ said: null, refs: 1, branch: "main" });
  });
});
