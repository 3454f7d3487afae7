import { expect } from "chai";
import { PAGE_LINKS_MAX } from "../../../../schemas/crawl/limits.ts";
import { processorTime } from "../../../../scripts/testing/processor-time.ts";
import { markdown } from "./markdown.ts";
import { pageLinks } from "./page-links.ts";

const url = "https://a.example/b/page";

describe("hostile pages", () => {
  it("pageLinks() handles any input within a time limit", () => {
    const megabytes = (part: string) => part.repeat(5_000_000 / part.length);
    const hostile = [
      Array.from({ length: 1_000_000 }, (_, index) => `<a href=/${index}>`).join(""),
      megabytes("<div>"),
      megabytes("<b>").concat(megabytes("</i>")),
      megabytes("<"),
      megabytes("<a href='"),
      megabytes("<a href=x "),
      megabytes("\u0000"),
      megabytes("&amp"),
      megabytes("<!--"),
      megabytes("<title>&lt;"),
      megabytes("<a \ud800=\udfff>"),
      `<a ${megabytes("a=b ")}`,
    ];
    const takenMs = processorTime();
    for (const html of hostile)
      expect(pageLinks(html, { url, productToken: "TestBot" }).links.length).to.be.at.most(
        PAGE_LINKS_MAX,
      );
    expect(takenMs()).to.be.below(30_000);
  }).timeout(120_000);

  it("markdown() handles any input within a time limit", () => {
    const times = (part: string, count: number) => part.repeat(count);
    const hostile = [
      times("<div>", 100_000),
      times("<b>", 100_000),
      times("<i>", 50_000).concat(times("</b>", 50_000)),
      times("<ul><li>", 10_000),
      times("<blockquote>", 10_000),
      times("<table><tr><td>", 10_000),
      `<table><tr>${times("<td>x", 100_000)}</table>`,
      `<pre>${times("`", 100_000)}</pre>`,
      times("<pre class='language-x'>", 10_000),
      times("&amp;", 200_000),
      times("a_*[]<", 100_000),
      times("<a href=x>y</a>", 100_000),
      times("\u0000", 1_000_000),
      `<p class="${times(" hljs", 200_000)}">`,
      `<pre class="${times(" hljs", 200_000)}">x</pre>`,
    ];
    const takenMs = processorTime();
    for (const html of hostile) expect(markdown({ html, baseUrl: url })).to.be.a("string");
    expect(takenMs()).to.be.below(20_000);
  }).timeout(120_000);
});
