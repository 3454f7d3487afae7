import { expect } from "chai";
import {
  CRAWL_URL_CHARS_MAX,
  PAGE_LINKS_MAX,
  PAGE_TITLE_CHARS_MAX,
} from "../../../../schemas/crawl/limits.ts";
import { pageLinks } from "./page-links.ts";

describe("pageLinks", () => {
  it("pageLinks() finds links of a and area, absolute, once each, in the page's order", () => {
    const html = `<A HREF='/b?x=1&amp;y=2#f'>b</A> <area href=c> <a href=" https://o.example/ ">o</a>
      <a href="/b?x=1&y=2">again</a> <a name=x>no</a> <img href=no> <abbr href=no> <link href=no>`;
    expect(read(html).links).to.deep.equal([
      "https://a.example/b?x=1&y=2",
      "https://a.example/dir/c",
      "https://o.example/",
    ]);
  });

  it("pageLinks() leaves out addresses that are not pages", () => {
    const hrefs = ["#top", "", " ", "mailto:a@b", "javascript:x()", "data:,x", "http://[", "tel:1"];
    const html = hrefs.map((href) => `<a href="${href}">x</a>`).join("");
    // An empty address is the page itself.
    expect(read(html).links).to.deep.equal(["https://a.example/dir/page"]);
    expect(
      read('<!-- <a href="/c"> --><script>"<a href=/s>"</script><a href=/x').links,
    ).to.have.length(0);
  });

  it("pageLinks() leaves out nofollow links, and reports a nofollow page", () => {
    const html = `<a href=/a rel="external NoFollow">x</a><a href=/b rel=noopener>y</a>`;
    expect(read(html)).to.deep.include({
      links: ["https://a.example/b"],
      nofollow: false,
    });
    const meta = (name: string, content: string) => {
      return read(`<meta content="${content}" name="${name}">`).nofollow;
    };
    expect(meta("robots", "NoFollow, noarchive")).to.equal(true);
    expect(meta("ROBOTS", "noindex")).to.equal(false);
    expect(meta("robots", "none")).to.equal(true);
    expect(meta("testbot", "nofollow")).to.equal(true);
    expect(meta("otherbot", "nofollow")).to.equal(false);
  });

  it("pageLinks() reports a meta refresh, but not one in noscript", () => {
    const refresh = (url: string) => `<meta content="0;url=${url}" http-equiv=Refresh>`;
    expect(
      read(`<noscript>${refresh("/a")}</noscript>${refresh("/b")}${refresh("/c")}`),
    ).to.include({
      refresh: "0;url=/b",
    });
    expect(read("<meta http-equiv=x-ua-compatible content=IE>")).not.to.have.property("refresh");
  });

  it("pageLinks() finds links in shadow roots", () => {
    const html = "<x-a><template shadowrootmode=open><a href=/s>s</a></template></x-a>";
    expect(read(html).links).to.deep.equal(["https://a.example/s"]);
  });

  it("pageLinks() resolves against the first base, wherever it stands", () => {
    const html = "<a href=x>x</a><base href=/b/><base href=/c/><link rel=canonical href=y>";
    expect(read(html)).to.deep.include({
      links: ["https://a.example/b/x"],
    });
    for (const base of ["javascript:x", "http://["]) {
      expect(read(`<base href="${base}"><a href=x>`).links).to.deep.equal([
        "https://a.example/dir/x",
      ]);
    }
  });

  it("pageLinks() reads the page's title, not titles in SVG", () => {
    const drawing = "<svg><title>drawing</title></svg><svg/>";
    expect(read(`${drawing}<title> A &amp;\n B<b> </title><title>C</title>`).title).to.equal(
      "A & B<b>",
    );
    expect(read("<title></title>")).not.to.have.property("title");
    expect(read(`<title>${"é".repeat(5_000)}`).title).to.have.length(PAGE_TITLE_CHARS_MAX);
  });

  it("pageLinks() keeps PAGE_LINKS_MAX links and says when there were more", () => {
    const page = (count: number) =>
      read(Array.from({ length: count }, (_, index) => `<a href=/${index}>`).join(""));
    expect(page(PAGE_LINKS_MAX))
      .to.include({ truncated: false })
      .with.property("links")
      .length(PAGE_LINKS_MAX);
    expect(page(PAGE_LINKS_MAX + 1))
      .to.include({ truncated: true })
      .with.property("links")
      .length(PAGE_LINKS_MAX);
  });

  it("pageLinks() accepts addresses of CRAWL_URL_CHARS_MAX characters", () => {
    const base = "https://a.example/";
    const href = (chars: number) => `<a href="${base}${"a".repeat(chars - base.length)}">`;
    expect(read(href(CRAWL_URL_CHARS_MAX)).links).to.have.length(1);
    expect(read(href(CRAWL_URL_CHARS_MAX + 1)).links).to.have.length(0);
    expect(read(href(100_000)).links).to.have.length(0);
    expect(read(`<a href="${"&amp;".repeat(100_000)}">`).links).to.have.length(0);
  });
});

function read(html: string) {
  return pageLinks(html, { url: "https://a.example/dir/page", productToken: "TestBot" });
}
