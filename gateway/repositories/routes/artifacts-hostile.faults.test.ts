import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect } from "chai";
import { ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import {
  ARCHIVE_BYTES_MAX,
  ARCHIVE_FILES_MAX,
  ARCHIVE_PATH_BYTES_MAX,
  DIFF_FILES_MAX,
  DIFF_PATCH_BYTES_MAX,
  PATH_BYTES_MAX,
  TREE_DEPTH_MAX,
} from "../../../schemas/repositories/limits.ts";
import { repo as repoContract } from "../../../schemas/repositories/repo.ts";
import { ArtifactsWorld } from "../../testing/artifacts-world.ts";
import { filesOf } from "../cache/cache-files.ts";
import { DIFF_LIST_BYTES_MAX } from "../read/read-diff.ts";
import { LOG_BYTES_MAX, SHOWN_OBJECT_BYTES_MAX } from "../read/read-repo.ts";
import { type Checkout, runGitClient, treeOf } from "../testing/git-world.ts";

const signal = new AbortController().signal;

describe("archives and differences of hostile trees", function () {
  this.timeout(900_000);
  let world: ArtifactsWorld;
  let work: Checkout;
  let blob: string;
  let empty: string;
  let count = 0;
  before(async () => {
    world = await ArtifactsWorld.start();
    work = await world.checkout();
    blob = await work.object("blob", "content\n");
    empty = await work.commitTree(await work.object("tree", ""));
  });
  after(() => world[Symbol.asyncDispose]());
  afterEach(() => expect(world.faults).to.deep.equal([]));

  interface Held {
    path: string;
    ask(path: string): ReturnType<ArtifactsWorld["ask"]>;
    archive(format: string): ReturnType<ArtifactsWorld["ask"]>;
    diff(): ReturnType<ArtifactsWorld["ask"]>;
  }

  /**
   * Stores a pack and names it with `swap`, without the checks that would refuse it in a push. `main` points to the
   * commit, `empty` to a commit without files.
   */
  async function stored(tree: string, made?: string): Promise<Held> {
    const name = `hostile-${count++}`;
    const { result } = await world.post("/hostile/repos", { name });
    const commit = made ?? (await work.commitTree(tree));
    const folder = await mkdtemp(join(world.folder, "pack-"));
    const input = `${commit}\n${empty}\n`;
    const parameters = ["pack-objects", "--revs", "-q", join(folder, "pack")];
    const packed = await runGitClient(work.folder, parameters, input);
    expect(packed.code, packed.stderr).to.equal(0);
    const files = filesOf(join(folder, `pack-${packed.stdout.trim()}`));
    const pack = await world.git.parts.packs.put(world.accountId, files, signal);
    const { results } = await world.world.client.call(repoContract, result.id, "swap", {
      push: "1".repeat(32),
      commands: [`${ZERO_ID} ${commit} refs/heads/main`, `${ZERO_ID} ${empty} refs/heads/empty`],
      parts: 0,
      atomic: true,
      generation: 0,
      forward: [],
      packs: [pack],
    });
    expect(results).to.equal("oo");
    const path = `/hostile/repos/${name}`;
    const ask = (rest: string) => world.ask(`${path}${rest}`);
    return {
      path,
      ask,
      archive: (format) => ask(`/archive/main.${format}`),
      diff: () => ask("/diff?base=empty&head=main"),
    };
  }

  const tree = (...entries: { mode: string; name: string; id: string }[]) =>
    work.object("tree", treeOf(entries));
  const file = (name: string) => ({ mode: "100644", name, id: blob });

  it("no archive has a path that leads out of it or through a link", async () => {
    const inner = await tree(file("x"));
    const link = await work.object("blob", "/etc");
    for (const [what, hostile] of [
      ["..", await tree({ mode: "40000", name: "..", id: inner })],
      ["a file ..", await tree(file(".."))],
      [".", await tree({ mode: "40000", name: ".", id: inner })],
      [".git", await tree({ mode: "40000", name: ".git", id: inner })],
      [".GIT", await tree(file(".GIT"))],
      ["a slash", await tree(file("../../etc/passwd"))],
      ["absolute", await tree(file("/etc/passwd"))],
      ["twice", await tree(file("same"), file("same"))],
      [
        "a link and a directory",
        await tree(
          { mode: "120000", name: "d", id: link },
          { mode: "40000", name: "d", id: inner },
        ),
      ],
      [
        "a directory and a link",
        await tree(
          { mode: "40000", name: "d", id: inner },
          { mode: "120000", name: "d", id: link },
        ),
      ],
      ["below", await tree({ mode: "40000", name: "sub", id: await tree(file("..")) })],
    ] as const) {
      const repo = await stored(hostile);
      for (const format of ["tar.gz", "zip"]) {
        const { status, errors } = await repo.archive(format);
        expect(status, `${what} ${format}`).to.equal(409);
        expect(errors[0]?.message).to.contain("leads out of the archive");
      }
      const diff = await repo.diff();
      expect(diff.status, what).to.equal(200);
      expect(diff.result.truncated).to.equal(false);
      const { errors } = await repo.ask("/file?ref=main&path=..%2F..%2Fetc%2Fpasswd");
      expect(errors[0]?.message).to.equal("File not found");
    }
  });

  it("links stay links, wherever they lead, in an archive and in a difference", async () => {
    const links = ["/etc/passwd", "../../../outside", "a\nb", "x".repeat(5_000)];
    const entries = await Promise.all(
      links.map(async (to, i) => ({
        mode: "120000",
        name: `link-${i}`,
        id: await work.object("blob", to),
      })),
    );
    const repo = await stored(await tree(...entries));
    const { status, bytes } = await repo.archive("tar.gz");
    expect(status).to.equal(200);
    const listed = execFileSync("tar", ["-tvz"], { input: bytes }).toString();
    expect(listed.match(/^l/gm)).to.have.length(links.length);
    expect(listed).to.contain("link-0 -> /etc/passwd");
    const { result } = await repo.diff();
    expect(result.files.map(({ new_mode: mode }: { new_mode: string }) => mode)).to.deep.equal(
      links.map(() => "120000"),
    );
    expect(result.patch).to.contain("+/etc/passwd");
    const shown = await repo.ask("/file?ref=main&path=link-0");
    expect([shown.status, shown.text]).to.deep.equal([200, "/etc/passwd"]);
  });

  it("file names of any bytes survive, or remain distinct at least", async () => {
    const names = [
      "new\nline",
      "tab\t",
      'quo"te',
      "back\\slash",
      " blank ",
      "-option",
      ":colon",
      "ä",
    ];
    const bytes = Buffer.concat([
      treeOf(names.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))).map(file)),
      Buffer.from("100644 "),
      Buffer.of(0xff, 0xfe),
      Buffer.of(0),
      Buffer.from(blob, "hex"),
    ]);
    const repo = await stored(await work.object("tree", bytes));
    const { result } = await repo.diff();
    const paths = result.files.map(({ path }: { path: string }) => path);
    expect(paths).to.have.members([...names, "\ufffd\ufffd"]);
    for (const { additions, new_hash: id } of result.files) {
      expect([additions, id]).to.deep.equal([1, blob]);
    }
    // Git can apply the patch without changes.
    const place = await world.checkout();
    await writeFile(join(place.folder, "..", "hostile.patch"), result.patch);
    await place.git("apply", "--cached", join(place.folder, "..", "hostile.patch"));
    expect((await place.git("ls-files", "-z")).split("\0").filter(Boolean)).to.have.length(
      names.length + 1,
    );
    for (const format of ["tar.gz", "zip"]) {
      expect((await repo.archive(format)).status, format).to.equal(200);
    }
    const { bytes: archived } = await repo.archive("tar.gz");
    const unpacked = await mkdtemp(join(world.folder, "unpacked-"));
    execFileSync("tar", ["-xz", "--strip-components=1"], { input: archived, cwd: unpacked });
    expect(execFileSync("ls", ["-1"], { cwd: unpacked }).toString()).to.contain("quo");
    const { result: listed } = await repo.ask(`/tree/${await treeIdOf(repo)}`);
    expect(listed.map(({ name }: { name: string }) => name)).to.include.members(names);
  });

  const treeIdOf = async (repo: Held) =>
    (await repo.ask("/log?limit=1")).result[0].treeHash as string;

  it("directories at the depth limit are archived, and paths past PATH_BYTES_MAX are left out", async () => {
    const nested = async (depth: number, name: string) => {
      let id = await tree(file("f"));
      for (let i = 1; i < depth; i++) id = await tree({ mode: "40000", name, id });
      return id;
    };
    const deep = await stored(await nested(TREE_DEPTH_MAX, "d"));
    expect((await deep.archive("tar.gz")).status).to.equal(200);
    const { result } = await deep.diff();
    expect(result.files[0].path).to.equal(`${"d/".repeat(TREE_DEPTH_MAX - 1)}f`);
    // The path has 16 directories of 251 bytes each, slash included, and a file name.
    const at = async (last: string) => {
      let id = await tree(file(last));
      for (let i = 0; i < 16; i++) id = await tree({ mode: "40000", name: "n".repeat(250), id });
      return await stored(id);
    };
    const rest = PATH_BYTES_MAX - 16 * 251;
    expect((await (await at("f".repeat(rest))).archive("tar.gz")).status).to.equal(200);
    const past = await (await at("f".repeat(rest + 1))).archive("tar.gz");
    expect([past.status, past.errors[0]?.code]).to.deep.equal([413, 10402]);
  });

  it("a tree that expands to more files than the limit is counted, not written", async () => {
    let id = await tree(...Array.from({ length: 10 }, (_, i) => file(`f${i}`)));
    for (let level = 0; level < 5; level++) {
      const entries = Array.from({ length: 10 }, (_, i) => ({ mode: "40000", name: `d${i}`, id }));
      id = await tree(...entries);
    }
    // The repository has a million paths in some kilobytes.
    const repo = await stored(id);
    const refused = await repo.archive("zip");
    expect([refused.status, refused.errors[0]?.code]).to.deep.equal([413, 10402]);
    expect(refused.errors[0]?.message).to.contain(String(ARCHIVE_FILES_MAX));
    const { status, result } = await repo.diff();
    expect(status).to.equal(200);
    expect(result.truncated).to.equal(true);
    expect(result.files.length).to.equal(DIFF_FILES_MAX);
    expect(result.patch.length).to.be.at.most(DIFF_PATCH_BYTES_MAX);
  });

  it("a tree that expands to directories alone is counted, not walked to its end", async () => {
    const nested = async (levels: number) => {
      let id = await tree();
      for (let level = 0; level < levels; level++) {
        id = await tree(
          ...Array.from({ length: 10 }, (_, i) => ({ mode: "40000", name: `d${i}`, id })),
        );
      }
      return id;
    };
    const few = await (await stored(await nested(3))).archive("tar.gz");
    expect(few.status).to.equal(200);
    const listed = execFileSync("tar", ["-tz"], { input: few.bytes }).toString();
    // Git leaves out directories without files.
    expect(listed).to.match(/^hostile-\d+-[0-9a-f]{12}\/\n$/);
    // The repository has a trillion directories in some kilobytes.
    const bomb = await stored(await nested(12));
    for (const format of ["zip", "tar.gz"]) {
      const refused = await bomb.archive(format);
      expect([refused.status, refused.errors[0]?.code]).to.deep.equal([413, 10402]);
      expect(refused.errors[0]?.message).to.contain("directories");
    }
  });

  it("an archive has at most ARCHIVE_PATH_BYTES_MAX bytes of paths", async () => {
    // A few trees in some kilobytes have long paths: every path begins with the same long name.
    const long = "n".repeat(PATH_BYTES_MAX - 10);
    const nested = async (...below: { mode: string; name: string; id: string }[]) =>
      await tree({ mode: "40000", name: long, id: await tree(...below) });
    const count = Math.floor(ARCHIVE_PATH_BYTES_MAX / (long.length + 4)) - 1;
    const wide = (files: number) =>
      Array.from({ length: files }, (_, i) => file(i.toString(36).padStart(3, "0")));
    expect((await (await stored(await nested(...wide(count)))).archive("tar.gz")).status).to.equal(
      200,
    );
    const past = await (await stored(await nested(...wide(count + 1)))).archive("tar.gz");
    expect([past.status, past.errors[0]?.code]).to.deep.equal([413, 10402]);
    expect(past.errors[0]?.message).to.contain(String(ARCHIVE_PATH_BYTES_MAX));
  });

  it("an archive has at most ARCHIVE_FILES_MAX files", async () => {
    const wide = (count: number, prefix: string) =>
      tree(
        ...Array.from({ length: count }, (_, i) => file(`${prefix}${String(i).padStart(6, "0")}`)),
      );
    const half = await wide(ARCHIVE_FILES_MAX / 2, "f");
    const both = [
      { mode: "40000", name: "a", id: half },
      { mode: "40000", name: "b", id: half },
    ];
    // A directory with half of ARCHIVE_FILES_MAX entries occurs twice, so the archive has exactly ARCHIVE_FILES_MAX
    // files.
    const full = await stored(await tree(...both));
    const { status, bytes } = await full.archive("tar.gz");
    expect(status).to.equal(200);
    const listed = execFileSync("tar", ["-tz"], { input: bytes, maxBuffer: 64 * 1024 * 1024 });
    expect(listed.toString().match(/[^/]\n/g)).to.have.length(ARCHIVE_FILES_MAX);
    const over = await stored(await tree(...both, file("c")));
    expect((await over.archive("tar.gz")).status).to.equal(413);
    const { result } = await full.diff();
    expect([result.truncated, result.files.length]).to.deep.equal([true, DIFF_FILES_MAX]);
    const { result: shown } = await full.ask(`/tree/${half}`);
    expect(shown).to.have.length(ARCHIVE_FILES_MAX / 2);
  });

  it("an archive has at most ARCHIVE_BYTES_MAX bytes, and a difference omits the lines of huge files", async () => {
    const bytes = 20_000_000;
    const large = await work.object("blob", Buffer.alloc(bytes, "line\n"));
    const many = Array.from({ length: Math.floor(ARCHIVE_BYTES_MAX / bytes) + 1 }, (_, i) => ({
      mode: "100644",
      name: `f${String(i).padStart(3, "0")}`,
      id: large,
    }));
    const repo = await stored(await tree(...many));
    expect((await repo.archive("tar.gz")).status).to.equal(413);
    const { status, result } = await repo.diff();
    expect(status).to.equal(200);
    expect(result.files).to.have.length(many.length);
    expect(result.patch.length).to.be.below(100_000);
    expect(result.files[0].additions).to.equal(null);
  });

  it("an archive expands no file, whatever its commit asks for", async () => {
    // Expanded, the file has 18 MB, and a commit may have any number of such files.
    const message = randomBytes(9_000).toString("hex").slice(0, 9_000);
    const large = await work.object("blob", "$Format:%B$\n".repeat(2_000));
    const ident = await work.object("blob", "$Id$\n");
    const attributes = await work.object(
      "blob",
      "[attr]expanded export-subst ident\n* export-subst ident\nb expanded\n",
    );
    const entry = (name: string, id: string) => ({ mode: "100644", name, id });
    const files = await tree(
      entry(".gitattributes", attributes),
      entry("a", large),
      entry("b", ident),
    );
    const repo = await stored(files, await work.git("commit-tree", files, "-m", message));
    for (const format of ["tar.gz", "zip"]) {
      const { status, bytes } = await repo.archive(format);
      expect(status, format).to.equal(200);
      expect(bytes.length, format).to.be.below(10_000);
      // The file is too short to be compressed in a zip archive.
      const unpacked = format === "zip" ? bytes : gunzipSync(bytes);
      expect(unpacked.includes("$Id$\n"), format).to.equal(true);
    }
  });

  it("an archive and a difference have files as they are stored, whatever line ends and encoding their commit asks for", async () => {
    const text = "one\ntwo\n";
    const attributes = await work.object(
      "blob",
      "[attr]wide working-tree-encoding=UTF-16\na text eol=crlf\nb crlf eol=crlf\nc working-tree-encoding=UTF-16\nd wide\n",
    );
    const content = await work.object("blob", text);
    const entries = ["a", "b", "c", "d"].map((name) => ({ mode: "100644", name, id: content }));
    const listed = { mode: "100644", name: ".gitattributes", id: attributes };
    const repo = await stored(await tree(listed, ...entries));
    const archived = async () => {
      for (const format of ["tar.gz", "zip"]) {
        const { status, bytes } = await repo.archive(format);
        expect(status, format).to.equal(200);
        // The files are too short to be compressed in a zip archive.
        const unpacked = format === "zip" ? bytes : gunzipSync(bytes);
        expect(unpacked.toString("latin1").split(text), format).to.have.length(1 + entries.length);
      }
    };
    await archived();
    const cache = join(world.folder, "git");
    const views = (await readdir(join(cache, "repos"), { recursive: true }))
      .filter((path) => path.endsWith("/info/attributes"))
      .map((path) => join(cache, "repos", path));
    expect(views).not.to.deep.equal([]);
    // Views that an older version wrote.
    await Promise.all(views.map((path) => writeFile(path, "* -export-subst -ident\n")));
    await rm(join(cache, "archives"), { recursive: true });
    await archived();
    const { result } = await repo.diff();
    expect(result.patch.match(/^\+one\n\+two$/gm)).to.have.length(entries.length);
  });

  it("a difference lists DIFF_FILES_MAX files, and says whether there are more", async () => {
    const wide = (count: number) =>
      tree(...Array.from({ length: count }, (_, i) => file(`f${String(i).padStart(6, "0")}`)));
    const { result: most } = await (await stored(await wide(DIFF_FILES_MAX))).diff();
    expect([most.files.length, most.truncated]).to.deep.equal([DIFF_FILES_MAX, false]);
    const { result: more } = await (await stored(await wide(DIFF_FILES_MAX + 1))).diff();
    expect([more.files.length, more.truncated]).to.deep.equal([DIFF_FILES_MAX, true]);
    expect(DIFF_LIST_BYTES_MAX).to.be.above(DIFF_FILES_MAX * 200);
  });

  it("a log has at most LOG_BYTES_MAX bytes of commits, however it is read", async () => {
    const commitOf = (bytes: number, ...parents: string[]) => {
      const head = [
        `tree ${emptyTree}`,
        ...parents.map((id) => `parent ${id}`),
        "author A <a@example.com> 1 +0000",
        "committer A <a@example.com> 1 +0000",
      ];
      const text = `${head.join("\n")}\n\n`;
      return work.object("commit", text + "m".repeat(bytes - text.length));
    };
    const emptyTree = await work.object("tree", "");
    const root = await commitOf(200);
    const below = await commitOf(SHOWN_OBJECT_BYTES_MAX, root);
    const repo = await stored(emptyTree, await commitOf(LOG_BYTES_MAX / 2, below));
    const { status, result } = await repo.ask("/log?limit=2");
    expect([status, result.length]).to.deep.equal([200, 2]);
    for (const limit of [3, 101]) {
      const { status: refused, errors } = await repo.ask(`/log?limit=${limit}`);
      expect([refused, errors[0]?.code], `${limit}`).to.deep.equal([413, 10402]);
    }
    expect((await repo.ask("/log?limit=2&offset=1")).result).to.have.length(2);
    expect((await repo.ask("/log?limit=101&offset=1")).result).to.have.length(2);
  });

  it("a directory of SHOWN_OBJECT_BYTES_MAX bytes is listed, and a larger one is refused", async () => {
    const entry = "100644 f000000\0".length + 20;
    const count = Math.floor(SHOWN_OBJECT_BYTES_MAX / entry) - 1;
    const names = Array.from({ length: count }, (_, i) => file(`f${String(i).padStart(6, "0")}`));
    const left = SHOWN_OBJECT_BYTES_MAX - count * entry;
    // Git would take a file with such a name for the object with these digits, so its directory is read.
    const nameOf = (bytes: number) =>
      `g${"x".repeat(bytes - "100644 g-g00000\0".length - 20)}-g00000`;
    const last = (bytes: number) => file(nameOf(bytes));
    const holding = (bytes: number) => work.object("tree", treeOf([...names, last(bytes)]));
    const ids = [await holding(left), await holding(left + 1)];
    const both = ids.map((id, i) => ({ mode: "40000", name: `d${i}`, id }));
    const repo = await stored(await tree(...both));
    const statuses = (paths: string[]) =>
      Promise.all(paths.map(async (path) => (await repo.ask(path)).status));
    expect(await statuses(ids.map((id) => `/tree/${id}`))).to.deep.equal([200, 413]);
    const paths = [left, left + 1].map((bytes, i) => `d${i}/${nameOf(bytes)}`);
    for (const route of ["/raw/main/", "/file?ref=main&path="]) {
      expect(await statuses(paths.map((path) => `${route}${path}`))).to.deep.equal([200, 413]);
    }
  });
});
