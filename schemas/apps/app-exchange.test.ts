import { expect } from "chai";
import { inlineBody, inlineBytes } from "./app-exchange.ts";

describe("app-exchange", () => {
  const again = (bytes: Buffer) => inlineBytes(inlineBody(bytes));

  it("inlineBody() and inlineBytes() return exactly the same bytes for any input", () => {
    const mark = Buffer.from([0xef, 0xbb, 0xbf, 0x61]);
    const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    for (const bytes of [
      Buffer.alloc(0),
      Buffer.from("h\u00e9\n"),
      mark,
      all,
      Buffer.from([0xc3]),
    ]) {
      expect(again(bytes).equals(bytes), bytes.toString("hex")).to.equal(true);
    }
    // For a view of a larger buffer, only the bytes of the view count.
    expect(again(all.subarray(7, 200)).equals(all.subarray(7, 200))).to.equal(true);
  });

  it("inlineBody() is text if that is exact and short in JSON", () => {
    expect(inlineBody(Buffer.from("a\tb\r\n"))).to.deep.equal({ text: "a\tb\r\n" });
    expect(inlineBody(Buffer.from("a\u0000b"))).to.have.property("base64");
    expect(inlineBody(Buffer.from([0xff]))).to.have.property("base64");
  });
});
