import { expect } from "chai";
import { hasInformation, neutralize, PageCounter } from "./pdf-metadata.ts";

const HEAD = `%PDF-1.4
1 0 obj
<</Title (a /Creator \\(x\\))
/Creator (Mozilla/5.0 \\(X11; Linux\\) Chrome/156)
/Producer (Skia/PDF m156)
/CreationDate (D:20261121080308+00'00')
/ModDate (D:20261121080308+00'00')>>
endobj
3 0 obj
`;

describe("PDF metadata", () => {
  it("neutralize() keeps every byte's place and the title", () => {
    const rewritten = Buffer.from(neutralize(Buffer.from(HEAD))).toString();
    expect(rewritten).to.have.length(HEAD.length);
    expect(rewritten).to.include(
      "<</Title (a /Creator \\(x\\))\n/Creator (Trunkline)\n/Producer (Trunkline)\n",
    );
    expect(rewritten.indexOf("endobj")).to.equal(HEAD.indexOf("endobj"));
    expect(rewritten).to.not.match(/Skia|Chrome|2026/);
  });

  it("neutralize() fails where there is no information dictionary, or no room", () => {
    expect(() =>
      neutralize(Buffer.from("%PDF-1.4\n1 0 obj\n<</Type /Page>>\nendobj\n")),
    ).to.throw();
    const short = HEAD.replace(/Mozilla.*156/, "x").replace("Skia/PDF m156", "y");
    expect(() => neutralize(Buffer.from(short))).to.throw("no room");
  });

  it("hasInformation() waits for the whole dictionary", () => {
    const end = HEAD.indexOf("\nendobj\n") + "\nendobj\n".length;
    expect(hasInformation(Buffer.from(HEAD.slice(0, end)))).to.equal(true);
    expect(hasInformation(Buffer.from(HEAD.slice(0, end - 1)))).to.equal(false);
  });

  it("PageCounter finds the largest count, wherever pieces end", () => {
    const pdf = Buffer.from(
      "x<</Type /Pages\n/Count 8\n/Kids>>yy<</Type /Pages\n/Count 120\n/Kids>><</Type /Pages\n/Count 9",
    );
    for (let size = 1; size <= pdf.length; size++) {
      const counter = new PageCounter();
      for (let at = 0; at < pdf.length; at += size) counter.read(pdf.subarray(at, at + size));
      expect(counter.pages, `in pieces of ${size}`).to.equal(120);
    }
  });
});
