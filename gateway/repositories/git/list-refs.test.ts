import { expect } from "chai";
import { REFS_MAX } from "../../../schemas/repositories/limits.ts";
import { processorTime } from "../../../scripts/testing/processor-time.ts";
import { runGit } from "../process/git-process.ts";
import { type Checkout, GitWorld } from "../testing/git-world.ts";
import { LISTED_PREFIXES_MAX, listRefs } from "./list-refs.ts";
import { FLUSH, pktLine } from "./pkt-line.ts";

const DELIMITER = Buffer.from("0001");

describe("listRefs()", function () {
  this.timeout(60_000);
  let world: GitWorld;
  let work: Checkout;
  before(async () => {
    world = await GitWorld.start();
    work = await world.checkout();
  });
  after(() => world[Symbol.asyncDispose]());

  const ask = (lines: readonly string[], head = ["agent=git/2.39.5", "object-format=sha1"]) =>
    Buffer.concat([
      ...["command=ls-refs", ...head].map((line) => pktLine(`${line}\n`)),
      DELIMITER,
      ...lines.map((line) => pktLine(`${line}\n`)),
      FLUSH,
    ]);

  const manifest = async (head = "refs/heads/main") => {
    const shown = await work.tryGit("for-each-ref", "--format=%(objectname) %(refname)");
    const refs = shown.stdout.split("\n").filter(Boolean);
    return {
      head,
      refs: new Map(refs.map((line) => [line.slice(41), line.slice(0, 40)] as const)),
    } as unknown as Parameters<typeof listRefs>[0];
  };

  async function byGit(question: Buffer): Promise<string> {
    const { stdout, stderr } = await runGit(["upload-pack", "--stateless-rpc", "."], {
      cwd: work.folder,
      environment: { GIT_PROTOCOL: "version=2" },
      input: question,
      signal: AbortSignal.timeout(30_000),
    });
    expect(stderr).to.equal("");
    return stdout.toString("latin1");
  }

  const QUESTIONS = [
    [],
    ["peel", "symrefs", "unborn", "ref-prefix HEAD", "ref-prefix refs/heads/"],
    ["symrefs"],
    ["unborn"],
    ["symrefs", "unborn", "ref-prefix HEAD"],
    ["ref-prefix refs/heads/main"],
    ["ref-prefix refs/heads/m", "ref-prefix refs/heads/a", "ref-prefix refs/tags/"],
    ["ref-prefix "],
    ["ref-prefix nothing"],
    ["ref-prefix refs/heads/m/1", "ref-prefix refs/heads/m", "ref-prefix refs/heads/m-1x"],
    ["ref-prefix refs/heads/Z", "ref-prefix HE", "ref-prefix zz", "ref-prefix refs/heads/zz/y/"],
  ];

  it("answers as git does for no refs, some refs, and a missing default branch", async () => {
    const sameAsGit = async (head?: string) => {
      for (const lines of QUESTIONS) {
        const question = ask(lines);
        const answer = listRefs(await manifest(head), question)?.toString("latin1");
        expect(answer, lines.join(", ")).to.equal(await byGit(question));
      }
    };
    await sameAsGit();
    await work.commit("one");
    for (const name of ["m-1", "m.1", "m/1", "a", "Z", "zz/y"]) {
      await work.git("update-ref", `refs/heads/${name}`, "HEAD");
    }
    await sameAsGit();
    await work.git("symbolic-ref", "HEAD", "refs/heads/other");
    await sameAsGit("refs/heads/other");
    await work.git("symbolic-ref", "HEAD", "refs/heads/main");
  });

  it("leaves the targets of tags and unknown arguments to git", async () => {
    await work.git("tag", "-a", "-m", "x", "v1");
    const known = await manifest();
    expect(listRefs(known, ask(["peel"]))).to.equal(undefined);
    expect(listRefs(known, ask(["peel", "ref-prefix refs/heads/"]))).to.not.equal(undefined);
    const question = ask(["ref-prefix refs/tags/"]);
    expect(listRefs(known, question)?.toString("latin1")).to.equal(await byGit(question));
    expect(listRefs(known, ask(["something"]))).to.equal(undefined);
    expect(listRefs(known, ask([], ["server-option=x"]))).to.equal(undefined);
    expect(listRefs(known, Buffer.concat([ask([]), FLUSH]))).to.equal(undefined);
    expect(listRefs(known, ask([]).subarray(0, -1))).to.equal(undefined);
    expect(listRefs(known, Buffer.from("0003"))).to.equal(undefined);
    expect(listRefs(known, Buffer.concat([pktLine("command=fetch"), DELIMITER, FLUSH]))).to.equal(
      undefined,
    );
    expect(listRefs(known, Buffer.alloc(0))).to.equal(undefined);
    const many = Array.from({ length: LISTED_PREFIXES_MAX + 1 }, () => "ref-prefix refs/");
    expect(listRefs(known, ask(many))).to.equal(undefined);
    expect(listRefs(known, ask(many.slice(1)))).to.not.equal(undefined);
  });

  it("searches the most refs for the most prefixes within a short time", () => {
    const names = Array.from(
      { length: REFS_MAX },
      (_, i) => `refs/heads/${"long/".repeat(40)}${i}`,
    );
    const refs = new Map(names.map((name) => [name, "1".repeat(40)] as const));
    const known = { head: "refs/heads/main", refs } as unknown as Parameters<typeof listRefs>[0];
    const prefixes = Array.from(
      { length: LISTED_PREFIXES_MAX },
      (_, i) => `ref-prefix ${names[0]?.slice(0, -1)}x${i}`,
    );
    const elapsed = processorTime();
    for (let i = 0; i < 10; i++) {
      expect(listRefs(known, ask(prefixes))).to.deep.equal(FLUSH);
    }
    expect(elapsed() / 10).to.be.below(300);
  });
});
