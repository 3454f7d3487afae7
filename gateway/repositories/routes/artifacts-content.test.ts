import { execFileSync } from "node:child_process";
import { chmod, mkdir, readdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { LOG_ENTRIES_MAX } from "../../../schemas/repositories/limits.ts";
import { until } from "../../../scripts/testing/until.ts";
import { ArtifactsWorld } from "../../testing/artifacts-world.ts";
import type { Checkout } from "../testing/git-world.ts";

describe("routes of repository content", function () {
  this.timeout(120_000);
  let world: ArtifactsWorld;
  let work: Checkout;
  let remote: string;
  const BASE = "/content/repos/base";
  before(async () => {
    world = await ArtifactsWorld.start();
    const { result } = await world.post("/content/repos", { name: "base" });
    remote = world.remote(result);
    work = await world.checkout();
    await mkdir(join(work.folder, "src"));
    await writeFile(join(work.folder, "README.md"), "# probe\n");
    await writeFile(join(work.folder, "bin.dat"), Buffer.of(0, 1, 2, 255));
    await writeFile(join(work.folder, "src", "a.txt"), "one\n");
    await work.git("add", ".");
    await work.git("commit", "-q", "-m", "first");
    await writeFile(join(work.folder, "src", "run.sh"), "#!/bin/sh\n");
    await chmod(join(work.folder, "src", "run.sh"), 0o755);
    await symlink("../README.md", join(work.folder, "src", "link"));
    await writeFile(join(work.folder, "src", "odd name\n\u00e4"), "odd\n");
    await writeFile(join(work.folder, "page.html"), "<script>alert(1)</script>");
    await writeFile(join(work.folder, "empty"), "");
    await work.git("add", ".");
    await work.git("commit", "-q", "-m", "second", "-m", "body");
    await work.git("branch", "side", "HEAD~1");
    await work.git("branch", "feature/x");
    await work.git("tag", "-a", "v1", "-m", "first", "HEAD~1");
    await work.git("push", "-q", remote, "--all");
    await work.git("push", "-q", remote, "--tags");
  });
  after(() => world[Symbol.asyncDispose]());
  afterEach(() => expect(world.faults).to.deep.equal([]));

  const ask: ArtifactsWorld["ask"] = (path, ...parameters) => world.ask(BASE + path, ...parameters);
  const at = (name: string) => work.git("rev-parse", name);

  it("listRefs() lists refs by name, by prefix and in pages", async () => {
    const { result, info } = await ask("/refs");
    expect(result.map(({ name }: { name: string }) => name)).to.deep.equal([
      "refs/heads/feature/x",
      "refs/heads/main",
      "refs/heads/side",
      "refs/tags/v1",
    ]);
    expect(result[1]).to.deep.equal({
      name: "refs/heads/main",
      hash: await at("main"),
      is_default: true,
      is_protected: false,
    });
    expect(info).to.deep.equal({
      page: 1,
      per_page: 100,
      total_pages: 1,
      count: 4,
      total_count: 4,
    });
    const first = await ask("/refs?prefix=refs/heads/&limit=2");
    const second = await ask(`/refs?prefix=refs/heads/&limit=2&cursor=${first.info.cursor}`);
    expect(second.result.map(({ name }: { name: string }) => name)).to.deep.equal([
      "refs/heads/side",
    ]);
    expect((await ask(`/refs?cursor=${first.info.cursor}`)).status).to.equal(400);
    expect((await ask("/refs?limit=1001")).status).to.equal(400);
    expect((await ask("/refs?limit=1000")).status).to.equal(200);
  });

  it("getLog() follows first parents from any kind of ref", async () => {
    const { result } = await ask("/log");
    expect(result).to.have.length(2);
    expect(result[0]).to.deep.include({
      hash: await at("main"),
      treeHash: await at("main^{tree}"),
      message: "second\n\nbody",
      author: { name: "A", email: "a@example.com" },
      committer: { name: "A", email: "a@example.com" },
      parents: [await at("main~1")],
    });
    expect(result[0].authoredAt).to.equal(Number(await work.git("log", "-1", "--format=%at")));
    const hashes = async (query: string) =>
      (await ask(`/log?${query}`)).result.map(({ hash }: { hash: string }) => hash);
    const [second, first] = [await at("main"), await at("side")];
    expect(await hashes("ref=side")).to.deep.equal([first]);
    expect(await hashes("ref=v1")).to.deep.equal([first]);
    expect(await hashes("ref=refs/tags/v1")).to.deep.equal([first]);
    expect(await hashes("ref=refs/heads/feature/x")).to.deep.equal([second, first]);
    expect(await hashes(`ref=${first}`)).to.deep.equal([first]);
    expect(await hashes("limit=1&offset=1")).to.deep.equal([first]);
    expect(await hashes("offset=200")).to.deep.equal([]);
    expect(await hashes("limit=5000")).to.deep.equal([second, first]);
    for (const ref of [
      "main~1",
      "HEAD~1",
      "HEAD^",
      "main^0~1",
      first.slice(0, 7),
      first.slice(0, 4),
    ]) {
      expect(await hashes(`ref=${encodeURIComponent(ref)}`), ref).to.deep.equal([first]);
    }
    for (const ref of [
      ...["nope", "refs/pull/1", "main~2", "main^2", "-x", "a b", "f".repeat(40), ":/second"],
      ...[first.slice(0, 3), "fffffff", "main~~~~~", "main~99999", "~1"],
    ]) {
      const { status, errors } = await ask(`/log?ref=${encodeURIComponent(ref)}`);
      expect([status, errors[0]?.message], ref).to.deep.equal([
        404,
        `Ref not found: there is no "${ref}"`,
      ]);
    }
    for (const query of ["limit=0", "offset=-1", "offset=1000001", "ref=", "limit=x"]) {
      const { status, errors } = await ask(`/log?${query}`);
      expect([status, errors[0]?.source?.pointer]).to.deep.equal([400, `/${query.split("=")[0]}`]);
    }
  });

  it("getLog() clamps its parameters, and skips over long histories", async () => {
    const { result } = await world.post("/content/repos", { name: "long" });
    const long = await world.checkout();
    const commits = Array.from(
      { length: LOG_ENTRIES_MAX + 20 },
      (_, i) =>
        `commit refs/heads/main\nmark :${i + 1}\ncommitter A <a@example.com> ${1_000_000 + i} +0000\ndata <<E\nc${i}\nE\n\n`,
    );
    execFileSync("git", ["fast-import", "--quiet"], { cwd: long.folder, input: commits.join("") });
    await long.git("push", "-q", world.remote(result), "main");
    const all = await world.ask(`/content/repos/long/log?limit=${LOG_ENTRIES_MAX + 1}`);
    expect(all.result).to.have.length(LOG_ENTRIES_MAX);
    const last = await world.ask("/content/repos/long/log?limit=50&offset=1015");
    expect(last.result.map(({ message }: { message: string }) => message)).to.deep.equal([
      "c4",
      "c3",
      "c2",
      "c1",
      "c0",
    ]);
  });

  it("getCommit() and getTree() refuse objects of other types", async () => {
    const [commit, tree, blob] = [
      await at("main"),
      await at("main^{tree}"),
      await at("main:empty"),
    ];
    expect((await ask(`/commit/${commit}`)).result).to.deep.include({
      hash: commit,
      treeHash: tree,
    });
    expect((await ask(`/tree/${tree}`)).result).to.deep.include.members([
      { name: "README.md", mode: "100644", hash: await at("main:README.md"), type: "blob" },
      { name: "src", mode: "40000", hash: await at("main:src"), type: "tree" },
    ]);
    const below = (await ask(`/tree/${await at("main:src")}`)).result;
    expect(
      below.map(({ name, type }: { name: string; type: string }) => [name, type]),
    ).to.deep.equal([
      ["a.txt", "blob"],
      ["link", "symlink"],
      ["odd name\n\u00e4", "blob"],
      ["run.sh", "exec"],
    ]);
    for (const [path, message] of [
      [`/commit/${tree}`, "Commit not found"],
      [`/commit/${"1".repeat(40)}`, "Commit not found"],
      [`/tree/${commit}`, "Tree not found"],
      [`/tree/${blob}`, "Tree not found"],
      [`/blob/${commit}`, "Blob not found"],
    ]) {
      const { status, errors } = await ask(path ?? "");
      expect([status, errors]).to.deep.equal([404, [{ code: 10200, message }]]);
    }
    for (const hash of ["XYZ", commit.slice(0, 39), commit.toUpperCase(), `${commit}0`]) {
      for (const kind of ["commit", "tree", "blob"]) {
        const { status, errors } = await ask(`/${kind}/${hash}`);
        expect([status, errors[0]?.code, errors[0]?.source]).to.deep.equal([
          400,
          10100,
          { pointer: "/hash" },
        ]);
      }
    }
  });

  it("getBlob(), getFile() and getRaw() return a file's bytes, with its id as ETag", async () => {
    const id = await at("main:README.md");
    for (const path of [`/blob/${id}`, "/file?ref=main&path=README.md", "/raw/main/README.md"]) {
      const { status, text, headers } = await ask(path);
      expect([status, text, headers.get("etag")]).to.deep.equal([200, "# probe\n", `"${id}"`]);
      expect(headers.get("content-length")).to.equal("8");
      const known = await ask(path, { headers: { "If-None-Match": `"x", W/"${id}"` } });
      expect([known.status, known.text]).to.deep.equal([304, ""]);
    }
    const type = async (path: string) => (await ask(path)).headers.get("content-type");
    expect(await type(`/blob/${id}`)).to.equal("application/octet-stream");
    expect(await type("/file?ref=main&path=README.md")).to.equal("application/octet-stream");
    expect(await type("/raw/main/README.md")).to.equal("text/plain; charset=utf-8");
    expect(await type("/raw/v1/bin.dat")).to.equal("application/octet-stream");
    expect((await ask("/raw/main/bin.dat")).bytes).to.deep.equal(Buffer.of(0, 1, 2, 255));
    const page = await ask("/raw/main/page.html");
    expect(page.headers.get("content-type")).to.equal("text/plain; charset=utf-8");
    expect(page.headers.get("content-security-policy")).to.contain("sandbox");
    expect(page.headers.get("x-content-type-options")).to.equal("nosniff");
    const empty = await ask("/file?ref=main&path=empty");
    expect([empty.status, empty.text, empty.headers.get("content-length")]).to.deep.equal([
      200,
      "",
      "0",
    ]);
    expect((await ask("/file?ref=main&path=src/link")).text).to.equal("../README.md");
    const odd = encodeURIComponent("src/odd name\n\u00e4");
    expect((await ask(`/file?ref=main&path=${odd}`)).text).to.equal("odd\n");
    expect((await ask(`/raw/feature%2Fx/src/a.txt`)).text).to.equal("one\n");
    expect((await ask("/file?ref=HEAD&path=./src//a.txt")).text).to.equal("one\n");
  });

  it("getFile() refuses directories, paths out of the repository, and missing files", async () => {
    for (const path of [
      "src",
      "nope",
      "nope\nmissing",
      "../x",
      "src/../README.md",
      "..",
      ".",
      "/",
      "src/link/x",
      "a\0b",
      "README.md/x",
      `${"x/".repeat(2_000)}x`,
    ]) {
      const { status, errors } = await ask(`/file?ref=main&path=${encodeURIComponent(path)}`);
      expect([status, errors[0]?.message], path).to.deep.equal([404, "File not found"]);
    }
    expect((await ask("/raw/feature/x/src/a.txt")).status).to.equal(404);
    expect((await ask("/file?ref=nope&path=README.md")).status).to.equal(404);
    for (const [query, pointer] of [
      ["ref=main", "/path"],
      ["path=x", "/ref"],
      [`ref=main&path=${"x".repeat(4_097)}`, "/path"],
    ]) {
      const { status, errors } = await ask(`/file?${query}`);
      expect([status, errors[0]?.source?.pointer]).to.deep.equal([400, pointer]);
    }
    // The request for a missing path has not ended the process that other requests use.
    expect((await ask("/file?ref=main&path=README.md")).status).to.equal(200);
  });

  it("getFile() finds files whose names are outputs of git describe, of whatever object", async () => {
    const { result } = await world.post("/content/repos", { name: "described" });
    const copy = await world.checkout();
    // The content is also the message, for which `^{/a/b}` looks.
    const first = await copy.commit("secret a/b", "secret.txt");
    await copy.git("tag", "-a", "v1", "-m", "one");
    const objects = ["HEAD", "HEAD:secret.txt", "HEAD^{tree}", "v1"];
    const ids = await Promise.all(objects.map((object) => copy.git("rev-parse", object)));
    // Git takes these names, and paths that end with them, for other objects.
    const names = [
      ...ids.map((id) => `v1-2-g${id.slice(0, 8)}`),
      ...ids.map((id) => `x-g${id}`),
      ...["~0", "^", "^0~0", "^{tree}", "^{}", "^{/a/b}"].map((steps) => `x-g${first}${steps}`),
      `x-g${first.slice(0, 8).toUpperCase()}`,
    ];
    const files = names.flatMap((name): [string, string][] => [
      [name, `notes in ${name}`],
      [`d-g${first.slice(0, 7)}/${name}`, `below ${name}`],
      [`d^{/${name}/x}`, `inner ${name}`],
    ]);
    await copy.commitFiles(new Map(files), "described");
    await copy.git("push", "-q", world.remote(result), "described:refs/heads/main", "v1");
    const at = (path: string) =>
      world.ask(`/content/repos/described/file?ref=main&path=${encodeURIComponent(path)}`);
    for (const [path, content] of files) {
      const { status, text, headers } = await at(path);
      expect([status, text], path).to.deep.equal([200, content]);
      expect(headers.get("etag")).to.equal(`"${await copy.object("blob", content)}"`);
    }
    const missing = ids.flatMap((id) => [`y-g${id.slice(0, 8)}`, `z/y-g${id}`, `${id}-g${id}^{}`]);
    for (const path of [...missing, `d-g${first.slice(0, 7)}`]) {
      expect((await at(path)).status, path).to.equal(404);
    }
  });

  it("getFile() finds no file at the path of a submodule, and the directory shows its commit", async () => {
    const { result } = await world.post("/content/repos", { name: "with-submodule" });
    const place = await world.checkout();
    const hash = "1".repeat(40);
    await place.git("update-index", "--add", "--cacheinfo", `160000,${hash},lib/sub`);
    await place.commit("beside it", "lib/file");
    await place.git("push", "-q", world.remote(result), "main");
    const read = (path: string) => world.ask(`/content/repos/with-submodule${path}`);
    for (const path of ["lib/sub", "lib/sub/x"]) {
      for (const answer of [
        await read(`/file?ref=main&path=${path}`),
        await read(`/raw/main/${path}`),
      ]) {
        expect([answer.status, answer.errors], path).to.deep.equal([
          404,
          [{ code: 10200, message: "File not found" }],
        ]);
      }
    }
    const tree = await read(`/tree/${await place.git("rev-parse", "main:lib")}`);
    expect(tree.result).to.deep.include({ name: "sub", mode: "160000", hash, type: "gitlink" });
    expect((await read("/raw/main/lib/file")).text).to.equal("beside it");
  });

  it("getFile() returns the requested range", async () => {
    const path = "/file?ref=main&path=README.md";
    const part = async (range: string, headers = {}) => {
      const answer = await ask(path, { headers: { Range: range, ...headers } });
      return [answer.status, answer.text, answer.headers.get("content-range")];
    };
    expect(await part("bytes=2-4")).to.deep.equal([206, "pro", "bytes 2-4/8"]);
    expect(await part("bytes=5-")).to.deep.equal([206, "be\n", "bytes 5-7/8"]);
    expect(await part("bytes=-2")).to.deep.equal([206, "e\n", "bytes 6-7/8"]);
    expect(await part("bytes=0-99")).to.deep.equal([206, "# probe\n", "bytes 0-7/8"]);
    expect(await part("bytes=7-7")).to.deep.equal([206, "\n", "bytes 7-7/8"]);
    for (const odd of ["bytes=4-2", "lines=1-2", "bytes=0-1,3-4", "bytes=-"]) {
      expect((await part(odd))[0], odd).to.equal(200);
    }
    const beyond = await ask(path, { headers: { Range: "bytes=8-" } });
    expect([beyond.status, beyond.headers.get("content-range")]).to.deep.equal([416, "bytes */8"]);
    expect((await part("bytes=0-1", { "If-Range": '"other"' }))[0]).to.equal(200);
    const tag = `"${await at("main:README.md")}"`;
    expect((await part("bytes=0-1", { "If-Range": tag }))[0]).to.equal(206);
  });

  it("getDiff() names the changed files, and returns a patch that git apply accepts", async () => {
    const { result } = await ask("/diff?base=v1&head=main");
    expect([result.base, result.head]).to.deep.equal([await at("side"), await at("main")]);
    const added = result.files.find(({ path }: { path: string }) => path === "src/run.sh");
    expect(added).to.deep.equal({
      path: "src/run.sh",
      status: "added",
      old_mode: null,
      new_mode: "100755",
      old_hash: null,
      new_hash: await at("main:src/run.sh"),
      additions: 1,
      deletions: 0,
    });
    expect(result.truncated).to.equal(false);
    expect(result.patch).to.contain("+#!/bin/sh\n");
    const place = await world.checkout();
    await place.git("fetch", "-q", remote, "side");
    await place.git("checkout", "-q", "FETCH_HEAD");
    await writeFile(join(place.folder, "..", "x.patch"), result.patch);
    await place.git("apply", "--index", join(place.folder, "..", "x.patch"));
    expect(await place.git("write-tree")).to.equal(await at("main^{tree}"));
    const back = await ask("/diff?base=main&head=side");
    expect(
      back.result.files.every(({ status }: { status: string }) => status === "deleted"),
    ).to.equal(true);
    const none = await ask("/diff?base=main&head=feature/x");
    expect(none.result).to.deep.include({ files: [], patch: "", truncated: false });
    expect((await ask("/diff?base=main&head=nope")).status).to.equal(404);
    expect((await ask("/diff?base=main")).errors[0]?.source?.pointer).to.equal("/head");
  });

  it("getDiff() without a base shows all that a commit holds as added", async () => {
    const { result } = await ask("/diff?head=v1");
    const place = await world.checkout();
    await place.git("fetch", "-q", remote, "v1");
    const files = await place.git("ls-tree", "-r", "--name-only", "FETCH_HEAD");
    expect(result.files.map(({ path }: { path: string }) => path)).to.deep.equal(
      files.split("\n").filter(Boolean),
    );
    expect(result.files.every(({ status }: { status: string }) => status === "added")).to.equal(
      true,
    );
    expect([result.base, result.head]).to.deep.equal([
      (await place.git("hash-object", "-t", "tree", "/dev/null")).trim(),
      await at("side"),
    ]);
  });

  it("getDiff() reports renames, binary files and truncation", async () => {
    const { result } = await world.post("/content/repos", { name: "moved" });
    const place = await world.checkout();
    await writeFile(join(place.folder, "old"), "line\n".repeat(50));
    await writeFile(join(place.folder, "data"), Buffer.of(0, 1));
    await place.git("add", ".");
    await place.git("commit", "-q", "-m", "1");
    await place.git("mv", "old", "new");
    await writeFile(join(place.folder, "data"), Buffer.of(0, 2));
    await place.git("commit", "-q", "-a", "-m", "2");
    await place.git("branch", "small");
    for (const name of ["more", "much"]) {
      await writeFile(join(place.folder, name), "much of it\n".repeat(150_000));
    }
    await place.git("add", ".");
    await place.git("commit", "-q", "-m", "3");
    await place.git("push", "-q", world.remote(result), "main", "small");
    const first = await place.git("rev-parse", "main~2");
    const { result: moved } = await world.ask(`/content/repos/moved/diff?base=${first}&head=small`);
    const [data, renamed] = moved.files;
    expect(data).to.deep.include({ path: "data", status: "modified", additions: null });
    expect(renamed).to.deep.include({
      path: "new",
      old_path: "old",
      status: "renamed",
      additions: 0,
    });
    const { result: much } = await world.ask("/content/repos/moved/diff?base=small&head=main");
    expect(much.files[1]).to.deep.include({ path: "much", additions: 150_000 });
    expect(much.truncated).to.equal(true);
    expect(much.patch.length).to.be.within(2_000_000, 2 * 1024 * 1024);
  });

  it("getArchive() returns all files of a commit, byte for byte the same each time", async () => {
    const main = await at("main");
    const tar = await ask("/archive/main.tar.gz");
    expect(tar.status).to.equal(200);
    expect(tar.headers.get("content-type")).to.equal("application/gzip");
    expect(tar.headers.get("etag")).to.equal(`"${main}-v2.tar.gz"`);
    const folder = join(work.folder, "..", "unpacked");
    await mkdir(folder);
    await writeFile(join(folder, "a.tgz"), tar.bytes);
    execFileSync("tar", ["xzf", "a.tgz"], { cwd: folder });
    const root = join(folder, `base-${main.slice(0, 12)}`);
    expect(execFileSync("cat", [join(root, "src/a.txt")]).toString()).to.equal("one\n");
    expect(execFileSync("ls", ["-l", join(root, "src/run.sh")]).toString()).to.match(/^-rwx/);
    await rm(folder, { recursive: true });
    // A request by the commit's id gets the archive that was made for its branch.
    const kept = join(world.folder, "git", "archives");
    const inodes = async () =>
      await Promise.all(
        (await readdir(kept)).map(async (file) => (await stat(join(kept, file))).ino),
      );
    const before = await inodes();
    expect(before).to.have.length(1);
    const again = await ask(`/archive/${main}.tar.gz`);
    expect(again.bytes.equals(tar.bytes)).to.equal(true);
    expect(await inodes()).to.deep.equal(before);
    const known = await ask("/archive/main.tar.gz", {
      headers: { "If-None-Match": `"${main}-v2.tar.gz"` },
    });
    expect(known.status).to.equal(304);
    // A client has an archive that an older version made by other rules.
    const former = await ask("/archive/main.tar.gz", {
      headers: { "If-None-Match": `"${main}.tar.gz"` },
    });
    expect(former.status).to.equal(200);
    const part = await ask("/archive/main.tar.gz", { headers: { Range: "bytes=0-1" } });
    expect([part.status, [...part.bytes]]).to.deep.equal([206, [0x1f, 0x8b]]);
    const zip = await ask("/archive/feature%2Fx.zip");
    expect([zip.status, zip.bytes.toString("latin1", 0, 2)]).to.deep.equal([200, "PK"]);
    expect((await ask("/archive/feature/x.zip")).status).to.equal(200);
    expect((await ask("/archive/nope.zip")).status).to.equal(404);
    const odd = await ask("/archive/main.rar");
    expect([odd.status, odd.errors[0]?.source?.pointer]).to.deep.equal([400, "/archive"]);
  });

  it("reads use one process per repository, and continue after the cache is emptied", async () => {
    const readers = world.opened.repositories.parts.readers;
    const before = readers.size;
    for (let i = 0; i < 5; i++) await ask("/file?ref=main&path=README.md");
    expect(readers.size).to.equal(before);
    for (const place of ["repos", "packs"]) {
      await until("no place is held", () => world.git.parts.slots.running === 0);
      await rm(join(world.folder, "git", place), { recursive: true });
      await mkdir(join(world.folder, "git", place), { recursive: true });
      expect((await ask("/file?ref=main&path=README.md")).text).to.equal("# probe\n");
      expect((await ask(`/tree/${await at("main:src")}`)).result).to.have.length(4);
      expect((await ask("/file?ref=main&path=nope")).status).to.equal(404);
    }
  });

  it("reads return the state of the last push", async () => {
    for (let i = 0; i < 3; i++) {
      await work.commit(`${i}`, "counted.txt");
      await work.git("push", "-q", remote, "main");
      expect((await ask("/file?ref=main&path=counted.txt")).text).to.equal(`${i}`);
      expect((await ask("/log?limit=1")).result[0].hash).to.equal(await at("main"));
    }
  });

  it("an empty repository has no refs, no history and no files", async () => {
    await world.post("/content/repos", { name: "void" });
    const look = (path: string) => world.ask(`/content/repos/void${path}`);
    expect((await look("/refs")).result).to.deep.equal([]);
    expect((await look("/log")).result).to.deep.equal([]);
    expect((await look("/file?ref=HEAD&path=x")).status).to.equal(404);
    expect((await look(`/commit/${await at("main")}`)).status).to.equal(404);
    expect((await look("/archive/HEAD.zip")).status).to.equal(404);
    expect((await world.ask("/content/repos/none/log")).status).to.equal(404);
  });
});
