import { expect } from "chai";
import { CrawlRequest } from "../../../../schemas/crawl/http/crawl.ts";
import { PAGE_LINKS_MAX } from "../../../../schemas/crawl/limits.ts";
import { MarkdownPool } from "../../../rendering/lib/extract/markdown-pool.ts";
import { Semaphore } from "../../../runtime/lib/semaphore.ts";
import { type LoadedPage, PAGE_LINKS_BYTES_MAX, pageRecord } from "./page-record.ts";

const account = "a".repeat(32);
const url = "http://a.example/dir/";

describe("pageRecord", () => {
  const patient = new MarkdownPool();
  const hasty = new MarkdownPool({ timeoutMs: 300 });
  after(async () => {
    await patient.close();
    await hasty.close();
  });

  function recordOf(
    html: string,
    asked: object = {},
    answered: Partial<LoadedPage> = {},
    markdown = patient,
  ) {
    const page: LoadedPage = {
      ...{ kind: "page", status: 200, html, truncated: false, contentType: "text/html" },
      ...{ lastModifiedAt: undefined, awayMs: undefined, nofollow: false },
      ...{ browserMs: 0, ...answered },
    };
    const request = CrawlRequest.parse({ url, ...asked });
    const parts = { markdown, markdownPlaces: new Semaphore(1) };
    return pageRecord(parts, { account, url, page, request }, new AbortController().signal);
  }
  const members = ({ body }: { body: Buffer }) => JSON.parse(`{${body}}`);

  it("pageRecord() resolves Markdown's links as the page does, and keeps plain text unchanged", async () => {
    const formats = ["markdown"];
    const html = await recordOf("<base href=/b/><a href=c>d</a>", { formats });
    expect(members(html)).to.deep.equal({ markdown: "[d](http://a.example/b/c)\n" });
    expect(html.links).to.deep.equal(["http://a.example/b/c"]);
    const text = await recordOf("<a href=c>", { formats }, { contentType: "text/plain" });
    expect(members(text)).to.deep.equal({ markdown: "<a href=c>" });
    expect(text.links).to.deep.equal([]);
  });

  it("pageRecord() reports noindex from a page's head or its header", async () => {
    const meta = '<meta name="robots" content="NoIndex">';
    expect((await recordOf(meta)).metadata).to.include({ noindex: true });
    expect((await recordOf("<p>", {}, { noindex: true })).metadata).to.include({ noindex: true });
    expect((await recordOf("<p>")).metadata).not.to.have.property("noindex");
  });

  it("pageRecord() keeps a page whose Markdown failed, and reports why", async () => {
    const html = "<p>word <b>x</b> <a href=y>z</a></p>".repeat(200_000);
    const record = await recordOf(html, { formats: ["html", "markdown"] }, {}, hasty);
    expect(Object.keys(members(record))).to.deep.equal(["html"]);
    expect(record.reason).to.equal("Cannot make Markdown: it took longer than 300 ms");
  });

  it("pageRecord() keeps the body of an error as HTML, whatever formats were requested", async () => {
    const gone = "<p>gone";
    const formats = ["markdown"];
    const failed = await recordOf(gone, { formats }, { status: 400 });
    expect(members(failed)).to.deep.equal({ html: gone, markdown: "gone\n" });
    expect(members(await recordOf(gone, { formats }, { status: 399 }))).not.to.have.property(
      "html",
    );
    const asked = { formats: ["json"], jsonOptions: { prompt: "x" } };
    expect(members(await recordOf(gone, asked, { status: 503 }))).to.deep.equal({ html: gone });
    const twice = await recordOf(gone, { formats: ["html"] }, { status: 404 });
    expect(`${twice.body}`).to.equal(`"html":"${gone}"`);
  });

  it("pageRecord() keeps the first PAGE_LINKS_BYTES_MAX bytes of links", async () => {
    const count = 700;
    const link = (chars: number, index: number) => `${url}${index}-`.padEnd(chars, "a");
    const charsOf = PAGE_LINKS_BYTES_MAX / count - 3;
    const page = (more: number) =>
      recordOf(
        Array.from({ length: count }, (_, index) => {
          return `<a href=${link(charsOf + (index === count - 1 ? more : 0), index)}>`;
        }).join(""),
      );
    const whole = await page(0);
    expect(whole.links).to.have.length(count);
    expect(whole).not.to.have.property("reason");
    const cut = await page(1);
    expect(cut.links).to.have.length(count - 1);
    expect(cut.reason).to.equal(`Only its first ${count - 1} links are followed`);
  });

  it("pageRecord() notes that links past PAGE_LINKS_MAX are not followed", async () => {
    const links = (count: number) =>
      Array.from({ length: count }, (_, index) => `<a href=${index}>`).join("");
    expect(await recordOf(links(PAGE_LINKS_MAX))).not.to.have.property("reason");
    const { reason } = await recordOf(links(PAGE_LINKS_MAX + 1));
    expect(reason).to.equal(`Only its first ${PAGE_LINKS_MAX} links are followed`);
  });

  it("pageRecord() stores unpaired surrogates so that the record can be read again", async () => {
    const record = await recordOf("<title>\ud800</title>");
    expect(members(record)).to.deep.equal({ html: "<title>\ud800</title>" });
  });
});
