import {
  PDFArray,
  PDFDict,
  PDFDocument,
  PDFName,
  PDFNumber,
  type PDFRef,
  PDFString,
} from "@cantoo/pdf-lib";
import { expect } from "chai";
import { ActorError } from "../../../../schemas/errors.ts";
import { PdfRequest } from "../../../../schemas/rendering/http/pdf.ts";
import { openPool, print } from "../../../../scripts/testing/printer.ts";
import { refusalOf } from "../../../../scripts/testing/refusal.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { WebSite } from "../../../../scripts/testing/web-site.ts";
import { systemClock } from "../../../runtime/lib/clock.ts";
import { JOINS_AT_ONCE_MAX, joinPlaces, PdfJoiner } from "../../lib/pdf/pdf-joiner.ts";
import { printSources } from "./print-sources.ts";

const file = (name: string, text: string) => ({
  name,
  base64: Buffer.from(text).toString("base64"),
});
const COUNTED = {
  displayHeaderFooter: true,
  headerTemplate: "<span></span>",
  footerTemplate:
    "<i style='font-size:9px'><b class=pageNumber></b>of<b class=totalPages></b>|<b class=title></b>|<b class=url></b></i>",
  margin: { top: "2cm", bottom: "2cm" },
};
const BREAK = "<p style='break-before:page'>";

describe("PDF of several sources", function () {
  this.timeout(120_000);
  const pool = openPool();
  let site: WebSite;
  before(async () => {
    [site] = await Promise.all([WebSite.start(), pool.start()]);
  });
  after(() => Promise.all([pool.close(), site[Symbol.asyncDispose]()]));

  it("has the pages of all in order, and header and footer count them through", async () => {
    const url = site.page("/two", `<title>two</title>zwei${BREAK}drei`);
    const request = {
      files: [file("one.html", "<title>one</title>eins"), file("four.md", "# four")],
      sources: [{ file: "one.html" }, { url }, { file: "four.md" }, { html: "fünf" }],
    };
    const counted = await print(pool, { ...request, pdfOptions: COUNTED });
    expect(counted.texts.map((text) => text.normalize("NFKC"))).to.deep.equal([
      "eins1of5|one|http://files.trunkline.localhost/one.html",
      `zwei2of5|two|${url}`,
      `drei3of5|two|${url}`,
      "four4of5|four|http://files.trunkline.localhost/four.md",
      "fünf5of5||about:blank",
    ]);
    expect(counted.faults).to.equal("");
    expect(counted.trailer).to.deep.include({ pages: 5, bytes: counted.bytes.length });
    const plain = await print(pool, request);
    expect(plain.texts).to.deep.equal(["eins", "zwei", "drei", "four", "fünf"]);
    const same = await print(pool, request);
    expect(same.bytes.equals(plain.bytes), "the same bytes").to.equal(true);
  });

  it("has Chromium's own header and footer for a request without templates", async () => {
    const url = site.page("/default", "<title>default</title>x");
    const pdfOptions = { displayHeaderFooter: true, margin: COUNTED.margin };
    const [single] = (await print(pool, { url, pdfOptions })).texts;
    const [joined] = (await print(pool, { sources: [{ url }], pdfOptions })).texts;
    // The times are removed, because the clock may reach the next minute between the two prints. The characters are
    // sorted, because Chromium draws header and footer first.
    const marks = (text = "") => [...text.replace(/\d+:\d+/, "")].sort().join("");
    expect(marks(joined)).to.equal(marks(single));
  });

  it("has pages of the sizes that style sheets choose, also below header and footer", async () => {
    const sources = [
      { html: "<style>@page { size: a5 landscape }</style>x" },
      {
        html: `<style>@page { size: 10cm 20cm } @page b { size: 300pt 400pt }</style>x<p style="page: b">y`,
      },
    ];
    const pdfOptions = { ...COUNTED, preferCSSPageSize: true };
    const pdf = await print(pool, { sources, pdfOptions });
    const document = await PDFDocument.load(pdf.bytes);
    const sizes = document.getPages().map((page) => page.getSize());
    const rounded = sizes.map(({ width, height }) => [Math.round(width), Math.round(height)]);
    expect(rounded).to.deep.equal([
      [595, 420],
      [283, 567],
      [300, 400],
    ]);
    expect(pdf.texts.map((text) => text.slice(1, 5))).to.deep.equal(["1of3", "2of3", "3of3"]);
  });

  it("keeps tags, with the headers of tables, outlines, and links within and between parts", async () => {
    const table = "<table><tr><th id=t>h<td headers=t>d</table>";
    const part = (other: string) =>
      `<html lang=de><h1>${other}</h1><h2 id=h>sub</h2><a href="#h">in</a> <a href="${other}.html#x">to</a> <a href="https://example.com/">out</a>${table}${BREAK}<h1>last</h1>`;
    const files = [file("a.html", part("b")), file("b.html", part("a"))];
    const sources = [{ file: "a.html" }, { file: "b.html" }];
    const pdf = await print(pool, { files, sources, pdfOptions: { ...COUNTED, outline: true } });
    const document = await PDFDocument.load(pdf.bytes);
    const { catalog, context } = document;
    const named = (name: string) => PDFName.of(name);
    const pages = document.getPages().map(({ ref }) => ref);

    const links = document.getPages().flatMap(({ node }) => {
      const annotations = node.lookupMaybe(named("Annots"), PDFArray)?.asArray() ?? [];
      return annotations.map((annotation) => context.lookup(annotation, PDFDict));
    });
    const places = catalog.lookup(named("Dests"), PDFDict);
    const targets = links.map((link) => {
      const place = link.get(named("Dest"));
      const target = place instanceof PDFName ? places.lookup(place, PDFArray) : place;
      if (target instanceof PDFArray) return pages.indexOf(target.get(0) as PDFRef);
      return link.lookup(named("A"), PDFDict).lookup(named("URI"), PDFString).decodeText();
    });
    const out = "https://example.com/";
    expect(targets).to.deep.equal([0, 2, out, 2, 0, out]);

    const outlines = catalog.lookup(named("Outlines"), PDFDict);
    const titles: string[] = [];
    for (
      let item = outlines.lookupMaybe(named("First"), PDFDict);
      item;
      item = item.lookupMaybe(named("Next"), PDFDict)
    ) {
      expect(item.lookup(named("Parent"))).to.equal(outlines);
      const page = item.lookup(named("Dest"), PDFArray).get(0) as PDFRef;
      titles.push(`${item.lookup(named("Title"), PDFString).decodeText()} ${pages.indexOf(page)}`);
    }
    expect(titles).to.deep.equal(["b 0", "last 1", "a 2", "last 3"]);
    expect(outlines.lookup(named("Count"), PDFNumber).asNumber()).to.equal(6);

    const root = catalog.lookup(named("StructTreeRoot"), PDFDict);
    const whole = root.lookup(named("K"), PDFDict);
    const parts = whole.lookup(named("K"), PDFArray).asArray();
    expect(parts.map((kid) => String(context.lookup(kid, PDFDict).get(named("S"))))).to.deep.equal([
      "/Part",
      "/Part",
    ]);
    const numbers = root
      .lookup(named("ParentTree"), PDFDict)
      .lookup(named("Nums"), PDFArray)
      .asArray();
    const keys = numbers
      .filter((_, at) => at % 2 === 0)
      .map((key) => (key as PDFNumber).asNumber());
    expect(new Set(keys).size).to.equal(keys.length);
    expect(keys).to.deep.equal([...keys].sort((one, other) => one - other));
    const asked = [
      ...document.getPages().map(({ node }) => node.lookup(named("StructParents"), PDFNumber)),
      ...links.map((link) => link.lookup(named("StructParent"), PDFNumber)),
    ];
    expect(asked.map((key) => key.asNumber()).sort((one, other) => one - other)).to.deep.equal(
      keys,
    );
    const ids = root.lookup(named("IDTree"), PDFDict).lookup(named("Names"), PDFArray).asArray();
    expect(new Set(ids.map(String)).size).to.equal(4);
    expect(String(catalog.get(named("Lang")))).to.equal("(de)");
  });

  it("has the properties of the request, and else of its first source", async () => {
    const first = `<title>first</title><meta name=author content="Ada">`;
    const sources = [{ html: first }, { html: "<title>second</title>" }];
    const own = await PDFDocument.load((await print(pool, { sources })).bytes);
    expect([own.getTitle(), own.getAuthor()]).to.deep.equal(["first", "Ada"]);
    const metadata = { title: "given", keywords: ["a", "b"] };
    const given = await PDFDocument.load(
      (await print(pool, { sources, pdfOptions: { metadata } })).bytes,
    );
    expect([given.getTitle(), given.getAuthor(), given.getKeywords()]).to.deep.equal([
      "given",
      "Ada",
      "a, b",
    ]);
  });

  it("names the source that fails, with the browser time of all before it", async () => {
    const gone = site.page("/gone", (_request, response) => {
      response.writeHead(404).end("gone");
    });
    const slow = {
      html: "x<script>for (const end = Date.now() + 300; Date.now() < end;);</script>",
    };
    const request = { sources: [slow, { url: gone }], failOnStatus: ["4xx" as const] };
    const refused = await refusalOf(print(pool, request));
    expect(refused.code).to.equal("response_failed");
    expect(refused.message).to.match(/answered 404.*\(sources\/1\)$/);
    expect(refused.details.browserMs).to.be.above(300);
  });

  it("holds browser time for each of its pages, and none while it joins them", async () => {
    const parts = [{ html: "one" }, { html: "two" }];
    const { sources = [], ...parameters } = PdfRequest.parse({
      sources: parts,
      pdfOptions: { displayHeaderFooter: true },
    });
    const held = new Set<number>();
    let pages = 0;
    const atWaits: number[] = [];
    const task = {
      ...{ parameters, sources },
      hold() {
        const page = pages++;
        held.add(page);
        return () => held.delete(page);
      },
    };
    const setWaiting = (isWaiting: boolean) => isWaiting && atWaits.push(held.size);
    const limits = { signal: new AbortController().signal, clock: systemClock };
    const printed = await printSources(pool, { ...task, setWaiting }, limits);
    expect(printed.trailer().pages).to.equal(2);
    // One page for each source, and one for the headers and footers.
    expect([pages, held.size]).to.deep.equal([3, 0]);
    expect(atWaits).to.include(0);
  });

  it("has a limit for the bytes of its parts", async () => {
    const parts = [{ html: "one" }, { html: "two" }];
    const alone = await Promise.all(parts.map((part) => print(pool, part)));
    const bytes = alone.reduce((sum, part) => sum + part.bytes.length, 0);
    const { sources = [], ...parameters } = PdfRequest.parse({ sources: parts });
    const task = { parameters, sources };
    const limits = { signal: new AbortController().signal, clock: systemClock };
    expect(
      (await printSources(pool, task, { ...limits, bytesMax: bytes })).trailer().pages,
    ).to.equal(2);
    const refused = await refusalOf(printSources(pool, task, { ...limits, bytesMax: bytes - 1 }));
    expect(refused.code).to.equal("page_not_printable");
    expect(refused.message).to.match(/\d+ bytes are the most in all \(sources\/1\)$/);
  });

  it("is refused if joining takes too much memory, also between two steps", async () => {
    const { bytes } = await print(pool, { html: "one" });
    await using joiner = await PdfJoiner.open("a", new AbortController().signal, { heapMibMax: 4 });
    const part = { pdf: bytes, address: undefined };
    const refused = await refusalOf(joiner.add(part));
    expect(refused.code).to.equal("page_not_printable");
    expect(refused.message).to.contain("too much memory");
    expect((await refusalOf(joiner.finish({}, []))).message).to.equal(refused.message);
  });

  it("ends its thread when the request is aborted", async () => {
    const left = new AbortController();
    const joiner = await PdfJoiner.open("a", left.signal);
    left.abort(new Error("left"));
    const part = { pdf: new Uint8Array(), address: undefined };
    expect(await joiner.add(part).catch((error: Error) => error.message)).to.equal("left");
    await joiner[Symbol.asyncDispose]();
  });

  it("waits for a place of its account, and leaves one to other accounts", async () => {
    const { signal } = new AbortController();
    const open = () => PdfJoiner.open("a", signal);
    const held: PdfJoiner[] = [];
    for (let place = 1; place < JOINS_AT_ONCE_MAX; place += 1) held.push(await open());
    const waiting = open();
    const other = await PdfJoiner.open("b", signal);
    expect([joinPlaces.free, joinPlaces.waitingOf("a")]).to.deep.equal([0, 1]);
    await held[0]?.[Symbol.asyncDispose]();
    for (const joiner of [await waiting, other, ...held]) await joiner[Symbol.asyncDispose]();
    expect(joinPlaces.free).to.equal(JOINS_AT_ONCE_MAX);
  });

  it("is joined JOINS_AT_ONCE_MAX at a time; the next one waits, computes once it has a place, and keeps its browser time", async () => {
    const { signal } = new AbortController();
    const held = await Promise.all(
      Array.from({ length: JOINS_AT_ONCE_MAX }, (_, at) => PdfJoiner.open(`a${at}`, signal)),
    );
    const { sources = [], ...parameters } = PdfRequest.parse({ sources: [{ html: "x" }] });
    const left = new AbortController();
    const waits: boolean[] = [];
    const setWaiting = (isWaiting: boolean) => waits.push(isWaiting);
    const task = { account: "a0", parameters, sources, setWaiting };
    const limits = { signal, clock: systemClock };
    const printed = printSources(pool, task, limits);
    const refused = refusalOf(printSources(pool, task, { ...limits, signal: left.signal }));
    await until("both wait", () => joinPlaces.waitingOf("a0") === 2);
    expect(waits.at(-1)).to.equal(true);
    left.abort(new ActorError("browser_time_exceeded", "Cannot render page"));
    const { message, details } = await refused;
    expect(message).to.equal("Cannot render page (joining)");
    expect(details.browserMs).to.be.above(0);
    await held[0]?.[Symbol.asyncDispose]();
    expect((await printed).trailer().pages).to.equal(1);
    expect(waits.at(-1)).to.equal(false);
    await held[1]?.[Symbol.asyncDispose]();
    expect(joinPlaces.free).to.equal(JOINS_AT_ONCE_MAX);
  });
});
