import { randomBytes } from "node:crypto";
import { deflateSync, gzipSync } from "node:zlib";
import { expect } from "chai";
import { systemClock } from "../../../actors/runtime/lib/clock.ts";
import { BlobStore } from "../../../actors/runtime/store/blob-store.ts";
import { ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import { PUSH_OPTIONS_MAX, TREE_DEPTH_MAX } from "../../../schemas/repositories/limits.ts";
import { until } from "../../../scripts/testing/until.ts";
import {
  type Checkout,
  type GitGateway,
  GitWorld,
  type TestRepo,
  treeOf,
} from "../testing/git-world.ts";
import { EMPTY_PACK, post, pushBody, rawPush, withSum } from "../testing/raw-push.ts";
import { FLUSH, pktLine } from "./pkt-line.ts";

const ABSENT = "1234567890123456789012345678901234567890";

describe("contents that a push must not have", function () {
  this.timeout(600_000);
  let world: GitWorld;
  let gateway: GitGateway;
  let work: Checkout;
  let repo: TestRepo;
  let blob: string;
  before(async () => {
    world = await GitWorld.start();
    gateway = await world.gateway();
    work = await world.checkout();
    await work.commit("good");
    blob = await work.object("blob", "content");
  });
  after(() => world[Symbol.asyncDispose]());
  beforeEach(async () => {
    repo = await world.repo();
  });
  afterEach(async () => {
    // After a refusal nothing is stored.
    expect(await work.git("ls-remote", gateway.remote(repo))).to.equal("");
    expect(gateway.faults).to.deep.equal([]);
    await until("slots are free", () => gateway.service.parts.slots.running === 0);
  });

  const refusedPush = async (commit: string) => {
    const pushed = await work.tryGit("push", gateway.remote(repo), `${commit}:refs/heads/x`);
    expect(pushed.code, pushed.stderr).to.not.equal(0);
    expect(pushed.stderr).to.match(/remote rejected|unpack|RPC failed/);
    return pushed.stderr;
  };

  const names = [".git", ".GIT", "git~1", ".g\u200cit", "..", ".", "a/b"];
  for (const name of names) {
    it(`a tree with the name ${JSON.stringify(name)}`, async () => {
      await refusedPush(await work.commitTree(await work.tree("100644", name, blob)));
      await refusedPush(
        await work.commitTree(await work.tree("40000", name, await work.tree("100644", "f", blob))),
      );
    });
  }

  it("trees that are unsorted, have a name twice, or a mode that is none", async () => {
    const entry = (name: string, mode = "100644") => ({ mode, name, id: blob });
    for (const entries of [
      [entry("b"), entry("a")],
      [entry("a"), entry("a")],
    ]) {
      await refusedPush(await work.commitTree(await work.object("tree", treeOf(entries))));
    }
  });

  it("a .gitmodules that is a link, or whose addresses are options of git", async () => {
    await refusedPush(await work.commitTree(await work.tree("120000", ".gitmodules", blob)));
    for (const text of [
      '[submodule "x"]\n\tpath = x\n\turl = --upload-pack=touch bad\n',
      '[submodule "x"]\n\tpath = -x\n\turl = https://example.com/\n',
      '[submodule "../../x"]\n\tpath = x\n\turl = https://example.com/\n',
    ]) {
      const modules = await work.object("blob", text);
      await refusedPush(await work.commitTree(await work.tree("100644", ".gitmodules", modules)));
    }
  });

  it("malformed commits and tags", async () => {
    const tree = await work.tree("100644", "f", blob);
    const person = "A <a@example.com> 1 +0000";
    for (const text of [
      `tree ${tree}\nauthor ${person}\n\nno committer\n`,
      `tree ${tree}\nauthor A <a@example.com\ncommitter ${person}\n\nx\n`,
      `author ${person}\ncommitter ${person}\n\nno tree\n`,
      `tree ${tree}\nauthor ${person}\0\ncommitter ${person}\n\nnul\n`,
    ]) {
      const value = await work.object("commit", text);
      const pack = await packOf(work, [value, tree, blob]);
      const command = { old: ZERO_ID, value, ref: "refs/heads/x" };
      expect(await rawPush(gateway, repo, [command], pack)).to.match(/unpack (?!ok)/);
    }
    const tag = await work.object(
      "tag",
      `object ${blob}\ntype commit\ntag x\ntagger ${person}\n\nx\n`,
    );
    const pack = await packOf(work, [tag, blob]);
    const command = { old: ZERO_ID, value: tag, ref: "refs/tags/x" };
    expect(await rawPush(gateway, repo, [command], pack)).to.match(/unpack (?!ok)/);
  });

  it("branches that point to other objects than commits, and missing tips", async () => {
    const tree = await work.tree("100644", "f", blob);
    const tag = await work.object(
      "tag",
      `object ${await work.git("rev-parse", "main")}\ntype commit\ntag x\ntagger A <a@example.com> 1 +0000\n\nx\n`,
    );
    const pack = await packOf(work, [
      blob,
      tree,
      tag,
      await work.git("rev-parse", "main"),
      await work.git("rev-parse", "main^{tree}"),
      await work.git("rev-parse", "main:file.txt"),
    ]);
    for (const value of [blob, tree, tag]) {
      const report = await rawPush(
        gateway,
        repo,
        [{ old: ZERO_ID, value, ref: "refs/heads/x" }],
        pack,
      );
      expect(report).to.contain("non-commit object");
    }
    for (const ref of ["refs/heads/x", "refs/tags/x"]) {
      const report = await rawPush(gateway, repo, [{ old: ZERO_ID, value: ABSENT, ref }]);
      expect(report).to.contain("missing necessary objects");
    }
  });

  it("packs that link to missing objects", async () => {
    const commit = await work.git("rev-parse", "main");
    const value = commit;
    for (const missing of [[commit], [commit, await work.git("rev-parse", "main^{tree}")]]) {
      const pack = await packOf(work, missing);
      const report = await rawPush(
        gateway,
        repo,
        [{ old: ZERO_ID, value, ref: "refs/heads/x" }],
        pack,
      );
      expect(report).to.match(/unpack (?!ok)/);
    }
  });

  it("bytes that are not a pack, and packs that are truncated, altered or have a wrong object count", async () => {
    const value = await work.git("rev-parse", "main");
    const good = await packOf(work, [
      value,
      await work.git("rev-parse", "main^{tree}"),
      await work.git("rev-parse", "main:file.txt"),
    ]);
    const broken = Buffer.from(good);
    broken[20] = (broken[20] ?? 0) ^ 255;
    const more = Buffer.from(good.subarray(0, -20));
    more.writeUInt32BE(9, 8);
    const fewer = Buffer.from(good.subarray(0, -20));
    fewer.writeUInt32BE(1, 8);
    const packs = [
      Buffer.of(),
      Buffer.from("PACK"),
      randomBytes(1_000),
      good.subarray(0, -1),
      good.subarray(0, 40),
      broken,
      withSum(more),
      withSum(fewer),
      withSum(Buffer.from("5041434b00000009ffffffff", "hex")),
    ];
    for (const pack of packs) {
      const report = await rawPush(
        gateway,
        repo,
        [{ old: ZERO_ID, value, ref: "refs/heads/x" }],
        pack,
      );
      expect(report).to.match(/ng refs\/heads\/x/);
    }
  });

  it("a file past the size limit, however small it is compressed", async () => {
    const commands = [{ old: ZERO_ID, value: ABSENT, ref: "refs/heads/x" }];
    const zeros = Buffer.alloc(33 * 1024 * 1024);
    const pack = withSum(
      Buffer.concat([packHead(1), entryHead(3, zeros.length), deflateSync(zeros)]),
    );
    expect(pack.length).to.be.below(100_000);
    expect(await rawPush(gateway, repo, commands, pack)).to.match(/unpack object .* more than/);
  });

  it("a delta that expands some hundred bytes to a gigabyte", async () => {
    const commands = [{ old: ZERO_ID, value: ABSENT, ref: "refs/heads/x" }];
    const pack = deltaBomb(1024 ** 3);
    expect(pack.length).to.be.below(200_000);
    expect(await rawPush(gateway, repo, commands, pack)).to.match(/unpack (?!ok)/);
  });

  it("directories nested so deep that the recursion of a clone would fail", async () => {
    // Git takes every mode with the type of a directory for a directory.
    for (const [depth, mode] of [
      [TREE_DEPTH_MAX + 1, "40000"],
      [TREE_DEPTH_MAX + 1, "040000"],
      [TREE_DEPTH_MAX + 1, "40755"],
      [20_000, "40000"],
    ] as const) {
      const { pack, tip } = deepTrees(depth, mode);
      const report = await rawPush(
        gateway,
        repo,
        [{ old: ZERO_ID, value: tip, ref: "refs/heads/x" }],
        pack,
      );
      expect(report, mode).to.match(/unpack its directories are \d+ deep/);
    }
  });

  it("pushes that the repository refuses, without storing their packs", async () => {
    const file = await work.object("blob", randomBytes(20));
    const tree = await work.tree("100644", "new.txt", file);
    const commit = await work.commitTree(tree);
    const packed = await packOf(work, [commit, tree, file]);
    const blobs = new BlobStore(world.world.bus, systemClock);
    const before = await blobs.names("git");
    const make = (ref: string, old = ZERO_ID) => ({ old, value: commit, ref });
    const twice = make("refs/heads/twice");
    for (const [what, commands, atomic] of [
      ["fetch first", [make("refs/heads/moved", ABSENT)], false],
      ["funny refname", [make("refs/heads/..")], false],
      ["multiple updates", [twice, twice], false],
      ["fetch first", [make("refs/heads/good"), make("refs/heads/moved", ABSENT)], true],
    ] as const) {
      const capabilities = atomic ? "report-status atomic" : "report-status";
      const body = pushBody(commands, packed, capabilities);
      const answer = await post(gateway, repo, "git-receive-pack", body);
      const report = await answer.text();
      expect(report).to.contain("unpack ok").and.to.contain(what);
      if (atomic) expect(report).to.contain("ng refs/heads/good atomic transaction failed");
    }
    expect(await blobs.names("git")).to.deep.equal(before);
  });

  it("malformed commands", async () => {
    const line = `${ZERO_ID} ${ABSENT} refs/heads/x\0 report-status\n`;
    const bodies = [
      Buffer.from("zzzz"),
      Buffer.from("0003"),
      Buffer.from("00"),
      Buffer.from("ffff"),
      pktLine(line),
      Buffer.concat([pktLine("no command\n"), FLUSH]),
      Buffer.concat([pktLine(`${ZERO_ID} ${ABSENT.slice(1)} refs/heads/x\0\n`), FLUSH]),
      Buffer.concat([pktLine(`push-cert\0 report-status\n`), FLUSH]),
      Buffer.concat([pktLine(`${ZERO_ID} ${ABSENT} refs/heads/x\0 object-format=sha256\n`), FLUSH]),
    ];
    for (const body of bodies) {
      expect((await post(gateway, repo, "git-receive-pack", Buffer.from(body))).status).to.equal(
        400,
      );
    }
    expect((await post(gateway, repo, "git-receive-pack", Buffer.from("0000"))).status).to.equal(
      200,
    );
    const options = Array.from({ length: PUSH_OPTIONS_MAX + 1 }, () => pktLine("x\n"));
    const body = Buffer.concat([
      pktLine(line.replace("\n", " push-options\n")),
      FLUSH,
      ...options,
      FLUSH,
    ]);
    expect((await post(gateway, repo, "git-receive-pack", body)).status).to.equal(413);
  });

  it("refs with invalid names", async () => {
    const value = await work.git("rev-parse", "main");
    const pack = await packOf(work, [
      value,
      await work.git("rev-parse", "main^{tree}"),
      await work.git("rev-parse", "main:file.txt"),
    ]);
    const refs = [
      "HEAD",
      "refs/heads",
      "refs/heads/",
      "refs/heads/a..b",
      "refs/heads/.a",
      "refs/heads/a.lock",
      "refs/heads/a b",
      "refs/heads/a~",
      "refs/heads/a//b",
      "refs/heads/../../x",
      "refs/heads/a\x7f",
      "refs/heads/@{x",
      "refs/replace/x",
      "refs/internal/x",
      "refs/heads/a\\b",
      `refs/heads/${"x".repeat(1_100)}`,
    ];
    for (const ref of refs) {
      const response = await post(
        gateway,
        repo,
        "git-receive-pack",
        pushBody([{ old: ZERO_ID, value, ref }], pack),
      );
      expect(await response.text(), ref).to.not.match(/\bok refs/);
    }
    const twice = [1, 2].map(() => ({ old: ZERO_ID, value, ref: "refs/heads/x" }));
    expect(await rawPush(gateway, repo, twice, pack)).to.contain("multiple updates");
  });

  it("bodies that decompress to more than the limit, or to nothing", async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
    const packed = { "Content-Encoding": "gzip" };
    const fetched = await post(gateway, repo, "git-upload-pack", Buffer.from(bomb), packed);
    expect(fetched.status).to.equal(413);
    expect(
      (await post(gateway, repo, "git-receive-pack", Buffer.from(bomb), packed)).status,
    ).to.equal(400);
    expect(
      (await post(gateway, repo, "git-receive-pack", Buffer.from("no gzip"), packed)).status,
    ).to.equal(400);
    const unknown = { "Content-Encoding": "br" };
    expect(
      (await post(gateway, repo, "git-receive-pack", Buffer.from("x"), unknown)).status,
    ).to.equal(415);
  });

  it("accepts valid gzipped bodies", async () => {
    const packed = { "Content-Encoding": "gzip" };
    const body = pushBody([{ old: ZERO_ID, value: ABSENT, ref: "refs/heads/x" }], EMPTY_PACK);
    const response = await post(gateway, repo, "git-receive-pack", gzipSync(body), packed);
    expect(await response.text()).to.contain("missing necessary objects");
  });
});

async function packOf(work: Checkout, ids: readonly string[]): Promise<Buffer> {
  const { execFileSync } = await import("node:child_process");
  return execFileSync("git", ["pack-objects", "--stdout", "-q"], {
    cwd: work.folder,
    input: `${ids.join("\n")}\n`,
  });
}

function packHead(objects: number): Buffer {
  const head = Buffer.from("5041434b0000000200000000", "hex");
  head.writeUInt32BE(objects, 8);
  return head;
}

function entryHead(type: number, bytes: number): Buffer {
  const head: number[] = [];
  let byte = (type << 4) | (bytes & 15);
  for (let rest = Math.floor(bytes / 16); rest > 0; rest = Math.floor(rest / 128)) {
    head.push(byte | 128);
    byte = rest & 127;
  }
  return Buffer.from([...head, byte]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest & 127) | 128);
  return Buffer.from([...bytes, rest]);
}

/** Returns a pack of a blob of 64 KiB and a delta that copies this blob many times. */
function deltaBomb(bytes: number): Buffer {
  const base = Buffer.alloc(0x10000);
  const baseHead = entryHead(3, base.length);
  const basePacked = deflateSync(base);
  // Each instruction copies 0x10000 bytes from the start of the base, because a missing size means 0x10000.
  const copies = Buffer.alloc(bytes / base.length, 0x80);
  const delta = Buffer.concat([varint(base.length), varint(bytes), copies]);
  const distance = baseHead.length + basePacked.length;
  return withSum(
    Buffer.concat([
      packHead(2),
      baseHead,
      basePacked,
      entryHead(6, delta.length),
      ofsDistance(distance),
      deflateSync(delta),
    ]),
  );
}

function ofsDistance(distance: number): Buffer {
  const bytes = [distance & 127];
  for (let rest = distance >> 7; rest > 0; rest >>= 7) {
    rest -= 1;
    bytes.unshift((rest & 127) | 128);
  }
  return Buffer.from(bytes);
}

/**
 * Settings with which zlib allocates little memory for each tiny object. By default it allocates a quarter of a
 * megabyte, and 20,000 objects would take 5 s.
 */
const SMALL_WINDOW = { windowBits: 9, memLevel: 1 };

function deepTrees(depth: number, directory: string): { pack: Buffer; tip: string } {
  const entries: Buffer[] = [];
  const add = (type: string, number: number, content: Buffer) => {
    entries.push(entryHead(number, content.length), deflateSync(content, SMALL_WINDOW));
    return idOf(type, content);
  };
  let id = add("blob", 3, Buffer.from("x"));
  let mode = "100644";
  for (let i = 0; i < depth; i++) {
    id = add("tree", 2, treeOf([{ mode, name: "d", id }]));
    mode = directory;
  }
  const person = "A <a@example.com> 1 +0000";
  const tip = add(
    "commit",
    1,
    Buffer.from(`tree ${id}\nauthor ${person}\ncommitter ${person}\n\nx\n`),
  );
  return { pack: withSum(Buffer.concat([packHead(depth + 2), ...entries])), tip };
}

function idOf(type: string, content: Buffer): string {
  return withSum(Buffer.concat([Buffer.from(`${type} ${content.length}\0`), content]))
    .subarray(-20)
    .toString("hex");
}
