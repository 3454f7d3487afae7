import { expect } from "chai";
import type { CDPSession } from "puppeteer-core";
import { HoldingClock } from "../../../../scripts/testing/holding-clock.ts";
import { openPool, print } from "../../../../scripts/testing/printer.ts";
import { refusalOf } from "../../../../scripts/testing/refusal.ts";
import { WebSite } from "../../../../scripts/testing/web-site.ts";
import { LOAD_SOON_MS, PdfStream } from "./pdf-stream.ts";

const THREE_PAGES =
  "<title>three</title><style>p { break-after: page }</style><p>one<p>two<p>three";

describe("PdfStream", function () {
  this.timeout(60_000);
  const pool = openPool();

  before(() => pool.start());
  after(() => pool.close());

  it("print() takes the paper from format in any case, from width and height, turned by landscape", async () => {
    const size = async (pdfOptions: object) => (await print(pool, { html: "x", pdfOptions })).size;
    expect(await size({})).to.deep.equal([612, 792]);
    for (const [format, expected] of [
      ["Letter", [612, 792]],
      ["Legal", [612, 1008]],
      ["TABLOID", [792, 1224]],
      ["ledger", [1224, 792]],
      ["A0", [2384, 3371]],
      ["a1", [1684, 2384]],
      ["A2", [1191, 1684]],
      ["a3", [842, 1191]],
      ["a4", [596, 842]],
      ["A5", [420, 596]],
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

  it("print() asks a page that is ready once, and one that moves several times", async () => {
    const { signal } = new AbortController();
    const asked = async (html: string) => {
      await using context = await pool.newContext(signal);
      await context.page.setContent(html, { waitUntil: "load" });
      const sent: string[] = [];
      const { session } = context;
      const send = session.send.bind(session);
      session.send = (...[method, parameters]: Parameters<CDPSession["send"]>) => {
        sent.push(method);
        return send(method, parameters);
      };
      // The first look at a page has no time limit, because a busy machine may exceed it.
      const clock = new HoldingClock(LOAD_SOON_MS);
      const limits = { signal, clock, document: { check() {} } };
      const { properties } = await PdfStream.print(context, {}, limits);
      expect(properties).to.deep.equal({ author: "me" });
      expect(sent.at(-3)).to.equal("Page.printToPDF");
      return sent.filter((method) => method === "Runtime.evaluate").length;
    };
    const author = "<meta name=author content=me>";
    expect(await asked(`${author}<p>text`)).to.equal(1);
    // The animation outlasts the first look on any machine. It is waited for until DRAWING_SETTLE_MS.
    const moving = "<style>p { animation: a 60s } @keyframes a { from { opacity: 0 } }</style>";
    expect(await asked(`${author}${moving}<p>text`)).to.be.above(1);
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

  it("print() keeps each margin, in every unit", async () => {
    // Asserts how many lines fit the height and how many words fit a line.
    const lines = "<style>body { margin: 0 } p { margin: 0; height: 96px }</style>";
    const tall = `${lines}${"<p>x".repeat(10)}`;
    const wide = `<style>body { margin: 0 } b { float: left; width: 96px; height: 480px }</style>${"<b>x</b>".repeat(16)}`;
    const pages = async (html: string, margin: object) => {
      const pdfOptions = { width: "8in", height: "10in", margin };
      return (await print(pool, { html, pdfOptions })).trailer.pages;
    };
    expect(await pages(tall, {})).to.equal(1);
    expect(await pages(wide, {})).to.equal(1);
    for (const length of [96, "96", "96px", "1in", "2.54cm", "25.4MM"]) {
      for (const [html, side] of [
        [tall, "top"],
        [tall, "bottom"],
        [wide, "left"],
        [wide, "right"],
      ] as const) {
        expect(await pages(html, { [side]: length }), `${side} ${length}`).to.equal(2);
      }
    }
  });

  it("print() prints backgrounds if asked, and none where they are to be omitted", async () => {
    const html = "<body style='background: rgb(12, 34, 56)'>x";
    const length = async (pdfOptions: object) =>
      (await print(pool, { html, pdfOptions })).bytes.length;
    const without = await length({});
    expect(await length({ printBackground: true })).to.be.above(without);
    // A page with the dark colour scheme has a background, although it draws none.
    const dark = "<html style='color-scheme: dark'>x";
    const [own, omitted] = await Promise.all([
      print(pool, { html: dark, pdfOptions: { printBackground: true } }),
      print(pool, { html: dark, pdfOptions: { printBackground: true, omitBackground: true } }),
    ]);
    expect(omitted.bytes.length).to.be.below(own.bytes.length);
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

  it("print() fills the placeholders of header and footer on every page", async () => {
    await using site = await WebSite.start();
    const url = site.page("/report", THREE_PAGES);
    const template = (names: string[]) =>
      `<p style="font-size: 12px">${names.map((name) => `[<b class="${name}"></b>]`).join(" ")}`;
    const pdfOptions = {
      displayHeaderFooter: true,
      headerTemplate: template(["title", "url"]),
      footerTemplate: template(["pageNumber", "totalPages", "date"]),
      margin: { top: 100, bottom: 100 },
    };
    const { texts } = await print(pool, { url, pdfOptions });
    expect(texts).to.have.length(3);
    for (const [index, word] of ["one", "two", "three"].entries()) {
      expect(texts[index])
        .to.include(word)
        .and.include(`[three] [${url}]`)
        .and.match(new RegExp(`\\[${index + 1}\\] \\[3\\] \\[\\d+/\\d+/\\d+[^\\]]*\\]$`));
    }
    const hidden = await print(pool, {
      url,
      pdfOptions: { ...pdfOptions, displayHeaderFooter: false },
    });
    expect(hidden.texts).to.deep.equal(["one", "two", "three"]);
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
      <p style="font-family: f">x<script>[...document.fonts][0].loaded.catch(() => { document.title = "loaded" })</script>`;
    expect((await print(pool, { html })).title).to.equal("loaded");
    expect(asked).to.equal(1);
  });
});
