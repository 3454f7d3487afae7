import { PDFDocument } from "@cantoo/pdf-lib";
import { expect } from "chai";
import { METADATA_CHARS_MAX } from "../../../../schemas/rendering/limits.ts";
import { openPool, print } from "../../../../scripts/testing/printer.ts";
import { propertiesUpdate } from "./pdf-properties.ts";

async function propertiesOf(bytes: Uint8Array) {
  const document = await PDFDocument.load(bytes, { updateMetadata: false });
  return {
    title: document.getTitle(),
    author: document.getAuthor(),
    subject: document.getSubject(),
    keywords: document.getKeywords(),
    creator: document.getCreator(),
  };
}

describe("properties of a PDF", function () {
  this.timeout(60_000);
  const pool = openPool();
  before(() => pool.start());
  after(() => pool.close());

  it("come from the meta tags of the page, and its title", async () => {
    const html = `<title>Über \\ (uns)</title><META NAME=Author content=" Ada "><meta name=author content="Bob">
      <meta name=description content="Was wir tun \u{1F680}"><meta name=KEYWORDS content="a (b), \\c">`;
    const pdf = await print(pool, { html });
    expect(await propertiesOf(pdf.bytes)).to.deep.equal({
      title: "Über \\ (uns)",
      author: "Ada, Bob",
      subject: "Was wir tun \u{1F680}",
      keywords: "a (b), \\c",
      creator: "Trunkline",
    });
    expect(pdf.faults).to.equal("");
    expect(pdf.trailer.bytes).to.equal(pdf.bytes.length);
    expect((await print(pool, { html })).bytes.equals(pdf.bytes), "the same bytes").to.equal(true);
  });

  it("subject takes precedence over description, and too long properties are cut", async () => {
    const long = "x".repeat(METADATA_CHARS_MAX);
    const html = `<meta name=description content="d"><meta name=subject content="s"><meta name=author content="${long}y">`;
    const properties = await propertiesOf((await print(pool, { html })).bytes);
    expect(properties).to.include({ subject: "s", author: long });
  });

  it("of the request take precedence, also when they are empty", async () => {
    const html = `<title>page</title><meta name=author content=Ada><meta name=keywords content=k>`;
    const metadata = { title: "Réport", author: "", keywords: ["one", "two"] };
    const { bytes } = await print(pool, { html, pdfOptions: { metadata, outline: true } });
    const { title, author, keywords } = await propertiesOf(bytes);
    expect({ title, author, keywords }).to.deep.equal({
      ...{ title: "Réport", author: "", keywords: "one, two" },
    });
  });

  it("leave a PDF without them as it is", async () => {
    const { bytes } = await print(pool, { html: "<title>x</title>" });
    expect(bytes.toString("latin1").split("startxref")).to.have.length(2);
    expect(bytes.toString("latin1").split("%%EOF")).to.have.length(2);
  });

  it("follow an end that a piece may cut anywhere", () => {
    const end = "x\ntrailer\n<</Size 4\n/Root 3 0 R\n/Info 1 0 R>>\nstartxref\n99\n%%EOF\n";
    const about = { end, length: 1_000, title: "/Title (t)\n" };
    const update = propertiesUpdate({ author: "é" }, about).toString("latin1");
    expect(update).to.match(/^1 0 obj\n<<\/Title \(t\)\n\/Author <FEFF00E9>\n\/Creator /);
    expect(update).to.contain("\n1 1\n0000001000 00000 n \ntrailer\n<</Size 4\n/Root 3 0 R\n");
    expect(update).to.contain("/Prev 99>>");
    const startsAt = Number(/startxref\n(\d+)\n%%EOF\n$/.exec(update)?.[1]);
    expect(update.slice(startsAt - 1_000)).to.match(/^xref\n/);
    const unknown = { ...about, end: "%%EOF" };
    expect(() => propertiesUpdate({ author: "x" }, unknown)).to.throw("no known end");
    expect(propertiesUpdate({}, unknown)).to.have.length(0);
  });
});
