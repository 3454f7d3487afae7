import { expect } from "chai";
import { answerIn } from "./read-process.ts";

describe("answerIn()", () => {
  const id = "1".repeat(40);
  const parse = (text: string, name = "main:path", command: "info" | "contents" = "info") =>
    answerIn(Buffer.from(text), { name: Buffer.from(name), command });

  it("returns an object with its content", () => {
    const found = { id, type: "blob", bytes: 3 };
    expect(parse(`${id} blob 3\nnext`)).to.deep.equal({ found, length: 48 });
    expect(parse(`${id} blob 3\nab`, "x", "contents")).to.deep.equal({ needed: 52 });
    expect(parse(`${id} blob 3\nabc\n`, "x", "contents")).to.deep.equal({
      found: { ...found, content: Buffer.from("abc") },
      length: 52,
    });
  });

  it("finds nothing for a missing and an ambiguous name, whatever characters it contains", () => {
    for (const name of ["main:path", "main:a\nb", `${id} blob 3\n`, "a missing\nb"]) {
      for (const word of ["missing", "ambiguous"]) {
        const line = `${name} ${word}\n`;
        const length = Buffer.byteLength(line);
        expect(parse(`${line}next`, name), line).to.deep.equal({ found: undefined, length });
        // A part of the line is no response yet, also if the part ends behind a newline of the name.
        for (let end = 0; end < line.length; end++) {
          expect(parse(line.slice(0, end), name), `${end} of ${line}`).to.equal(undefined);
        }
      }
    }
  });

  it("finds nothing at the path of a submodule, for which git 2.51 prints the id of its commit", () => {
    for (const command of ["info", "contents"] as const) {
      for (const digits of [40, 64]) {
        const line = `${"2".repeat(digits)} submodule\n`;
        expect(parse(`${line}next`, "main:sub", command)).to.deep.equal({
          found: undefined,
          length: line.length,
        });
        expect(parse(line.slice(0, -1), "main:sub", command)).to.equal(undefined);
      }
    }
  });

  it("reports any other line", () => {
    for (const line of ["submodule", `${id} submodule 3`, `${id} loop 3 x`, "", "other missing"]) {
      expect(parse(`${line}\n`), line).to.deep.equal({ unknown: line });
    }
  });
});
