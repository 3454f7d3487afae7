import { readFileSync } from "node:fs";
import { text as textOf } from "node:stream/consumers";
import { expect } from "chai";
import { Parser } from "htmlparser2";
import puppeteer from "puppeteer-core";
import { PdfRequest } from "../../../../../schemas/rendering/http/pdf.ts";
import { ScreenshotRequest } from "../../../../../schemas/rendering/http/screenshot.ts";
import {
  META_TITLE_CHARS_MAX,
  REPORT_ENTRIES_MAX,
} from "../../../../../schemas/rendering/limits.ts";
import { openPageReader, type PageReader } from "../../../../../scripts/testing/page-reader.ts";
import { WebSite } from "../../../../../scripts/testing/web-site.ts";
import { findChromium } from "../../../../../scripts/tools.ts";
import { markdown } from "../../../lib/extract/markdown.ts";

const DOCS = readFileSync(
  new URL("../../../lib/extract/testing/pages/docs.html", import.meta.url),
  "utf8",
);
const LAMP = { name: "Lamp", price: 12.5 };
const SCHEMA = {
  type: "json_schema" as const,
  json_schema: { properties: { name: "string", price: "number" }, required: ["name", "price"] },
};

describe("calls that read a page", function () {
  this.timeout(120_000);
  let site: WebSite;
  let reader: PageReader;
  before(async () => {
    site = await WebSite.start();
    const providers = { openai: `${site.url}/v1`, google: "http://127.0.0.1:1/v1" };
    reader = openPageReader(providers);
  });
  after(async () => {
    await reader.close();
    await site[Symbol.asyncDispose]();
  });
  const run: PageReader["run"] = (...given) => reader.run(...given);
  const refused: PageReader["refused"] = (...given) => reader.refused(...given);

  it("content() is the HTML after scripts, with open shadow roots; meta has status and title", async () => {
    const url = site.page("/made", (_, response) => {
      response.writeHead(404).end(`<!doctype html><title> A  title </title><p>before<script>
        document.querySelector("p").textContent = "after \\u0000é\\ud83d\\ude00";
        document.body.attachShadow({ mode: "open" }).innerHTML = "<i>within</i>";
      </script>`);
    });
    const { result, meta, reply } = await run("content", { url });
    expect(result).to.match(/^<!DOCTYPE html>\n<html><head><title>/);
    expect(result).to.contain('<template shadowrootmode="open"><i>within</i></template>');
    expect(result).to.contain("<p>after").and.to.contain("é😀");
    expect(meta).to.deep.equal({ status: 404, title: "A title" });
    expect(reply.status).to.equal(404);
    const long = `<title>${"t".repeat(META_TITLE_CHARS_MAX + 1)}</title>`;
    const submitted = await run("content", { html: long });
    expect(submitted.meta).to.deep.equal({
      status: null,
      title: "t".repeat(META_TITLE_CHARS_MAX),
    });
  });

  it("markdown() is what the converter of crawls makes of the same HTML", async () => {
    const url = site.page("/guide/", DOCS);
    const { result: html } = await run("content", { url });
    const { result } = await run("markdown", { url });
    const title = "Configuring the scheduler — Tidewater 4.2 documentation";
    expect(result).to.equal(markdown({ html, baseUrl: url, title, isScripted: true }));
    expect(result).to.match(/^---\ntitle: "Configuring/);
    expect((await run("markdown", { html: "<p>no title" })).result).to.equal("no title\n");
  });

  it("links() has the links of the page's own markup, in its order, resolved", async () => {
    const url = site.page("/guide/", DOCS);
    const { result } = await run("links", { url });
    const expected: string[] = [];
    const parser = new Parser({
      onopentag(name, { href }) {
        const link = name === "a" && href !== undefined ? URL.parse(href, url) : null;
        if (link !== null && link.protocol !== "javascript:") expected.push(link.href);
      },
    });
    parser.end(DOCS);
    expect(expected).to.have.length.above(10);
    expect(result).to.deep.equal(expected);
  });

  it("links() omits links to other hosts and invisible links if the request says so", async () => {
    const here = `http://www.${"127.0.0.2.example"}`;
    const html = `<base href="${here}/">
      <a href="one">one</a> <a href="#part">part</a> <a href="//127.0.0.2.example/two">two</a>
      <a href="https://other.example/">other</a> <a href="mailto:a@b.example">mail</a>
      <a href="javascript:alert(1)">script</a> <a>none</a> <a href="http://[">wrong</a>
      <a href="a" style="display:none">a</a> <a href="b" style="visibility:hidden">b</a>
      <a href="c" style="opacity:0">c</a> <a href="d"></a>
      <a href="e"><span style="float:left;width:9px;height:9px"></span></a>
      <div id="host"></div><svg width="9" height="9"><a href="drawn"><rect width="9" height="9"/></a></svg>
      <script>host.attachShadow({ mode: "open" }).innerHTML = "<a href=within>within</a>"</script>`;
    const of = async (asked: object) => (await run("links", { html, ...asked })).result;
    const seen = ["one", "#part", "two", "other", "mail"].map(
      (name) =>
        ({
          two: "http://127.0.0.2.example/two",
          other: "https://other.example/",
          mail: "mailto:a@b.example",
        })[name] ?? `${here}/${name}`,
    );
    const hidden = ["a", "b", "c", "d"].map((name) => `${here}/${name}`);
    const last = ["e", "within", "drawn"].map((name) => `${here}/${name}`);
    expect(await of({})).to.deep.equal([...seen, ...hidden, ...last]);
    expect(await of({ visibleLinksOnly: true })).to.deep.equal([...seen, ...last]);
    const own = [...seen, ...hidden, ...last].filter((link) => !/other|mailto/.test(link));
    expect(await of({ excludeExternalLinks: true })).to.deep.equal(own);
    const homeless = { html: `<a href="https://example.com/">x</a>`, excludeExternalLinks: true };
    expect((await run("links", homeless)).result).to.deep.equal([]);
  });

  it("scrape() has text, HTML, attributes and places of the elements of each selector", async () => {
    const html = `<style>body { margin: 0 }</style><div style="height: 3000px"></div>
      <p class="a" data-x="&lt;1&gt;" style="position:absolute;top:40px;left:30px;margin:0;width:200px;height:50.5px">
      One <b>two</b><i hidden>three</i></p><script>scrollTo(0, 2000)</script>`;
    const elements = [{ selector: "p" }, { selector: ".none" }, { selector: "b, i" }];
    const { result } = await run("scrape", { html, elements });
    expect(result.map(({ selector }: { selector: string }) => selector)).to.deep.equal(
      elements.map(({ selector }) => selector),
    );
    const [[paragraph], none, inner] = result.map(({ results }: { results: unknown[] }) => results);
    expect(paragraph).to.deep.include({
      text: "One two",
      html: '\n      One <b>two</b><i hidden="">three</i>',
      ...{ top: 40, left: 30, width: 200, height: 50.5 },
    });
    expect(paragraph.attributes.slice(0, 2)).to.deep.equal([
      { name: "class", value: "a" },
      { name: "data-x", value: "<1>" },
    ]);
    expect(none).to.deep.equal([]);
    expect(inner).to.have.length(2);
  });

  it("scrape() names a selector that is none", async () => {
    const elements = [{ selector: "p" }, { selector: "p >>> a" }];
    const wrong = await refused("scrape", { html: "<p>", elements });
    expect([wrong.code, wrong.details.faults?.[0]]).to.deep.equal([
      "invalid_request",
      { pointer: "/elements/1/selector", message: "Expected a CSS selector" },
    ]);
  });

  it("accessibilityTree() is bare puppeteer's of the same page", async () => {
    const browser = await puppeteer.launch({
      executablePath: findChromium(),
      headless: "shell",
      args: ["--no-sandbox"],
    });
    try {
      const page = await browser.newPage();
      const html = `${DOCS}<form><input type=checkbox checked aria-label=c><input type=range value=3 max=9>
        <select multiple><option selected>1<option>2</select><textarea required>t</textarea></form>`;
      await page.setContent(html);
      const root = await page.$("form");
      const plain = (tree: unknown) => JSON.parse(JSON.stringify(tree));
      for (const [asked, options] of [
        [{}, {}],
        [{ interestingOnly: false }, { interestingOnly: false }],
        [{ root: "form" }, { root, interestingOnly: false }],
        [
          { root: "form", interestingOnly: true },
          { root, interestingOnly: true },
        ],
      ] as const) {
        const { result } = await run("accessibilityTree", { html, ...asked });
        const expected = await page.accessibility.snapshot({ ...options } as object);
        expect(result.accessibilityTree).to.deep.equal(known(plain(expected)));
      }
    } finally {
      await browser.close();
    }
  });

  it("accessibilityTree() is null where the root has none, and refuses a root that is no selector", async () => {
    const html = "<p>a<style>p { color: red }</style>";
    for (const root of ["#none", "style"]) {
      const { result } = await run("accessibilityTree", { html, root });
      expect(result, root).to.deep.equal({ accessibilityTree: null });
    }
    const { code, details } = await refused("accessibilityTree", { html, root: "##" });
    expect([code, details.faults?.[0]?.pointer]).to.deep.equal(["invalid_request", "/root"]);
  });

  it("snapshot() loads the page once for all formats, and returns the requested ones", async () => {
    const url = site.page("/once", `<title>Once</title><img src="/once.png"><h1>Once</h1>`);
    const formats = ["content", "screenshot", "markdown", "accessibilityTree"] as const;
    const seenBefore = site.paths.length;
    const { result, meta } = await run("snapshot", { url, formats });
    expect(site.paths.slice(seenBefore).toSorted()).to.deep.equal(["/once", "/once.png"]);
    expect(Object.keys(result).toSorted()).to.deep.equal(formats.toSorted());
    expect(meta).to.deep.equal({ status: 200, title: "Once" });
    expect(result.content).to.contain("<h1>Once</h1>");
    expect(result.markdown).to.contain("# Once");
    expect(result.accessibilityTree.role).to.equal("RootWebArea");
    const png = Buffer.from(result.screenshot, "base64");
    expect([png.readUInt32BE(16), png.readUInt32BE(20)]).to.deep.equal([1_920, 1_080]);
    const preset = await run("snapshot", { html: "x" });
    expect(Object.keys(preset.result)).to.deep.equal(["content", "screenshot"]);
    const viewport = { width: 300, height: 200 };
    const screenshotOptions = { type: "jpeg", clip: { x: 0, y: 0, width: 40, height: 30 } };
    const asked = { html: "x", formats: ["screenshot"], viewport, screenshotOptions };
    const { screenshot } = (await run("snapshot", asked)).result;
    expect(Buffer.from(screenshot, "base64").subarray(0, 2).toString("hex")).to.equal("ffd8");
  });

  it("report says what the page did: redirects, failed and refused requests, errors, bytes", async () => {
    site.page("/moved", (_, response) => response.writeHead(302, { Location: "/told" }).end());
    site.page("/gone.js", (_, response) => response.writeHead(410).end("gone"));
    site.page(
      "/told",
      `<p>told</p><script src="/gone.js"></script><img src="http://10.0.0.1/inside.png">
      <script>console.error("first", { a: 1 }, 2); console.log("quiet"); missing.thing()</script>`,
    );
    const asked = { url: `${site.url}/moved`, report: true, rejectRequestPattern: ["never"] };
    const { result, report } = await run("content", asked);
    expect(result).to.contain("told");
    expect(report).to.include({ url: `${site.url}/told`, status: 200, omitted: 0 });
    expect(report.requests).to.be.at.least(4);
    expect(report.redirects).to.deep.equal([`${site.url}/moved`]);
    const reasons = Object.fromEntries(
      report.failed.map(({ url, reason }: { url: string; reason: string }) => [url, reason]),
    );
    expect(reasons[`${site.url}/gone.js`]).to.equal("it answered 410");
    expect(reasons["http://10.0.0.1/inside.png"]).to.match(/address/);
    expect(report.errors[0]).to.equal("first Object 2");
    expect(report.errors.join()).to.contain("ReferenceError: missing is not defined");
    expect(report.errors.join()).not.to.contain("quiet");
    expect(report.bytes.received).to.be.above(100);
    expect(report.timings.browserMs).to.be.at.least(report.timings.loadMs).and.above(0);
    expect(await run("content", { html: "x" })).not.to.have.property("report");
  });

  it("report keeps REPORT_ENTRIES_MAX errors and counts the rest", async () => {
    const errors = (count: number) => ({
      html: `<script>for (let i = 0; i < ${count}; i++) console.error(i)</script>`,
      report: true,
    });
    const most = (await run("content", errors(REPORT_ENTRIES_MAX))).report;
    expect([most.errors.length, most.omitted]).to.deep.equal([REPORT_ENTRIES_MAX, 0]);
    const more = (await run("content", errors(REPORT_ENTRIES_MAX + 1))).report;
    expect([more.errors.length, more.omitted]).to.deep.equal([REPORT_ENTRIES_MAX, 1]);
  });

  it("report puts PDFs and pictures into the answer as text in base64", async () => {
    for (const [name, request, begins] of [
      ["pdf", PdfRequest.parse({ html: "x", report: true }), "%PDF-"],
      ["screenshot", ScreenshotRequest.parse({ html: "x", report: true }), "\x89PNG"],
      [
        "screenshot",
        ScreenshotRequest.parse({
          ...{ html: "x", report: true },
          screenshotOptions: { encoding: "base64" },
        }),
        "\x89PNG",
      ],
    ] as const) {
      const { result, report } = await reader.runParsed(name, request);
      expect(Buffer.from(result, "base64").toString("latin1", 0, 8)).to.contain(begins);
      expect(report).to.deep.include({ url: "about:blank", status: null, redirects: [] });
    }
  });

  describe("json()", () => {
    const questions: { messages: { content: string }[] }[] = [];
    const says = (...answers: string[]) => {
      questions.length = 0;
      site.page("/v1/chat/completions", async (request, response) => {
        questions.push(JSON.parse(await textOf(request)));
        const content = answers.length > 1 ? answers.shift() : answers[0];
        const choice = { index: 0, message: { role: "assistant", content }, finish_reason: "stop" };
        response.setHeader("Content-Type", "application/json");
        response.end(JSON.stringify({ id: "1", created: 1, model: "m", choices: [choice] }));
      });
    };
    const custom_ai = [{ model: "openai/m", authorization: "Bearer secret" }];
    const asked = { html: "<h1>Lamp</h1>", prompt: "The lamp", response_format: SCHEMA, custom_ai };

    it("gives what fits the schema, and says that it waits while the model answers", async () => {
      says(JSON.stringify(LAMP));
      const said: boolean[] = [];
      const { result, reply } = await run("json", asked, (isWaiting) => said.push(isWaiting));
      expect(result).to.deep.equal(LAMP);
      expect(reply.browserMs).to.be.above(0);
      expect(said.at(-1)).to.equal(true);
      expect(JSON.stringify(questions)).to.contain("# Lamp").and.to.contain("The lamp");
      expect(site.headersOf("/v1/chat/completions").authorization).to.equal("Bearer secret");
    });

    it("names what did not fit, after one repair", async () => {
      says(JSON.stringify({ name: "Lamp", price: "dear" }));
      const { code, message, details } = await refused("json", asked);
      expect(code).to.equal("json_not_extracted");
      expect(message).to.match(/openai\/m: its answer does not match the schema: \/price must be/);
      expect(details.browserMs).to.be.above(0);
      expect(questions).to.have.length(2);
      says("{}", JSON.stringify(LAMP));
      expect((await run("json", asked)).result).to.deep.equal(LAMP);
    });

    it("asks the next model where one fails, each through the egress guard", async () => {
      says(JSON.stringify(LAMP));
      const inside = { model: "google/inside" };
      const both = { ...asked, custom_ai: [inside, ...custom_ai] };
      expect((await run("json", both)).result).to.deep.equal(LAMP);
      const { code, message } = await refused("json", { ...asked, custom_ai: [inside] });
      expect(code).to.equal("json_not_extracted");
      expect(message).to.match(/google\/inside: .*not (?:public|allowed|one)/);
    });

    it("refuses before a page is loaded what no model can answer", async () => {
      const url = site.page("/unloaded", "x");
      const faultOf = async (request: object) => {
        const { code, details } = await refused("json", { url, prompt: "x", ...request });
        return [code, details.faults?.[0]?.pointer];
      };
      expect(await faultOf({})).to.deep.equal(["invalid_request", "/custom_ai"]);
      const response_format = { type: "json_schema", json_schema: { pattern: "(" } };
      expect(await faultOf({ response_format, custom_ai })).to.deep.equal([
        "invalid_request",
        "/response_format/json_schema",
      ]);
      expect(site.paths).not.to.include("/unloaded");
    });
  });
});

/** Removes the internal fields of puppeteer. */
function known(node: Record<string, unknown>): unknown {
  const { backendNodeId: _, loaderId: _loader, children, ...fields } = node;
  if (!Array.isArray(children)) return fields;
  return { ...fields, children: children.map((child) => known(child)) };
}
