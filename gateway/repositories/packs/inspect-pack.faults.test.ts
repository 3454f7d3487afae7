import { createHash } from "node:crypto";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deflateRawSync, deflateSync } from "node:zlib";
import { expect } from "chai";
import { GIT_SIZES, inflatedBytes } from "../../../schemas/repositories/git-sizes.ts";
import {
  FILE_BYTES_MAX,
  INFLATED_FACTOR,
  REPO_BYTES_MAX,
} from "../../../schemas/repositories/limits.ts";
import { filesOf } from "../cache/cache-files.ts";
import { Checkout } from "../testing/git-world.ts";
import { inspectPack, READ_DELTA_BYTES_MAX } from "./inspect-pack.ts";
import { deltaBytesIn, PackIndex } from "./pack-file.ts";
import { withWhole } from "./pack-store.ts";

const signal = new AbortController().signal;

describe("inspectPack()", function () {
  this.timeout(600_000);
  const folders: string[] = [];
  after(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true }))));

  /**
   * Creates a repository with one pack of this many commits and trees. Successive versions differ little, so that git
   * stores deltas.
   */
  async function packed(commits: number) {
    const work = new Checkout(await mkdtemp(join(tmpdir(), "trunkline-inspect-")));
    folders.push(work.folder);
    await work.git("init", "-q", "-b", "main");
    const lines = Array.from({ length: 200 }, (_, i) => `line ${i}`).join("\n");
    for (let i = 0; i < commits; i++) await work.commit(`${i}\n${lines}\n${i}`);
    await work.git("repack", "-adq");
    const folder = join(work.folder, ".git/objects/pack");
    const [name = ""] = (await readdir(folder)).filter((entry) => entry.endsWith(".pack"));
    const environment = { GIT_DIR: ".git" };
    const places = { cwd: work.folder, alone: environment, together: environment };
    return { work, files: filesOf(join(folder, name.replace(".pack", ""))), places };
  }

  it("reads the types of tips itself as git does, also behind deltas", async () => {
    const { work, files, places } = await packed(20);
    const listed = await work.git("cat-file", "--batch-all-objects", "--batch-check");
    const expected = listed
      .split("\n")
      .map((line) => line.split(" ").slice(0, 2) as [string, string]);
    const tips = new Set(expected.map(([id]) => id));
    const { types, fault } = await inspectPack(files, places, tips, signal);
    expect(fault).to.equal(undefined);
    expect([...types].sort()).to.deep.equal(expected.sort());
    expect(expected).to.have.length(60);
  });

  it("reads deltas of READ_DELTA_BYTES_MAX itself, and leaves larger ones to git", async () => {
    const { files, places } = await packed(20);
    const { whole } = withWhole(files);
    if (!whole) throw new Error("it is not small");
    const index = new PackIndex(whole.index);
    const bytes = deltaBytesIn(whole.pack, index);
    expect(bytes).to.be.within(20, READ_DELTA_BYTES_MAX);
    const nowhere = { ...places, alone: { GIT_DIR: "/nonexistent" } };
    const inspected = (deltaBytesMax: number) =>
      inspectPack({ ...files, whole }, nowhere, new Set(), signal, { deltaBytesMax }).then(
        ({ fault }) => fault,
        (error: Error) => error.message,
      );
    expect(await inspected(bytes)).to.equal(undefined);
    expect(await inspected(bytes - 1)).to.contain("Cannot list objects of a push");
  });

  it("reads a delta whose compressed bytes begin with many empty blocks", async () => {
    const work = new Checkout(await mkdtemp(join(tmpdir(), "trunkline-inspect-")));
    folders.push(work.folder);
    await work.git("init", "-q");
    const base = Buffer.from("base".repeat(9));
    // The sizes 36 and 37, a copy of 36 bytes, and one more byte.
    const delta = Buffer.from([36, 37, 0x90, 36, 1, 0x78]);
    const empty = Array.from({ length: 1_000 }, () => Buffer.from("000000ffff", "hex"));
    const packedBase = Buffer.concat([Buffer.from([0xb4, 2]), deflateSync(base)]);
    const packedDelta = Buffer.concat([
      Buffer.from([0x66, packedBase.length]),
      ...[Buffer.from("7801", "hex"), ...empty, deflateRawSync(delta)],
      deflateSync(delta).subarray(-4),
    ]);
    const head = Buffer.from("5041434b0000000200000002", "hex");
    const content = Buffer.concat([head, packedBase, packedDelta]);
    const sum = createHash("sha1").update(content).digest();
    const path = join(work.folder, "pack-x");
    await writeFile(`${path}.pack`, Buffer.concat([content, sum]));
    await work.git("index-pack", "--strict", `${path}.pack`);
    const ids = [base, Buffer.concat([base, Buffer.from("x")])].map((blob) =>
      createHash("sha1").update(`blob ${blob.length}\0`).update(blob).digest("hex"),
    );
    const nowhere = { cwd: work.folder, alone: {}, together: {} };
    const files = withWhole(filesOf(path));
    const { types } = await inspectPack(files, nowhere, new Set(ids), signal);
    expect([...types].sort()).to.deep.equal(ids.map((id) => [id, "blob"]).sort());
  });

  it("accepts treesMax directories and refuses one more, whether git or our code lists them", async () => {
    for (const commits of [40, 70]) {
      const { files, places } = await packed(commits);
      const inspected = (treesMax: number) =>
        inspectPack(files, places, new Set(), signal, { treesMax });
      expect((await inspected(commits)).fault).to.equal(undefined);
      expect((await inspected(commits - 1)).fault).to.contain("too many directories");
    }
  });

  it("accepts objects up to the limits for each and for all, and refuses one byte more", async () => {
    for (const commits of [20, 70]) {
      const { work, files, places } = await packed(commits);
      const format = "--batch-check=%(objectsize)";
      const listed = await work.git("cat-file", "--batch-all-objects", format);
      const bytes = listed.split("\n").map(Number);
      const largest = Math.max(...bytes);
      const all = bytes.reduce((sum, size) => sum + size, 0);
      const faultOf = async (fileBytes: number, repoBytes: number) => {
        const sizes = { fileBytes, repoBytes };
        return (await inspectPack(files, places, new Set(), signal, { sizes })).fault;
      };
      expect(await faultOf(largest, all / INFLATED_FACTOR)).to.equal(undefined);
      expect(await faultOf(largest - 1, all)).to.match(
        /^(the file "|object ).* bytes, more than \d+ \(TRUNKLINE_GIT_FILE_BYTES\)/,
      );
      expect(await faultOf(largest, (all - 1) / INFLATED_FACTOR)).to.contain("unpacked");
    }
    expect(GIT_SIZES).to.include({ fileBytes: FILE_BYTES_MAX, repoBytes: REPO_BYTES_MAX });
    expect(inflatedBytes(GIT_SIZES)).to.equal(INFLATED_FACTOR * REPO_BYTES_MAX);
  });

  it("ends when its caller's signal aborts", async () => {
    const { files, places } = await packed(70);
    const gone = new AbortController();
    gone.abort("gone");
    const reason = await inspectPack(files, places, new Set(), gone.signal).catch((error) => error);
    expect(reason).to.equal("gone");
  });
});
