import { expect } from "chai";
import { openPool, type Pdf, print } from "../../scripts/testing/printer.ts";
import { refusalOf } from "../../scripts/testing/refusal.ts";
import { WebSite } from "../../scripts/testing/web-site.ts";

const THREE_PAGES =
  "<title>three</title><style>p { break-after: page }</style><p>one<p>two<p>three";

describe("PdfStream", function () {
  this.timeout(20_000);
  const pool = openPool();

  before(() => pool.start());
  after(() => pool.close());

  it("print() takes the paper from format in any case, from width and height, turned by landscape", async () => {
    const size = async (pdfOptions: object) => (await print(pool, { html: "x", pdfOptions })).size;
    expect(await size({})).to.deep.equal([612, 792]);
    for (const [format, expected] of [
      ["Legal", [612, 1008]],
      ["TABLOID", [792, 1224]],
      ["ledger", [1224, 792]],
      ["A0", [2384, 3371]],
      ["a4", [596, 842]],
      ["a6", [298, 420]],
    ] as const) {
      const [width, height] = await size({ format });
      expect([Math.round(width), Math.round(height)], format).to.deep.equal(expected);
    }
    const [width, height] = await size({ width: 288, height: "10cm" });
    expect([width, Math.round(height)]).to.deep.equal([216, 284]);
    expect(await size({ width: "5in", height: "101.6mm" })).to.deep.equal([360, 288]);
    expect(await size({ format: "letter", width: "1in" })).to.deep.equal([612, 792]);
    expect(await size({ landscape: true })).to.deep.equal([792, 612]);
  });

  it("print() follows the page's own size only if preferred", async () => {
    const html = "<style>@page { size: 300px 400px }</style>x";
    const preferred = await print(pool, { html, pdfOptions: { preferCSSPageSize: true } });
    expect(preferred.size.map(Math.round)).to.deep.equal([225, 300]);
    expect((await print(pool, { html })).size).to.deep.equal([612, 792]);
  });

  it("print() prints the pages of pageRanges", async () => {
    const pages = async (pageRanges: string) =>
      (await print(pool, { html: THREE_PAGES, pdfOptions: { pageRanges } })).trailer.pages;
    expect(await pages("2")).to.equal(1);
    expect(await pages("1, 3")).to.equal(2);
    expect(await pages("2-")).to.equal(2);
    expect(await pages("-2")).to.equal(2);
    expect(await pages("-")).to.equal(3);
    expect(await pages("1-9")).to.equal(3);
    expect(await pages("")).to.equal(3);
  });

  it("print() refuses page ranges beyond the document", async () => {
    const request = { html: THREE_PAGES, pdfOptions: { pageRanges: "4" } };
    const { code, details } = await refusalOf(print(pool, request));
    expect(code).to.equal("invalid_request");
    expect(details.faults?.[0]?.pointer).to.equal("/pdfOptions/pageRanges");
    expect(details.browserMs).to.be.above(0);
  });

  it("print() scales and keeps margins", async () => {
    const html = "<p style='height: 900px'>tall";
    const pages = async (pdfOptions: object) =>
      (await print(pool, { html, pdfOptions })).trailer.pages;
    expect(await pages({})).to.equal(1);
    expect(await pages({ scale: 2 })).to.equal(2);
    expect(await pages({ margin: { top: "3in", bottom: 200 } })).to.equal(2);
    expect(await pages({ margin: { top: "3in", bottom: 200 }, scale: 0.1 })).to.equal(1);
  });

  it("print() prints backgrounds if asked, and none where they are to be omitted", async () => {
    const html = "<body style='background: rgb(12, 34, 56)'>x";
    const length = async (pdfOptions: object) =>
      (await print(pool, { html, pdfOptions })).bytes.length;
    const without = await length({});
    expect(await length({ printBackground: true })).to.be.above(without);
    const [white, omitted] = await Promise.all([
      print(pool, { html: "x", pdfOptions: { printBackground: true } }),
      print(pool, { html: "x", pdfOptions: { printBackground: true, omitBackground: true } }),
    ]);
    expect(omitted.bytes.length).to.be.at.most(white.bytes.length);
  });

  it("print() tags unless told not to, and makes an outline if told to", async () => {
    const html = "<h1>one</h1><h2>two</h2>";
    const options = async (pdfOptions: object) => {
      const pdf = await print(pool, { html, pdfOptions });
      return [pdf.has("/StructTreeRoot"), pdf.has("/Outlines")];
    };
    expect(await options({})).to.deep.equal([true, false]);
    expect(await options({ tagged: false })).to.deep.equal([false, false]);
    expect(await options({ outline: true })).to.deep.equal([true, true]);
    expect(await options({ outline: true, tagged: false })).to.deep.equal([true, true]);
  });

  it("print() fills the placeholders of header and footer", async function () {
    await using site = await WebSite.start();
    const url = site.page("/report", THREE_PAGES);
    const pdfOptions = {
      displayHeaderFooter: true,
      headerTemplate: `<p style="font-size: 12px">[<b class="title"></b>] [<b class="url"></b>]`,
      footerTemplate: `<p style="font-size: 12px"><b class="pageNumber"></b> of <b class="totalPages"></b>, <b class="date"></b>`,
      margin: { top: 100, bottom: 100 },
    };
    const text = textOf(await print(pool, { url, pdfOptions }));
    if (text === undefined) this.skip();
    expect(text).to.include(`[three] [${url}]`);
    expect(text).to.match(/2 of 3, \d+\/\d+\/\d+/);
    const hidden = textOf(
      await print(pool, { url, pdfOptions: { ...pdfOptions, displayHeaderFooter: false } }),
    );
    expect(hidden).to.not.include("of 3");
  });

  it("print() takes a header whose styles are its own", async () => {
    for (const headerTemplate of [
      '<style>@import url("data:text/css,b{}")</style>',
      '<link rel="stylesheet" href="data:text/css,b{}"><b class="title"></b>',
    ]) {
      const pdf = await print(pool, {
        html: "x",
        pdfOptions: { displayHeaderFooter: true, headerTemplate },
      });
      expect(pdf.trailer.pages).to.equal(1);
    }
  });

  it("print() waits for fonts", async () => {
    await using site = await WebSite.start();
    let asked = 0;
    site.page("/font.woff2", (_, response) => {
      asked += 1;
      setTimeout(() => response.writeHead(404).end(), 200);
    });
    const html = `<title>loading</title><style>@font-face { font-family: f; src: url(${site.url}/font.woff2) }</style>
      <p style="font-family: f">x<script>document.fonts.onloadingdone = () => { document.title = "loaded" }</script>`;
    expect((await print(pool, { html })).title).to.equal("loaded");
    expect(asked).to.equal(1);
  });
});

const textOf = (pdf: Pdf) => pdf.text;
