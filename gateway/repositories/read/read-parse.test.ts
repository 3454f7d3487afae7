import { expect } from "chai";
import { processorTime } from "../../../scripts/testing/processor-time.ts";
import { parseCommit, parseTree } from "./read-parse.ts";

const TREE = "1".repeat(40);
const HEAD = `tree ${TREE}\nparent ${"2".repeat(40)}\nparent ${"3".repeat(40)}\nauthor A <a@x> 7 +0000\ncommitter B <b@x> 8 -0130\n`;

describe("parseCommit()", () => {
  const parse = (text: string) => parseCommit("0".repeat(40), Buffer.from(text));

  it("reads the first of each field and all parents, and skips continuation lines", () => {
    const more = `author C <c@x> 9 +0000\ngpgsig x\n tree ${"4".repeat(40)}\nencoding UTF-8\n`;
    expect(parse(`${HEAD}${more}\nmessage\n\nbody\n`)).to.deep.equal({
      hash: "0".repeat(40),
      treeHash: TREE,
      message: "message\n\nbody",
      author: { name: "A", email: "a@x" },
      committer: { name: "B", email: "b@x" },
      parents: ["2".repeat(40), "3".repeat(40)],
      authoredAt: 7,
      committedAt: 8,
    });
    expect(parse("tree x").message).to.equal("");
  });

  it("reads texts in the encoding that the commit names, and in UTF-8 if it names none that is known", () => {
    const parsed = (encoding: string, bytes: Buffer) => {
      const head = Buffer.from(`${HEAD}encoding ${encoding}\n\n`);
      return parseCommit("0".repeat(40), Buffer.concat([head, bytes]));
    };
    const polish = Buffer.from([0x5a, 0x61, 0xbf, 0xf3, 0xb3, 0xe6]);
    expect(parsed("ISO-8859-2", polish).message).to.equal("Zażółć");
    for (const encoding of ["ISO-8859-1", "latin1", "latin-1", "Latin-1"]) {
      expect(parsed(encoding, Buffer.from("größer", "latin1")).message, encoding).to.equal(
        "größer",
      );
    }
    const japanese = Buffer.from([0x93, 0xfa, 0x96, 0x7b]);
    expect(parsed("Shift_JIS", japanese).message).to.equal("日本");
    for (const encoding of ["UTF-8", "utf8", "none", "utf-16le", "iso-2022-kr"]) {
      const { message, author, treeHash } = parsed(encoding, Buffer.from("größer"));
      expect([message, author.name, treeHash]).to.deep.equal(["größer", "A", TREE]);
    }
    // Only a field names the encoding, not the message or a signature.
    const named = `${HEAD}gpgsig x\n encoding ISO-8859-1\n\nencoding ISO-8859-1\ngrößer`;
    expect(parse(named).message).to.contain("größer");
    const inLine = `${HEAD}gpgsig x\rencoding ISO-8859-1\ry\n\ngrößer`;
    expect(parse(inLine).message).to.equal("größer");
  });

  it("reads texts up to 1 MiB in the encoding that the commit names, and longer ones in UTF-8", () => {
    const parsed = (bytes: number) => {
      const content = Buffer.alloc(bytes, ".");
      content.write(`${HEAD}encoding ISO-8859-1\n\ngrün`);
      return parseCommit("0".repeat(40), content).message.replace(/\.+$/, "");
    };
    expect(parsed(1024 * 1024)).to.equal("grÃ¼n");
    expect(parsed(1024 * 1024 + 1)).to.equal("grün");
  });

  it("parses a commit of very many lines in a short time, whatever their names", () => {
    for (const line of ["x y\n", `parent ${"2".repeat(40)}\n`, "gpgsig x\n y\n"]) {
      const elapsed = processorTime();
      const { treeHash } = parse(`${HEAD}${line.repeat(100_000)}\nmessage`);
      expect(treeHash).to.equal(TREE);
      expect(elapsed(), line).to.be.below(5_000);
    }
  });
});

describe("parseTree()", () => {
  it("takes each entry for what git takes it for, whatever other bits its mode has", async () => {
    const modes = [
      ["100644", "blob"],
      ["100664", "blob"],
      ["100755", "exec"],
      ["100700", "exec"],
      ["120777", "symlink"],
      ["40000", "tree"],
      ["040000", "tree"],
      ["40755", "tree"],
      ["160000", "gitlink"],
      ["140000", "gitlink"],
    ] as const;
    const id = Buffer.alloc(20, 1);
    const tree = modes.flatMap(([mode]) => [Buffer.from(`${mode} n\0`), id]);
    const entries = await parseTree(Buffer.concat(tree));
    expect(entries.map(({ type }) => type)).to.deep.equal(modes.map(([, type]) => type));
  });
});
