import { expect } from "chai";
import { refusalOf } from "../../../../scripts/testing/refusal.ts";
import { systemClock } from "../../../runtime/lib/clock.ts";
import { markdownHtml } from "./markdown-html.ts";
import { MARKDOWN_PAGES_AT_ONCE_MAX, markdownPlaces, renderMarkdown } from "./render-markdown.ts";

/** A document that takes minutes, because the parser reads the rest of it again for each bracket. */
const SLOW = "[".repeat(300_000);
const SLOW_MS = 30_000;

describe("pages of Markdown", () => {
  const limits = { signal: new AbortController().signal, clock: systemClock };
  const render = (markdown: string, account = "a", more = {}) =>
    renderMarkdown(markdown, { ...limits, account, ...more });

  it("are whole documents, with the ids that links refer to", () => {
    const html = markdownHtml("# One & <i>two</i>\n\n## Über uns!\n\n## Über uns!\n");
    expect(html).to.match(/^<!doctype html><html><head><meta charset="utf-8">/);
    expect(html).to.contain("<title>One &amp; two</title>");
    const ids = Array.from(html.matchAll(/ id="([^"]*)"/g), ([, id]) => id);
    expect(ids).to.deep.equal(["one--two", "über-uns", "über-uns-1"]);
  });

  it("have the properties of front matter, and only of front matter at the top", () => {
    const html = markdownHtml('---\ntitle: A "b" <c>\nlang: de\nempty:\nlist:\n  - x\n---\ntext');
    expect(html)
      .to.contain('<html lang="de">')
      .and.contain("<title>A &quot;b&quot; &lt;c></title>");
    expect(html).to.contain("<body><p>text</p>");
    expect(markdownHtml("text\n\n---\ntitle: x\n---\n")).to.contain("<title>title: x</title>");
    expect(markdownHtml("")).to.contain("<body></body>");
  });

  it("are made on a thread, for a bounded time", async () => {
    expect(await render("# x")).to.contain("<h1");
    const refused = await refusalOf(render("# x", "a", { ms: 1 }));
    expect(refused.code).to.equal("page_not_printable");
    expect(refused.message).to.contain("longer than 1 ms");
  }).timeout(20_000);

  it("are made MARKDOWN_PAGES_AT_ONCE_MAX at a time; the next one waits, or is given up", async () => {
    const running = Array.from({ length: MARKDOWN_PAGES_AT_ONCE_MAX }, (_, at) =>
      render("# x", `a${at}`),
    );
    expect([markdownPlaces.free, markdownPlaces.waitingOf("a0")]).to.deep.equal([0, 0]);
    const left = new AbortController();
    const refused = render("# x", "a0", { signal: left.signal }).catch(
      (error: Error) => error.message,
    );
    const next = render("# next", "a0");
    expect(markdownPlaces.waitingOf("a0")).to.equal(2);
    left.abort(new Error("left"));
    expect(await refused).to.equal("left");
    expect(await next).to.contain("next");
    await Promise.all(running);
    expect(markdownPlaces.free).to.equal(MARKDOWN_PAGES_AT_ONCE_MAX);
  }).timeout(40_000);

  it("of one account leave a place to other accounts", async () => {
    const ends: string[] = [];
    const hostile = new AbortController();
    const asked = { signal: hostile.signal, ms: SLOW_MS };
    const slow = Array.from({ length: MARKDOWN_PAGES_AT_ONCE_MAX }, () =>
      render(SLOW, "a", asked).catch(() => ends.push("a")),
    );
    await render("# x", "b").then(() => ends.push("b"));
    hostile.abort();
    await Promise.all(slow);
    expect(ends).to.deep.equal(["b", "a", "a"]);
  }).timeout(3 * SLOW_MS);
});
