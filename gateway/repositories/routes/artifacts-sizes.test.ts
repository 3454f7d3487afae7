import { createHash, randomBytes } from "node:crypto";
import { expect } from "chai";
import { until } from "../../../scripts/testing/until.ts";
import { ArtifactsWorld } from "../../testing/artifacts-world.ts";
import type { Checkout } from "../testing/git-world.ts";

const FILE_BYTES = 300_000;
const REPO_BYTES = 1_000_000;

describe("configured size limits", function () {
  this.timeout(180_000);
  let world: ArtifactsWorld;
  before(async () => {
    world = await ArtifactsWorld.start({ sizes: { fileBytes: FILE_BYTES, repoBytes: REPO_BYTES } });
  });
  after(() => world[Symbol.asyncDispose]());
  afterEach(() => expect(world.faults).to.deep.equal([]));

  const create = async (name: string) => (await world.post("/sizes/repos", { name })).result;
  async function pushed(work: Checkout, remote: string) {
    const { code, stderr } = await work.tryGit("push", remote, "main");
    return { code, stderr };
  }
  const put = (name: string, content: Buffer, path = "file") =>
    world.post(`/sizes/repos/${name}/commits`, {
      message: "x",
      changes: [{ path, base64: content.toString("base64") }],
    });

  it("apply to each file of a push, and git shows the refusal", async () => {
    const remote = world.remote(await create("files"));
    const work = await world.checkout();
    await work.commit("x".repeat(FILE_BYTES));
    expect((await pushed(work, remote)).code).to.equal(0);
    await work.commit("x".repeat(FILE_BYTES + 1));
    const { code, stderr } = await pushed(work, remote);
    expect(code).to.not.equal(0);
    expect(stderr.replaceAll("\n", " ")).to.contain(
      `the file "file.txt" has ${FILE_BYTES + 1} bytes, more than ${FILE_BYTES} (TRUNKLINE_GIT_FILE_BYTES); Git LFS`,
    );
  });

  it("name the path of a too large file in an older commit of the push", async () => {
    const remote = world.remote(await create("paths"));
    const work = await world.checkout();
    await work.commit("first");
    expect((await pushed(work, remote)).code).to.equal(0);
    await work.git("checkout", "-q", "-b", "large");
    await work.commit("x".repeat(FILE_BYTES + 1), "data/with space/big.bin");
    await work.commit("small again", "data/with space/big.bin");
    const { code, stderr } = await work.tryGit("push", remote, "large");
    expect(code).to.not.equal(0);
    expect(stderr).to.contain('git lfs migrate import --include="data/with space/big.bin"');
  });

  it("apply to the whole repository: pushes, commits and large files", async () => {
    const made = await create("all");
    const work = await world.checkout();
    for (let i = 0; i < 3; i++) {
      const blob = await work.object("blob", randomBytes(FILE_BYTES));
      await work.git("update-index", "--add", "--cacheinfo", `100644,${blob},f${i}`);
      await work.git("commit", "-q", "-m", `${i}`);
    }
    expect((await pushed(work, world.remote(made))).code).to.equal(0);
    await work.git("commit", "-q", "--allow-empty", "-m", "small");
    expect((await pushed(work, world.remote(made))).code).to.equal(0);
    const blob = await work.object("blob", randomBytes(200_000));
    await work.git("update-index", "--add", "--cacheinfo", `100644,${blob},more`);
    await work.git("commit", "-q", "-m", "more");
    const { code, stderr } = await pushed(work, world.remote(made));
    expect(code).to.not.equal(0);
    const limit = `and may have ${REPO_BYTES} (TRUNKLINE_GIT_REPO_BYTES)`;
    const usage = /the repository would be too large: it has [1-9]\d* bytes /;
    expect(stderr).to.match(usage).and.to.contain(limit);
    const committed = await put("all", randomBytes(200_000));
    expect([committed.status, committed.errors[0]?.code]).to.deep.equal([507, 2008]);
    // Git checks a commit with such a path, and finds the limit earlier.
    const checked = await put("all", randomBytes(200_000), "größer");
    expect([checked.status, checked.errors[0]?.code]).to.deep.equal([507, 2008]);
    expect(checked.errors[0]?.message).to.match(usage).and.to.contain(limit);
    expect(committed.errors[0]?.message).to.match(usage).and.to.contain(limit);
    expect((await put("all", randomBytes(1_000))).status).to.equal(201);
    const [told] = await askLfs(made, 200_000);
    expect(told?.error?.code).to.equal(507);
    expect(told?.error?.message).to.match(usage).and.to.contain(limit);
  });

  it("apply to files of a commit by REST, text and binary", async () => {
    await create("commits");
    expect((await put("commits", Buffer.alloc(FILE_BYTES))).status).to.equal(201);
    for (const change of [
      { base64: Buffer.alloc(FILE_BYTES + 1).toString("base64") },
      { content: "x".repeat(FILE_BYTES + 1) },
    ]) {
      const changes = [{ path: "file", ...change }];
      const past = await world.post("/sizes/repos/commits/commits", { message: "x", changes });
      expect(past.status).to.equal(400);
      expect(past.errors[0]?.message)
        .to.contain(`Expected at most ${FILE_BYTES} bytes`)
        .and.to.contain('the file "file" has')
        .and.to.contain("(TRUNKLINE_GIT_FILE_BYTES); Git LFS");
    }
  });

  it("allow a large file half of the repository's limit", async () => {
    const made = await create("large");
    const [atLimit] = await askLfs(made, REPO_BYTES / 2);
    expect(atLimit?.actions).to.have.property("upload");
    const [past] = await askLfs(made, REPO_BYTES / 2 + 1);
    expect(past?.error).to.deep.equal({
      code: 422,
      message: `Expected at most ${REPO_BYTES / 2} bytes`,
    });
  });
});

const ACCOUNT_BYTES = 4_000_000;

describe("stored bytes of an account", function () {
  this.timeout(180_000);
  let world: ArtifactsWorld;
  before(async () => {
    world = await ArtifactsWorld.start({ sizes: { accountBytes: ACCOUNT_BYTES } });
  });
  after(() => world[Symbol.asyncDispose]());
  afterEach(() => expect(world.faults).to.deep.equal([]));

  const stored = async () => {
    const response = await fetch(`${world.url}/v4/accounts/${world.accountId}/artifacts/usage`, {
      headers: { Authorization: `Bearer ${world.token}` },
    });
    const { result } = (await response.json()) as {
      result: { bytes: number; bytes_max: number };
    };
    expect(result.bytes_max).to.equal(ACCOUNT_BYTES);
    return result.bytes;
  };
  const create = async (name: string) => (await world.post("/stored/repos", { name })).result;
  async function commitOf(work: Checkout, bytes: number): Promise<void> {
    const blob = await work.object("blob", randomBytes(bytes));
    await work.git("update-index", "--add", "--cacheinfo", `100644,${blob},f${bytes}`);
    await work.git("commit", "-q", "-m", `${bytes}`);
  }

  it("are counted once per pack, limited whatever their source, and shown", async () => {
    expect(await stored()).to.equal(0);
    const made = await create("first");
    const work = await world.checkout();
    await commitOf(work, 1_000);
    await work.git("push", "-q", world.remote(made), "main");
    const small = await stored();
    expect(small).to.be.within(1_000, 5_000);
    await commitOf(work, 2_000_000);
    await work.git("push", "-q", world.remote(made), "main");
    await until("the large pack is counted", async () => (await stored()) > 2_000_000);
    const before = await stored();
    expect(before).to.be.within(small + 2_000_000, small + 2_005_000);
    const fork = await world.post("/stored/repos/first/fork", { name: "fork" });
    expect(fork.status).to.equal(201);
    expect(await stored()).to.equal(before);

    // Two pushes, of which only the first to arrive fits.
    const others = await Promise.all(
      [1, 2].map(async (number) => {
        const repo = await create(`both-${number}`);
        const from = await world.checkout();
        await commitOf(from, 1_500_000);
        return await from.tryGit("push", world.remote(repo), "main");
      }),
    );
    expect(others.map(({ code }) => code).sort()).to.deep.equal([0, 1]);
    const full = `bytes in repositories and may have ${ACCOUNT_BYTES} (TRUNKLINE_GIT_BYTES_PER_ACCOUNT)`;
    expect(others.find(({ code }) => code !== 0)?.stderr).to.contain(full);

    await until("both are settled", async () => (await stored()) > before + 1_500_000);
    await commitOf(work, 600_000);
    const refused = await work.tryGit("push", world.remote(made), "main");
    expect(refused.code).to.not.equal(0);
    expect(refused.stderr).to.contain(full);
    const changes = [{ path: "a", base64: randomBytes(600_000).toString("base64") }];
    const commit = await world.post("/stored/repos/first/commits", { message: "x", changes });
    expect(commit.status).to.equal(507);
    expect(commit.errors[0]?.message).to.contain(full);
    const [told] = await askLfs(made, 600_000);
    expect(told?.error?.code).to.equal(507);
    expect(told?.error?.message).to.contain(`may have ${ACCOUNT_BYTES} bytes in repositories`);
    const content = randomBytes(600_000);
    const oid = createHash("sha256").update(content).digest("hex");
    const put = await fetch(`${made.remote}/info/lfs/objects/${oid}/${content.length}`, {
      method: "PUT",
      headers: { Authorization: `Basic ${btoa(`x:${made.token.split("?")[0]}`)}` },
      body: content,
    });
    expect(put.status).to.equal(507);
    expect(((await put.json()) as { message: string }).message).to.contain(full);
    expect((await askLfs(made, 1_000))[0]?.actions).to.have.property("upload");
  });
});

async function askLfs(made: { remote: string; token: string }, size: number) {
  const oid = createHash("sha256").update(`${size}`).digest("hex");
  const response = await fetch(`${made.remote}/info/lfs/objects/batch`, {
    method: "POST",
    headers: {
      Authorization: `Basic ${btoa(`x:${made.token.split("?")[0]}`)}`,
      "Content-Type": "application/vnd.git-lfs+json",
    },
    body: JSON.stringify({ operation: "upload", objects: [{ oid, size }] }),
  });
  const { objects } = (await response.json()) as {
    objects: { actions?: object; error?: { code: number; message: string } }[];
  };
  return objects;
}
