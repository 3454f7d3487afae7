import { expect } from "chai";
import { type Node, Parser } from "commonmark";
import { markdown } from "./markdown.ts";
import { MARKDOWN_SPAN_MAX } from "./page-tables.ts";
import { MARKDOWN_DEPTH_MAX } from "./parse-page.ts";

/** Markup that Markdown must not lose: white space, code, links, cells. Each case occurs on real sites. */
describe("markdown of markup that is easily lost", () => {
  it("markdown() keeps every character of preformatted text", () => {
    const cases: [html: string, code: string][] = [
      [`<pre><span class="k">if</span> x:\n<span class="w">    </span>y\n</pre>`, "if x:\n    y\n"],
      ["<pre>a\r\nb\r\n\r\n  c</pre>", "a\nb\n\n  c\n"],
      ["<pre>\n\n  a\n\n\n</pre>", "\n  a\n\n\n"],
      ["<pre>a&#13;&#10;b</pre>", "a\nb\n"],
      ["<pre>a<br>  b<br/><br>c</pre>", "a\n  b\n\nc\n"],
      ["<pre><code><div>a</div><div>  b</div></code></pre>", "a\n  b\n"],
      [
        `<pre><span style="display:block">a</span><span style="display:block">b</span></pre>`,
        "a\nb\n",
      ],
      ["<pre>\t\ta\n\u00a0b   \n</pre>", "\t\ta\n\u00a0b   \n"],
      ["<pre>*a* [b](c) <b>d</b> _e_ &amp;amp;</pre>", "*a* [b](c) d _e_ &amp;\n"],
      ["<xmp><b>\n  a</xmp>", "<b>\n  a\n"],
    ];
    for (const [html, code] of cases) {
      for (const around of [
        "",
        "<ul><li>x",
        "<blockquote>",
        "<dl><dd>",
        "<div><span>",
        "<ol start=12><li>",
      ]) {
        expect(codeOf(body(around + html)), around + html).to.deep.equal([code]);
      }
    }
    // In a list item, CommonMark reads a line of blanks as an empty line.
    expect(codeOf(body("<pre>a\n   \nb</pre>"))).to.deep.equal(["a\n   \nb\n"]);
  });

  it("markdown() keeps white space between pieces of inline text", () => {
    const cases: [html: string, expected: string][] = [
      [`<span>int</span><span class="w"> </span><span>PyList_Check</span>(`, "int PyList_Check("],
      [`<p>a<b> b </b>c<i> </i>d`, "a **b** c d"],
      [`<p>a<span>&nbsp;</span>b`, "a\u00a0b"],
      [`<p>a\n<em>b</em>\nc <!-- d --> e`, "a *b* c e"],
      [`<code>a<span> </span>b</code>`, "`a b`"],
      [`<p>a<code> b </code>c`, "a `b` c"],
      [`<a href=x> a </a>b`, "[a](https://a.example/b/x) b"],
    ];
    for (const [html, expected] of cases) expect(body(html), html).to.equal(expected);
  });

  it("markdown() parses back to the text that it was made from", () => {
    const texts = [
      "snake_case __init__ _a_ a__b a_ _b",
      "1 < 2 <b> &lt; & &copy; a<b",
      "~a~ ~~b~~ ~/c",
      "# a",
      "#",
      "- a",
      "+ a",
      "1. a",
      "12) a",
      "> a",
      "---",
      "`a` ``b``",
      "[a](b) ![c](d)",
      "*a* **b**",
      "\\a \\* \\\\",
      "a | b",
    ];
    for (const text of texts) {
      const escaped = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
      expect(textOf(body(`<p>${escaped}`)), text).to.equal(text);
    }
  });

  it("markdown() writes emphasis also where CommonMark would not recognize plain marks", () => {
    const cases: [html: string, expected: string][] = [
      ["<p><b>a</b><b>b</b>", "**ab**"],
      ["<p><b>a<strong>b</strong></b>", "**ab**"],
      ["<p><i>a. </i><i>b</i>", "*a.* *b*"],
      ["<p>x<b>(a)</b>y", "x<strong>(a)</strong>y"],
      ["<p><b>a</b><i>b</i>", "**a**<em>b</em>"],
      ["<p><b><p>a</p><p>b</p></b>", "**a**\n\n**b**"],
      ["<p><b>a<br></b>b", "**a**  \nb"],
    ];
    for (const [html, expected] of cases) expect(body(html), html).to.equal(expected);
  });

  it("markdown() writes links around code, headings and blocks", () => {
    const x = "https://a.example/x";
    const cases: [html: string, expected: string][] = [
      ["<a href=/x><code>f()</code></a>", `[\`f()\`](${x})`],
      ["<code>g(<a href=/x>T</a>)</code>", `\`g(\`[\`T\`](${x})\`)\``],
      ["<a href=/x><h3>T</h3><p>a</p></a>", `### [T](${x})\n\na`],
      ["<a href=/x><div><p>a</p></div></a>", `[a](${x})`],
      ["<h2>T<a class=headerlink href=#t>¶</a></h2>", "## T"],
      ["<h2><a href=#t aria-hidden=true><svg></svg></a>T</h2>", "## T"],
      ["<h2><a href=#t>T</a></h2>", "## [T](https://a.example/b/page#t)"],
      ["<a href=/x aria-label=Home></a>", `[Home](${x})`],
      ["<p>Look!<a href=/x>a</a>", `Look\\![a](${x})`],
      ["<h2>C #</h2>", "## C \\#"],
    ];
    for (const [html, expected] of cases) expect(body(html), html).to.equal(expected);
  });

  it("markdown() writes tables with paragraphs, breaks, code and spans in their cells", () => {
    const cases: [html: string, expected: string[]][] = [
      [
        "<table><tr><th>a<th>b<tr><td><p>c</p><p>d</p><td>e<br>f</table>",
        ["| a | b |", "| --- | --- |", "| c<br>d | e<br>f |"],
      ],
      [
        "<table><tr><th>a<th>b<tr><td><pre>x|y\n  z</pre><td><ul><li>c<li>d</ul></table>",
        ["| a | b |", "| --- | --- |", "| `x\\|y`<br>`  z` | - c<br>- d |"],
      ],
      [
        "<table><tr><th colspan=2>a<th rowspan=2>b<tr><td>c<td>d<tr><td>e<td>f<td>g<td>h</table>",
        ["| a |  | b |  |", "| --- | --- | --- | --- |", "| c | d |  |", "| e | f | g | h |"],
      ],
      [
        "<table><caption>T</caption><tr><th>a<td>b</table>",
        ["T", "", "| a | b |", "| --- | --- |"],
      ],
      [
        "<table><tr><th>a<tr><td>b<pre>c\n  d</pre></table>",
        ["a", "", "b", "", "```", "c", "  d", "```"],
      ],
      ["<table><tr><td><ul><li>a<ul><li>b</ul></ul><td>c</table>", ["- a", "  - b", "", "c"]],
      ["<table role=presentation><tr><td>a<td>b</table>", ["a", "", "b"]],
      [
        "<table><tr><td class=linenos><pre>1\n2</pre><td class=code><pre>a\n  b</pre></table>",
        ["```", "a", "  b", "```"],
      ],
      [
        "<table><tr><td>a<td><table><tr><th>b<th>c</table></table>",
        ["a", "", "| b | c |", "| --- | --- |"],
      ],
    ];
    for (const [html, expected] of cases) expect(body(html), html).to.equal(expected.join("\n"));
  });

  it("markdown() writes at most MARKDOWN_SPAN_MAX columns for one cell", () => {
    const columns = (span: number) =>
      body(`<table><tr><th colspan=${span}>a<th>b</table>`).split("\n")[1]?.match(/---/g)?.length;
    expect(columns(MARKDOWN_SPAN_MAX)).to.equal(MARKDOWN_SPAN_MAX + 1);
    expect(columns(MARKDOWN_SPAN_MAX + 1)).to.equal(MARKDOWN_SPAN_MAX + 1);
  });

  it("markdown() writes tasks, sub and sup, definitions and lists beside each other", () => {
    const cases: [html: string, expected: string][] = [
      [
        "<ul><li><input type=checkbox checked> a<li><label><input type=checkbox>b</label><li>c <input type=checkbox></ul>",
        "- [x] a\n- [ ] b\n- c",
      ],
      ["<ul><li><form> <input> <input> </form> a<li>b</ul>", "- a\n- b"],
      ["<p>H<sub>2</sub>O x<sup>2</sup>", "H<sub>2</sub>O x<sup>2</sup>"],
      ["<dl><dt>a<dd>b<dd><pre>c</pre></dl>", "a\n\n: b\n\n```\nc\n```"],
      ["<ol><li value=3>a<li>b</ol>", "3. a\n4. b"],
      ["<ol start=9><li>a<p>b</p><li>c</ol>", "9. a\n\n   b\n\n10. c"],
    ];
    for (const [html, expected] of cases) expect(body(html), html).to.equal(expected);
  });

  it("markdown() writes formulas by their TeX, once", () => {
    const tex = `<math><semantics><mi>x</mi><annotation encoding="application/x-tex">x^2\n_i</annotation></semantics></math>`;
    const drawn = `<span class="katex-html" aria-hidden="true">x2i</span>`;
    const cases: [html: string, expected: string][] = [
      [
        `<p>a <span class=katex><span class=katex-mathml>${tex}</span>${drawn}</span> b`,
        "a $x^2 _i$ b",
      ],
      [
        `<span class=katex-display><span class=katex><span>${tex}</span>${drawn}</span></span>`,
        "$$x^2 _i$$",
      ],
      [`<p><script type="math/tex; mode=display">a*b*c</script>`, "$$a*b*c$$"],
      [`<p>${tex}<img class=mwe-math-fallback-image-inline alt=x src=x>`, "$x^2 _i$"],
      ["<p><math><mi>a</mi><mo>=</mo><mn>1</mn></math>", "a = 1"],
    ];
    for (const [html, expected] of cases) expect(body(html), html).to.equal(expected);
  });

  it("markdown() uses the address of a lazily loaded image, and no data URL", () => {
    const pixel = "data:image/gif;base64,R0lGOD";
    const i = "https://a.example/i.png";
    const cases: [html: string, expected: string][] = [
      [`<img src="${pixel}" data-src=/i.png alt=a>`, `![a](${i})`],
      [`<img srcset="/s.png 100w, /i.png 800w" alt=a>`, `![a](${i})`],
      [`<img src="/s.png" data-srcset="/s.png 100w, /i.png 800w" alt=a>`, `![a](${i})`],
      [`<img src="${pixel}" srcset="/s.png, /i.png 2x">`, `![](${i})`],
      [`<picture><source srcset="/i.png 1x"><img alt=a></picture>`, `![a](${i})`],
      [`<img src="${pixel}" alt="a b">`, "a b"],
      [`<img src=/i.png alt=a title='b "c"'>`, `![a](${i} "b \\"c\\"")`],
    ];
    for (const [html, expected] of cases) expect(body(html), html).to.equal(expected);
  });

  it("markdown() writes shadow roots where they are shown", () => {
    const shadow = (inner: string) => `<template shadowrootmode=open>${inner}</template>`;
    expect(body(`<x-a>${shadow("<h2>T</h2><slot></slot>")}<p>b</p></x-a>`)).to.equal("## T\n\nb");
    const named = shadow("<p><slot name=s>none</slot></p><p><slot name=t>own</slot></p>");
    expect(body(`<x-a>${named}<b slot=s>c</b><i>unseen</i></x-a>`)).to.equal("**c**\n\nown");
    const nested = shadow(`<x-b>${shadow("<a href=/x>d</a>")}</x-b>`);
    expect(body(`<x-a>${nested}</x-a>`)).to.equal("[d](https://a.example/x)");
  });

  it("markdown() keeps MARKDOWN_DEPTH_MAX levels, and only the text of deeper ones", () => {
    // The elements html and body, and the list of the item, use some of the levels too.
    for (const levels of [MARKDOWN_DEPTH_MAX - 10, MARKDOWN_DEPTH_MAX + 10, 50_000]) {
      const made = body(
        `${"<div>".repeat(levels)}<p>in <b>bold</b></p>${"</div>".repeat(levels)}<h1>out</h1>`,
      );
      const bold = levels < MARKDOWN_DEPTH_MAX ? "**bold**" : "bold";
      expect(made).to.equal(`in ${bold}\n\n# out`);
    }
  });
});

function body(html: string): string {
  return markdown({ html, baseUrl: "https://a.example/b/page" }).replace(/\n$/, "");
}

/** Returns the code blocks that the reference implementation of CommonMark reads. */
function codeOf(text: string): (string | null)[] {
  return nodesOf(text)
    .filter(({ type }) => type === "code_block")
    .map(({ literal }) => literal);
}

function textOf(text: string): string {
  return nodesOf(text)
    .map(({ type, literal }) => (type === "text" ? literal : ""))
    .join("");
}

function nodesOf(text: string): Node[] {
  const walker = new Parser().parse(text).walker();
  const nodes: Node[] = [];
  for (let step = walker.next(); step !== null; step = walker.next()) {
    if (step.entering) nodes.push(step.node);
  }
  return nodes;
}
