import { expect } from "chai";
import { SeededRandom } from "../../../../scripts/testing/seeded-random.ts";
import { packLines, unpackLines } from "./packed-lines.ts";

describe("packed lines", () => {
  for (const [what, lines, text] of [
    ["one line", ["https://a.example/"], "0 https://a.example/"],
    ["lines that begin alike", ["a/b\t1", "a/c\t2", "b"], "0 a/b\t1\n2 c\t2\n0 b"],
    ["equal lines", ["a b", "a b"], "0 a b\n3 "],
    ["an empty line", ["a", "", "a"], "0 a\n0 \n0 a"],
    ["a line that begins with a number", ["1 2", "1 23", "12"], "0 1 2\n3 3\n1 2"],
  ] as const) {
    it(`reads back as it was packed: ${what}`, () => {
      expect(packLines(lines)).to.equal(text);
      expect(unpackLines(text)).to.deep.equal(lines);
    });
  }

  it("characters of two units that begin alike survive JSON", () => {
    const lines = ["/\u{1f600}", "/\u{1f601}"];
    const text = Buffer.from(JSON.stringify(packLines(lines))).toString();
    expect(unpackLines(JSON.parse(text))).to.deep.equal(lines);
  });

  it("random lines read back", () => {
    const seed = SeededRandom.newSeed();
    const random = new SeededRandom(seed);
    for (let time = 0; time < 1_000; time += 1) {
      const character = () => random.pick(["a", " ", "1", "\t"]);
      const line = () => Array.from({ length: random.integer(0, 5) }, character).join("");
      const lines = Array.from({ length: random.integer(1, 8) }, line);
      expect(unpackLines(packLines(lines)), `seed ${seed}`).to.deep.equal(lines);
    }
  });
});
