import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { systemClock } from "../../../actors/runtime/lib/clock.ts";
import { repo as repoContract, repoTokenId } from "../../../schemas/repositories/repo.ts";
import { repoTokenHash } from "../repo-token-text.ts";
import { type GitGateway, GitWorld } from "../testing/git-world.ts";

const NOT_OPENED = "Invalid or expired token, or there is no such repository\n";

describe("access to a repository over git", function () {
  this.timeout(60_000);
  let world: GitWorld;
  let gateway: GitGateway;
  before(async () => {
    world = await GitWorld.start();
    gateway = await world.gateway();
  });
  after(() => world[Symbol.asyncDispose]());
  afterEach(() => expect(gateway.faults).to.deep.equal([]));

  async function ask(path: string, authorization?: string, service = "git-upload-pack") {
    const url = `${gateway.url}${path}/info/refs?service=${service}`;
    const response = await fetch(url, authorization ? { headers: { authorization } } : {});
    return { status: response.status, text: await response.text(), headers: response.headers };
  }
  const basic = (user: string, password: string) =>
    `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;

  it("answers 401 with WWW-Authenticate without a token, whether the repository exists or not", async () => {
    const repo = await world.repo();
    for (const path of [repo.path, repo.path.replace(repo.name, "none")]) {
      for (const shown of [undefined, "Bearer", basic("", ""), "Digest x"]) {
        const { status, headers } = await ask(path, shown);
        expect(status).to.equal(401);
        expect(headers.get("www-authenticate")).to.match(/^Basic realm="git"/);
      }
    }
  });

  it("accepts Bearer, and Basic with the token as password or as user name, with or without its expiry suffix", async () => {
    const repo = await world.repo();
    const token = await world.token(repo, "read");
    const secret = token.split("?")[0] ?? "";
    const shown = [
      `Bearer ${token}`,
      `bearer ${secret}`,
      basic("any", token),
      basic("", secret),
      basic(secret, ""),
    ];
    for (const authorization of shown)
      expect((await ask(repo.path, authorization)).status).to.equal(200);
  });

  it("answers 403 with a reason for an unknown or revoked token, another repository's token, and a missing permission", async () => {
    const repo = await world.repo();
    const other = await world.repo();
    const revoked = await world.token(repo, "write");
    await world.actors.call(repoContract, repo.id, "revokeToken", {
      id: repoTokenId(repoTokenHash(revoked)),
    });
    const unknown = `art_v1_${"0".repeat(40)}`;
    for (const token of [unknown, revoked, other.token]) {
      const { status, text } = await ask(repo.path, `Bearer ${token}`);
      expect([status, text]).to.deep.equal([403, NOT_OPENED]);
    }
    const reads = await world.token(repo, "read");
    const refused = await ask(repo.path, `Bearer ${reads}`, "git-receive-pack");
    expect(refused.status).to.equal(403);
    expect(refused.text).to.contain("can only read");
    const posted = await fetch(`${gateway.url}${repo.path}/git-receive-pack`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${reads}`,
        "Content-Type": "application/x-git-receive-pack-request",
      },
      body: "0000",
    });
    expect(posted.status).to.equal(403);
  });

  it("answers strangers the same whether the repository exists or not, for git and for large files", async () => {
    const repo = await world.repo();
    const importing = await world.repo();
    await world.actors.call(repoContract, importing.id, "setStatus", {
      status: "importing",
      failure: null,
    });
    const other = await world.repo();
    const paths = [repo.path, importing.path].flatMap((path) => [
      path,
      path.replace("/tests/r", "/tests/x"),
      path.replace("/tests/", "/none/"),
      path.replace("/git/", "/git/f"),
      path.replace("/tests/r", "/tests/_"),
    ]);
    const answers = paths.flatMap((path) =>
      [
        [`${path}/info/refs?service=git-upload-pack`],
        [`${path}/info/refs?service=git-receive-pack`],
        [`${path}/git-receive-pack`, "application/x-git-receive-pack-request"],
      ].map(async ([end, type]) => {
        const answer = await fetch(`${gateway.url}${end}`, {
          method: type ? "POST" : "GET",
          headers: {
            Authorization: `Bearer ${other.token}`,
            ...(type && { "Content-Type": type }),
          },
          ...(type && { body: "0000" }),
        });
        return `${answer.status} ${answer.headers.get("content-type")} ${await answer.text()}`;
      }),
    );
    expect([...new Set(await Promise.all(answers))]).to.deep.equal([
      `403 text/plain; charset=utf-8 ${NOT_OPENED}`,
    ]);
    const large = paths.map(async (path) => {
      const answer = await fetch(`${gateway.url}${path}/info/lfs/objects/batch`, {
        method: "POST",
        headers: {
          Authorization: `Bearer ${other.token}`,
          "Content-Type": "application/vnd.git-lfs+json",
        },
        body: JSON.stringify({ operation: "upload", objects: [{ oid: "0".repeat(64), size: 1 }] }),
      });
      return `${answer.status} ${JSON.parse(await answer.text()).message}`;
    });
    const [told = "", ...more] = [...new Set(await Promise.all(large))];
    expect(told).to.match(/^403 .*Invalid or expired token/);
    expect(more).to.deep.equal([]);
  });

  it("answers 403 to a revoked token at the next request, at any gateway", async () => {
    const repo = await world.repo();
    const gateways = [gateway, await world.gateway()];
    const statuses = (token: string) =>
      Promise.all(
        gateways.flatMap(({ url }) =>
          ["git-upload-pack", "git-receive-pack"].map(async (service) => {
            const asked = await fetch(`${url}${repo.path}/info/refs?service=${service}`, {
              headers: { Authorization: `Bearer ${token}` },
            });
            await asked.arrayBuffer();
            return asked.status;
          }),
        ),
      );
    for (let round = 0; round < 5; round++) {
      const token = await world.token(repo, "write");
      expect(await statuses(token)).to.deep.equal([200, 200, 200, 200]);
      const id = repoTokenId(repoTokenHash(token));
      await world.actors.call(repoContract, repo.id, "revokeToken", { id });
      expect(await statuses(token)).to.deep.equal([403, 403, 403, 403]);
    }
  });

  it("answers 403 to a token from the moment it expires", async () => {
    let skipped = 0;
    const clock = { ...systemClock, now: () => systemClock.now() + skipped };
    await using later = await GitWorld.start({ clock });
    const own = await later.gateway();
    const repo = await later.repo();
    const token = await later.token(repo, "read", 60);
    const { tokens } = await later.actors.call(repoContract, repo.id, "listTokens", {
      state: "active",
      offset: 0,
      limit: 1,
    });
    const status = async () => {
      const url = `${own.url}${repo.path}/info/refs?service=git-upload-pack`;
      const answer = await fetch(url, { headers: { Authorization: `Bearer ${token}` } });
      return [answer.status, answer.status === 200 ? "" : await answer.text()];
    };
    const [{ expiresAt } = { expiresAt: 0 }] = tokens;
    skipped = expiresAt - 10_000 - systemClock.now();
    expect(await status()).to.deep.equal([200, ""]);
    skipped = expiresAt - systemClock.now();
    expect(await status()).to.deep.equal([403, NOT_OPENED]);
    expect(own.faults).to.deep.equal([]);
  });

  it("makes the real git prompt for a missing password and show the reason of each refusal", async () => {
    const repo = await world.repo();
    const remote = (token: string) => gateway.remote(repo, token);
    const work = await world.checkout();
    await work.commit("first");
    const asked = join(world.folder, "asks");
    const script = `#!/bin/sh\necho "$1" >> "${asked}.told"\ncase $1 in User*) echo anybody ;; *) echo "${repo.token}" ;; esac\n`;
    await writeFile(asked, script, { mode: 0o755 });
    const bare = `${gateway.url}${repo.path}`;
    await work.git("-c", `core.askPass=${asked}`, "push", "-q", bare, "main");
    expect(await work.git("ls-remote", remote(repo.token), "main")).to.contain("refs/heads/main");

    const reads = await world.token(repo, "read");
    const cases: [string, string, RegExp][] = [
      ["no token", bare, /could not read|terminal prompts disabled/],
      [
        "unknown",
        remote("wrong"),
        /^remote: Invalid or expired token, or there is no such repository$/m,
      ],
      ["reads", remote(reads.split("?")[0] ?? ""), /^remote: .*can only read/m],
      [
        "missing",
        remote(repo.token).replace(repo.name, "none"),
        /^remote: .*or there is no such repository$/m,
      ],
    ];
    for (const [what, url, sentence] of cases) {
      const { code, stderr } = await work.tryGit("push", url, "main:other");
      expect(code, what).to.not.equal(0);
      expect(stderr, what).to.match(sentence);
    }
  });

  it("answers 403 for an unknown repository, another account's repository and an invalid name", async () => {
    const repo = await world.repo();
    const paths = [
      repo.path.replace(repo.name, "none"),
      repo.path.replace("a".repeat(32), "b".repeat(32)),
      repo.path.replace("tests", "other"),
      repo.path.replace("tests", "..%2f.."),
      repo.path.replace(repo.name, "%00"),
    ];
    for (const path of paths)
      expect((await ask(path, `Bearer ${repo.token}`)).status).to.equal(403);
    expect((await ask(`${repo.path}.git`, `Bearer ${repo.token}`)).status).to.equal(403);
  });

  it("serves git and large files also at the address without .git", async () => {
    const repo = await world.repo();
    const remote = gateway.remote(repo).replace(/\.git$/, "");
    const work = await world.checkout();
    const head = await work.commit("first");
    await work.git("push", "-q", remote, "main");
    const copy = await world.checkout();
    await copy.git("clone", "-q", remote, "copy");
    expect(await copy.git("-C", "copy", "rev-parse", "HEAD")).to.equal(head);
    const answer = await fetch(
      `${gateway.url}${repo.path.replace(/\.git$/, "")}/info/lfs/objects/batch`,
      {
        method: "POST",
        headers: {
          Authorization: `Bearer ${repo.token}`,
          "Content-Type": "application/vnd.git-lfs+json",
        },
        body: JSON.stringify({ operation: "upload", objects: [{ oid: "0".repeat(64), size: 1 }] }),
      },
    );
    expect(answer.status).to.equal(200);
    await answer.arrayBuffer();
  });

  it("finds a repository by its name in any case, and never the previous owner of that name", async () => {
    const repo = await world.repo();
    const path = repo.path.replace(repo.name, repo.name.toUpperCase()).replace("tests", "TESTS");
    expect((await ask(path, `Bearer ${repo.token}`)).status).to.equal(200);
    await world.actors.call(repoContract, repo.id, "remove", {});
    expect((await ask(path, `Bearer ${repo.token}`)).status).to.equal(403);
  });

  it("answers 403 to the protocol without a service, 415 to another body type, and 404 to other addresses", async () => {
    const repo = await world.repo();
    const headers = { Authorization: `Bearer ${repo.token}` };
    const at = (end: string, init = {}) =>
      fetch(`${gateway.url}${repo.path}${end}`, { headers, ...init });
    expect((await at("/info/refs")).status).to.equal(403);
    expect((await at("/info/refs?service=git-upload-archive")).status).to.equal(403);
    expect((await at("/objects/info/packs")).status).to.equal(404);
    expect((await at("/HEAD")).status).to.equal(404);
    const posted = await at("/git-upload-pack", { method: "POST", body: "0000" });
    expect(posted.status).to.equal(415);
  });

  it("answers 429 to a client address that tries many unknown tokens", async () => {
    const own = await world.gateway();
    const repo = await world.repo();
    let status = 0;
    for (let i = 0; i < 101; i++) {
      const url = `${own.url}${repo.path}/info/refs?service=git-upload-pack`;
      const headers = { Authorization: `Bearer art_v1_${i}` };
      status = (await fetch(url, { headers })).status;
    }
    expect(status).to.equal(429);
  });
});
