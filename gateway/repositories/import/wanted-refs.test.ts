import { expect } from "chai";
import { describeInvalid } from "./wanted-refs.ts";

const jsonBytes = (text: string) => Buffer.byteLength(JSON.stringify(text));
const many = (count: number, name: (number: number) => string) =>
  Array.from({ length: count }, (_, number) => `refs/heads/${name(number)}`);

describe("describeInvalid()", () => {
  it("returns null without refs, and names up to 20 of them", () => {
    expect(describeInvalid([])).to.equal(null);
    const short = many(21, String);
    const why = "not imported, because names such as these are not valid here";
    expect(describeInvalid(short.slice(0, 1))).to.equal(`1 ref was ${why}: refs/heads/0`);
    const twenty = short.slice(0, 20);
    expect(describeInvalid(twenty)).to.equal(`20 refs were ${why}: ${twenty.join(", ")}`);
    expect(describeInvalid(short)).to.equal(
      `21 refs were ${why}: ${twenty.join(", ")}, and 1 more`,
    );
  });

  it("shows 38 characters of a name, and cuts a longer one", () => {
    const [most] = many(1, () => "x".repeat(27));
    expect(describeInvalid([`${most}`])).to.match(/: refs\/heads\/x{27}$/);
    expect(describeInvalid([`${most}x`])).to.match(/: refs\/heads\/x{27}…$/);
  });

  it("replaces control characters and halves of pairs", () => {
    const text = describeInvalid(["refs/heads/a\u0000b\u001b[31m\u202ec\ud800"]);
    expect(text).to.match(/: refs\/heads\/a\ufffdb\ufffd\[31m\ufffdc\ufffd$/);
    const half = describeInvalid(many(1, () => `${"x".repeat(26)}😀`));
    expect(half).to.match(/x\ufffd…$/);
  });

  it("returns at most 1,000 bytes of JSON, and counts the names that do not fit", () => {
    // An origin can list some half a million refs.
    const others = new Array<string>(499_980).fill("refs/heads/other");
    const long = describeInvalid([...many(20, () => "x".repeat(100)), ...others]) ?? "";
    expect(long.match(/refs/g)).to.have.length(1 + 20);
    expect(jsonBytes(long)).to.be.within(900, 1_002);
    for (const character of ["\u0001", "€", '"', "\\", "😀", "x", "é"]) {
      const refs = many(20, (number) => character.repeat(20 + number));
      const text = describeInvalid([...refs, ...others]) ?? "";
      expect(jsonBytes(text), character).to.be.within(700, 1_002);
      const shown = text.split(": ")[1]?.split(", ") ?? [];
      expect(shown.at(-1)).to.equal(`and ${500_000 - (shown.length - 1)} more`);
    }
  });
});
