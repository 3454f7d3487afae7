import { expect } from "chai";
import { AppPlatform } from "../../scripts/testing/app-platform.ts";
import { until } from "../../scripts/testing/until.ts";

/** Each path is one step of the test, which runs inside the app. */
const BUNDLE = `
import { ApiError, ArtifactsError } from "trunkline/agents";

const text = async (blob) => (blob === null ? null : await blob.text());
const refused = (work) => work().then(
  () => "done",
  (error) => ({
    isOurs: error instanceof ApiError,
    name: error.name,
    code: error.code,
    numericCode: error.numericCode,
    status: error.status,
    pointer: error.pointer,
    message: error.message,
  }),
);

const STEPS = {
  async commit({ ARTIFACTS }) {
    const made = await ARTIFACTS.create("notes", { description: "Notes", setDefaultBranch: "trunk" });
    using repo = await ARTIFACTS.get("notes");
    const commit = await repo.createCommit({
      message: "First",
      expected: null,
      changes: [{ path: "dir/ä b.txt", content: "hello\\n" }, { path: "data", base64: "AP8=" }],
    });
    const tree = await repo.readTree(commit.treeHash);
    const data = tree.find(({ name }) => name === "data");
    return {
      made,
      info: await repo.info(),
      commit,
      log: await repo.log({ limit: 5 }),
      again: await repo.readCommit(commit.hash),
      file: await text(await repo.readFile({ ref: "trunk", path: "dir/ä b.txt" })),
      raw: (await repo.readRaw({ ref: "refs/heads/trunk", path: "dir/ä b.txt" })).type,
      blob: [...new Uint8Array(await (await repo.readBlob(data.hash)).arrayBuffer())],
      refs: await repo.refs(),
      archive: (await repo.archive("trunk")).size > 100,
      none: [
        await repo.readFile({ ref: "trunk", path: "nope" }),
        await repo.readCommit("1".repeat(40)),
        await repo.readTree("1".repeat(40)),
        await repo.readBlob("1".repeat(40)),
      ],
      noRef: await refused(() => repo.log({ ref: "nope" })),
      moved: await refused(() => repo.createCommit({
        message: "m", expected: null, changes: [{ path: "a", content: "" }],
      })),
    };
  },
  async change({ ARTIFACTS }) {
    const repo = await ARTIFACTS.get("notes");
    const before = (await repo.info()).defaultBranch;
    const base = (await repo.log())[0].hash;
    await repo.createCommit({ message: "Second", changes: [{ path: "data", delete: true }] });
    const diff = await repo.diff(base, "trunk");
    const changed = await repo.update({ readOnly: true, protectedRefs: ["refs/heads/trunk"] });
    await repo.prune();
    const forked = await repo.fork("copy", { defaultBranchOnly: true });
    const token = await repo.createToken("read", 600);
    const listed = await repo.listTokens({ state: "active", perPage: 10 });
    return {
      before, diff, changed, forked, token, listed,
      revoked: [await repo.revokeToken(token.id), await repo.revokeToken(token.id.replace(/./g, "0"))],
    };
  },
  async list({ ARTIFACTS }) {
    const first = await ARTIFACTS.list({ sort: "name", direction: "asc", limit: 1 });
    const { cursor } = first;
    if (cursor === undefined) return { first };
    const sorted = { sort: "name", direction: "asc", limit: 1, cursor };
    return { first, second: await ARTIFACTS.list(sorted) };
  },
  async remove({ ARTIFACTS }) {
    const found = (await ARTIFACTS.list({ search: "cop" })).repos.map(({ name }) => name);
    return { found, deleted: [await ARTIFACTS.delete("copy"), await ARTIFACTS.delete("never")] };
  },
  async namespaces({ ARTIFACTS }) {
    const other = ARTIFACTS.in("other");
    const none = (await other.list()).repos;
    const made = await ARTIFACTS.namespaces.create("other");
    await other.create("first");
    const listed = await ARTIFACTS.namespaces.list();
    await other.delete("first");
    return {
      none, made, own: [ARTIFACTS.namespace, other.namespace],
      names: listed.namespaces.map(({ namespace }) => namespace),
      count: (await ARTIFACTS.namespaces.get("other")).repoCount,
      deleted: [await ARTIFACTS.namespaces.delete("other"), await ARTIFACTS.namespaces.delete("other")],
    };
  },
  async outside({ ARTIFACTS, OTHER }) {
    await OTHER.create("hidden");
    const { id } = await (await OTHER.get("hidden")).createToken("write");
    const asked = async (path, method = "GET", json) => {
      const headers = { "content-type": "application/json" };
      const body = json && JSON.stringify(json);
      return (await ARTIFACTS.fetch(path, { method, headers, body })).status;
    };
    const there = "/artifacts/namespaces/other";
    const listed = await (await ARTIFACTS.fetch("/artifacts/namespaces")).json();
    return {
      statuses: [
        await asked(there),
        await asked(there + "/repos"),
        await asked(there + "/repos/hidden"),
        await asked("/artifacts/namespaces/OTHER/repos/hidden"),
        await asked("/artifacts/namespaces/space%2f..%2fother/repos/hidden"),
        await asked("/artifacts/namespaces/space/../other/repos/hidden"),
        await asked(there + "/repos/hidden", "PATCH", { description: "taken" }),
        await asked(there + "/repos", "POST", { name: "made" }),
        await asked(there + "/repos/hidden/fork", "POST", { name: "made" }),
        await asked(there + "/repos/hidden/log"),
        await asked(there + "/tokens", "POST", { repo: "hidden", scope: "write" }),
        await asked(there + "/tokens/" + id, "DELETE"),
        await asked(there + "/repos/hidden", "DELETE"),
        await asked(there, "DELETE"),
        await asked("/artifacts/namespaces", "POST", { namespace: "made" }),
        await asked("/"),
      ],
      own: [
        await asked("/artifacts/namespaces/space/repos"),
        await asked("/artifacts/namespaces/SPACE/repos"),
        await asked("/artifacts/usage"),
        // A token of another namespace gets the same answer as a token that does not exist.
        await asked("/artifacts/namespaces/space/tokens/" + id, "DELETE"),
      ],
      listed: listed.result.map(({ namespace }) => namespace),
      unbound: [
        await refused(() => ARTIFACTS.in("third").create("made")),
        await refused(() => ARTIFACTS.in("third").list()),
        await refused(() => ARTIFACTS.namespaces.create("third")),
        await refused(() => ARTIFACTS.namespaces.delete("third")),
      ].map(({ message }) => message),
      bound: (await ARTIFACTS.in("other").list()).repos.length,
      deleted: [await OTHER.delete("hidden"), await OTHER.namespaces.delete("other")],
    };
  },
  async importing({ ARTIFACTS }) {
    const source = { url: "https://nowhere.invalid/x.git", branch: "main", depth: 1 };
    return ARTIFACTS.import({ source, target: { name: "theirs", opts: { readOnly: true } } });
  },
  async imported({ ARTIFACTS }) {
    return (await ARTIFACTS.get("theirs")).info();
  },
  async refusals({ ARTIFACTS, BROWSER }) {
    return [
      await refused(() => ARTIFACTS.get("never")),
      await refused(() => ARTIFACTS.create("notes")),
      await refused(() => ARTIFACTS.create("-")),
      await refused(() => ARTIFACTS.import({ source: { url: "http://x/" }, target: { name: "in" } })),
      await refused(() => BROWSER.pdf({})),
      await refused(() => BROWSER.getCrawl("nothing")),
    ];
  },
  async elsewhere({ ARTIFACTS }) {
    const answers = [];
    for (const path of ["/../../accounts", "//elsewhere/x", "http://elsewhere/", "/tokens", "/browser-rendering/usage"]) {
      const answer = await ARTIFACTS.fetch(path).catch((error) => ({ status: error.refusal ?? error.name }));
      answers.push(answer.status);
    }
    return answers;
  },
  async git({ ARTIFACTS, BROWSER }) {
    const { token } = await ARTIFACTS.create("by-git");
    const own = "/git/" + ARTIFACTS.namespace;
    const list = "info/refs?service=git-upload-pack";
    const authorization = "Basic " + btoa("x:" + token.split("?")[0]);
    const statuses = [];
    for (const [binding, path, headers] of [
      [ARTIFACTS, own + "/by-git.git/" + list, { authorization }],
      [ARTIFACTS, "http://trunkline" + own + "/by-git/" + list, { authorization }],
      [ARTIFACTS, own + "/by-git.git/" + list, {}],
      [ARTIFACTS, "/git/elsewhere/by-git.git/" + list, { authorization }],
      [ARTIFACTS, own + "/../elsewhere/by-git.git/" + list, { authorization }],
      [ARTIFACTS, own + "%2F..%2Felsewhere/by-git.git/" + list, { authorization }],
      [ARTIFACTS, "/git", { authorization }],
      [BROWSER, own + "/by-git.git/" + list, { authorization }],
    ]) {
      const answer = await binding.fetch(path, { headers }).catch((error) => ({ status: error.refusal ?? error.name }));
      statuses.push(answer.status);
    }
    return statuses;
  },
  async pdf({ BROWSER }) {
    const bytes = await BROWSER.pdf({ html: "<h1>From an app</h1>", pdfOptions: { format: "a4" } });
    return { begins: new TextDecoder().decode(bytes.subarray(0, 5)), bytes: bytes.length, usage: await BROWSER.usage() };
  },
  async screenshot({ BROWSER }) {
    const page = { html: "<p style='width:30px;height:20px'>From an app</p>", selector: "p" };
    const picture = await BROWSER.screenshot(page);
    const text = await BROWSER.screenshot({ ...page, screenshotOptions: { encoding: "base64" } });
    const size = new DataView(picture.buffer);
    return {
      begins: [...picture.subarray(0, 4)],
      size: [size.getUint32(16), size.getUint32(20)],
      same: Buffer.from(text, "base64").equals(picture),
      missing: await refused(() => BROWSER.screenshot({ ...page, selector: "#none" })),
    };
  },
  async read({ BROWSER }) {
    const page = { html: "<title>T</title><h1>From an app</h1><a href='https://example.com/'>out</a>" };
    return {
      content: await BROWSER.content(page),
      markdown: await BROWSER.markdown(page),
      links: await BROWSER.links({ ...page, visibleLinksOnly: true }),
      scrape: await BROWSER.scrape({ ...page, elements: [{ selector: "h1" }] }),
      snapshot: Object.keys(await BROWSER.snapshot(page)),
      json: await refused(() => BROWSER.json({ ...page, prompt: "x" })),
      tree: await BROWSER.accessibilityTree({ ...page, root: "h1", interestingOnly: true }),
    };
  },
  async crawl({ BROWSER }) {
    const id = await BROWSER.startCrawl({ url: "https://crawled.invalid/", limit: 1, render: false });
    const crawl = await BROWSER.getCrawl(id, { limit: 1 });
    const end = await refused(() => BROWSER.cancelCrawl(id));
    return { id, same: crawl.id, end };
  },
  async crawls({ BROWSER }) {
    return (await BROWSER.listCrawls({ limit: 5 })).crawls.map(({ id }) => id);
  },
};

export default {
  async fetch(request, env) {
    const step = STEPS[new URL(request.url).pathname.slice(1)];
    try {
      return Response.json(await step(env));
    } catch (error) {
      return new Response(String(error?.stack ?? error), { status: 599 });
    }
  },
};
`;

describe("bindings of apps", function () {
  this.timeout(300_000);
  let platform: AppPlatform;
  before(async () => {
    platform = await AppPlatform.start();
    const { body } = await platform.deploy("bound", BUNDLE, {
      artifacts: [
        { binding: "ARTIFACTS", namespace: "space" },
        { binding: "OTHER", namespace: "other" },
      ],
      browser: { binding: "BROWSER" },
    });
    expect(body.errors).to.deep.equal([]);
  });
  after(() => platform[Symbol.asyncDispose]());

  async function step(name: string) {
    const { status, text } = await platform.ask("bound", `/${name}`);
    expect(status, text).to.equal(200);
    return JSON.parse(text);
  }

  it("ARTIFACTS makes a repository, commits to it and reads its content", async () => {
    const { commit, ...done } = await step("commit");
    expect(done.made).to.include({ name: "notes", defaultBranch: "trunk" });
    expect(done.made.token).to.be.a("string");
    expect(done.info).to.include({ description: "Notes", readOnly: false, statusProgress: null });
    expect(commit).to.include({ ref: "refs/heads/trunk", before: null, message: "First" });
    expect(done.log.map(({ hash }: { hash: string }) => hash)).to.deep.equal([commit.hash]);
    expect(done.again).to.deep.equal(done.log[0]);
    expect(done.file).to.equal("hello\n");
    expect(done.raw).to.equal("text/plain;charset=utf-8");
    expect(done.blob).to.deep.equal([0, 255]);
    expect(done.refs.refs[0]).to.include({ name: "refs/heads/trunk", isDefault: true });
    expect(done.archive).to.equal(true);
    expect(done.none).to.deep.equal([null, null, null, null]);
    expect(done.noRef).to.include({ code: "NOT_FOUND", status: 404 });
    expect(done.moved).to.include({ code: "BRANCH_MOVED", numericCode: 10304, status: 409 });
    const path = "/artifacts/namespaces/space/repos/notes/log";
    expect((await platform.rest("GET", path)).body.result[0].hash).to.equal(commit.hash);
  });

  it("ARTIFACTS changes, forks, lists and deletes repositories, and makes tokens", async () => {
    const done = await step("change");
    expect(done.diff.files[0]).to.include({ path: "data", status: "deleted", newHash: null });
    expect(done.changed).to.deep.include({ readOnly: true, protectedRefs: ["refs/heads/trunk"] });
    expect(done.forked).to.include({ name: "copy", defaultBranch: "trunk" });
    expect(done.token).to.include({ scope: "read" });
    expect(done.listed.tokens[0]).to.include({ id: done.token.id, state: "active" });
    expect(done.listed.total).to.be.at.least(1);
    expect(done.revoked).to.deep.equal([true, false]);
    await until("both are listed", async () => (await step("list")).second?.total === 2);
    const { first, second } = await step("list");
    const names = [first, second].map(({ repos }) => repos[0].name);
    expect(names).to.deep.equal(["copy", "notes"]);
    expect(first.total).to.equal(undefined);
    expect(await step("remove")).to.deep.equal({ found: ["copy"], deleted: [true, false] });
  });

  it("ARTIFACTS has only the namespaces that the configuration binds", async () => {
    const done = await step("namespaces");
    expect(done.made).to.include({ namespace: "other", repoCount: 0 });
    expect(done.none).to.deep.equal([]);
    expect(done.own).to.deep.equal(["space", "other"]);
    expect(done.names).to.deep.equal(["space"]);
    expect(done.count).to.equal(0);
    expect(done.deleted).to.deep.equal([true, false]);
  });

  it("ARTIFACTS is limited to its namespace, by fetch() and by its methods", async () => {
    const done = await step("outside");
    expect(done.statuses).to.deep.equal(done.statuses.map(() => 403));
    expect(done.own).to.deep.equal([200, 200, 200, 404]);
    expect(done.listed).to.deep.equal(["space"]);
    for (const message of done.unbound) {
      expect(message).to.contain('binds the namespaces "space", "other", and not "third"');
    }
    expect(done.deleted).to.deep.equal([true, true]);
  });

  it("ARTIFACTS imports a repository, and says why it could not", async () => {
    const made = await step("importing");
    expect(made).to.include({ name: "theirs", defaultBranch: "main" });
    expect(made.token).to.match(/^art_v1_/);
    await until("it has ended", async () => (await step("imported")).status === "failed", 30_000);
    const { source, statusReason } = await step("imported");
    expect(source).to.equal("git:https://nowhere.invalid/x.git");
    expect(statusReason).to.contain("nowhere.invalid");
  });

  it("throws refusals of the API with their name and number", async () => {
    const refusals = await step("refusals");
    for (const { isOurs, message } of refusals) expect(isOurs, message).to.equal(true);
    const told = refusals.map(({ name, code, status }: Record<string, unknown>) => [
      name,
      code,
      status,
    ]);
    expect(told).to.deep.equal([
      ["ArtifactsError", "NOT_FOUND", 404],
      ["ArtifactsError", "ALREADY_EXISTS", 409],
      ["ArtifactsError", "INVALID_REPO_NAME", 400],
      ["ArtifactsError", "INVALID_URL", 400],
      ["ApiError", "INVALID_REQUEST", 400],
      ["ApiError", "NOT_FOUND", 404],
    ]);
    expect(refusals[2].pointer).to.equal("/name");
  });

  it("fetch() reaches the account's part of the API, as far as the binding goes", async () => {
    expect(await step("elsewhere")).to.deep.equal([404, 403, 403, 403, 403]);
  });

  it("ARTIFACTS forwards git requests to the repositories of its namespace, with their tokens", async () => {
    expect(await step("git")).to.deep.equal([200, 200, 401, 403, 403, 403, 404, 403]);
  });

  it("BROWSER prints a PDF, and reports its duration", async () => {
    const done = await step("pdf");
    expect(done.begins).to.equal("%PDF-");
    expect(done.bytes).to.be.above(1_000);
    await until("the time is counted", async () => (await step("pdf")).usage.browserMsUsed > 0);
  });

  it("BROWSER captures an element as a picture, as bytes and as text", async () => {
    const done = await step("screenshot");
    expect(done.begins).to.deep.equal([0x89, 0x50, 0x4e, 0x47]);
    expect(done.size).to.deep.equal([30, 20]);
    expect(done.same).to.equal(true);
    expect(done.missing).to.include({ code: "ELEMENT_NOT_FOUND", numericCode: 6004, status: 422 });
  });

  it("BROWSER reads a page: its HTML, Markdown, links, elements, formats, data and tree", async () => {
    const { content, json, tree, ...done } = await step("read");
    expect(content).to.contain("<h1>From an app</h1>");
    expect(done.markdown).to.contain("# From an app");
    expect(done.links).to.deep.equal(["https://example.com/"]);
    expect(done.scrape[0].results[0]).to.include({ text: "From an app" });
    expect(done.snapshot).to.deep.equal(["content", "screenshot"]);
    expect(json).to.include({ code: "INVALID_REQUEST", pointer: "/custom_ai", status: 400 });
    expect(tree.accessibilityTree).to.include({ role: "heading", name: "From an app" });
  });

  it("BROWSER starts, shows, lists and cancels crawls", async () => {
    const done = await step("crawl");
    expect(done.same).to.equal(done.id);
    await until("it is listed", async () => (await step("crawls")).includes(done.id));
    expect(done.end === "done" || done.end.code === "CONFLICT").to.equal(true);
  });
});
