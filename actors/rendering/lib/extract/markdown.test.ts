import { createRequire } from "node:module";
import { expect } from "chai";
import { z } from "zod";
import { MARKDOWN_HTML_CHARS_MAX, markdown } from "./markdown.ts";
import { kept, readBack, wordsOf, wordsSeen } from "./testing/words.ts";

const examples = z
  .object({ tests: z.array(z.object({ html: z.string(), section: z.string() })) })
  .parse(createRequire(import.meta.url)("commonmark-spec")).tests;

describe("markdown", () => {
  const cases: [what: string, html: string, expected: string][] = [
    [
      "headings and emphasis",
      "<h2>A <em>b</em></h2><p><b>c</b> <del>d</del>",
      "## A *b*\n\n**c** ~~d~~",
    ],
    [
      "nested lists",
      "<ul><li>a<ol start=3><li>b<ul><li>c</ul></ol><li>d</ul>",
      "- a\n  3. b\n     - c\n- d",
    ],
    [
      "tables",
      "<table><tr><th>a<th align=right>b<tr><td>1|2<td>3</table>",
      "| a | b |\n| --- | ---: |\n| 1\\|2 | 3 |",
    ],
    [
      "tables without a head",
      "<table><tr><td>a<td>b<tr><td>c<td>d</table>",
      "| a | b |\n| --- | --- |\n| c | d |",
    ],
    ["quotations", "<blockquote><p>a<blockquote>b</blockquote></blockquote>", "> a\n>\n> > b"],
    [
      "text that would read as a tag across elements",
      "<p><b>List</b>&lt;<i>T</i>&gt; 1 &lt; 2 <code>a&lt;<i>b</i></code>",
      "**List**\\<*T*\\> 1 < 2 `a<b`",
    ],
    [
      "forms and old lists as blocks",
      "<form><fieldset><legend>Size</legend><label>38</label></fieldset><label>Count</label></form><dir><li>a</dir>b",
      "Size\n\n38\n\nCount\n\n- a\n\nb",
    ],
    ["definitions", "<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\n\n: b\n\nc\n\n: d"],
    [
      "details",
      "<details><summary>a <a href=/b>b</a></summary><p>c</details>",
      "a [b](https://a.example/b)\n\nc",
    ],
    [
      "characters that mean something",
      "<p>1. a<p># b<p>*c* _d_ [e] `f` &lt;g>",
      "1\\. a\n\n\\# b\n\n\\*c\\* \\_d\\_ \\[e\\] \\`f\\` \\<g>",
    ],
    ["markup that is never closed", "<p>a<b>b<i>c<ul><li>d", "a**b*c***\n\n- ***d***"],
    ["bytes that are no text", "a\u0000\ud800b", "a\ufffdb"],
    ["nothing", "", ""],
  ];
  for (const [what, html, expected] of cases) {
    it(`markdown() writes ${what}`, () => expect(body(html)).to.equal(expected));
  }

  it("markdown() fences code, with its language where a highlighter left it", () => {
    const code = "x = 1\n\n  y";
    const marked: [html: string, language: string][] = [
      [`<pre>${code}</pre>`, ""],
      [`<pre><code>${code}</code></pre>`, ""],
      [`<pre><code class="language-js">${code}</code></pre>`, "js"],
      [`<pre class="language-css"><code>${code}</code></pre>`, "css"],
      [`<pre><code class="hljs python">${code}</code></pre>`, "python"],
      [`<pre class="brush: php">${code}</pre>`, "php"],
      [`<div class="highlight highlight-source-c++"><pre>${code}</pre></div>`, "c++"],
      [`<pre class="sourceCode haskell"><code class="sourceCode">${code}</code></pre>`, "haskell"],
      [`<pre data-lang=Rust><b>x</b> = 1\n\n  y</pre>`, "rust"],
      [`<div class="highlight-none"><pre>${code}</pre></div>`, ""],
      [
        `<div class="highlight-python3 notranslate"><div class="highlight"><pre>${code}</pre></div></div>`,
        "python",
      ],
      [
        `<div class="language-ruby highlighter-rouge"><div class="highlight"><pre class="highlight"><code>${code}</code></pre></div></div>`,
        "ruby",
      ],
      [`<div class="language-java"><div><div><pre>${code}</pre></div></div></div>`, "java"],
      [`<div class="language-java"><div><div><div><pre>${code}</pre></div></div></div></div>`, ""],
      [`<article class="lang-en"><pre>${code}</pre></article>`, ""],
      [
        `<pre class="shiki github-dark" data-language="ts"><code><span class="line">x = 1</span>\n\n  y</code></pre>`,
        "ts",
      ],
      [
        `<pre class="line-numbers language-css"><code class="language-css">${code}</code></pre>`,
        "css",
      ],
      [`<pre><code class="hljs language-xml">${code}</code></pre>`, "xml"],
      [`<div class="highlight highlight-source-shell"><pre>${code}</pre></div>`, "shell"],
      [`<pre class="src src-lisp">${code}</pre>`, "lisp"],
    ];
    for (const [html, language] of marked) {
      expect(body(html), html).to.equal(`\`\`\`${language}\n${code}\n\`\`\``);
    }
    expect(body("<pre>a\n```\nb</pre>")).to.equal("````\na\n```\nb\n````");
  });

  it("markdown() makes links and images absolute, and drops javascript: links", () => {
    const links: [html: string, expected: string][] = [
      ["<a href=../c?d#e>x</a>", "[x](https://a.example/c?d#e)"],
      ["<a href=//b.example>x</a>", "[x](https://b.example/)"],
      ["<a href=#f>x</a>", "[x](https://a.example/b/page#f)"],
      ["<a href='c d(e)'>x</a>", "[x](https://a.example/b/c%20d\\(e\\))"],
      ["<a href='mailto:a@b'>x</a>", "[x](mailto:a@b)"],
      ["<a href='JavaScript:alert(1)'>x</a>", "x"],
      ["<a href='http://['>x</a>", "x"],
      ["<img src=i.png alt='a b'>", "![a b](https://a.example/b/i.png)"],
    ];
    for (const [html, expected] of links) {
      expect(readBack(body(html)), html).to.equal(readBack(expected));
    }
  });

  it("markdown() leaves out invisible elements", () => {
    const unseen = `<head><style>a</style><title>b</title></head><script>"<p>c</p>"</script>
      <template>d</template><!-- f --><p hidden>g <b>h</b></p><p>seen`;
    expect(body(unseen)).to.equal("seen");
  });

  it("markdown() includes noscript content if no script ran", () => {
    const html = "<p>a</p><noscript><p>b <b>c</b></p></noscript><p>d";
    expect(body(html)).to.equal("a\n\nb **c**\n\nd");
    expect(markdown({ html, baseUrl: BASE, isScripted: true })).to.equal("a\n\nd\n");
  });

  it("markdown() puts the title into front matter that is YAML", () => {
    const page = (title: string) => markdown({ html: "<p>x", baseUrl: BASE, title }).split("\n");
    expect(page("A")).to.deep.equal(["---", 'title: "A"', "---", "", "x", ""]);
    expect(page('"\\: #\n---\u0000\u0085\u2028\ud800')[1]).to.equal(
      'title: "\\"\\\\: #\\n---\\u0000\\u0085\\u2028\ufffd"',
    );
  });

  it("markdown() keeps at least 99 % of the words of every published example together", () => {
    const counts = examples.map(({ html }) =>
      kept(wordsSeen(html), wordsSeen(readBack(body(html)))),
    );
    const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
    const share = sum(counts.map(([of]) => of)) / sum(counts.map(([, all]) => all));
    expect(share).to.be.at.least(0.99);
  });

  it("markdown() of the published examples parses back to the originals", () => {
    const plain = examples.filter(({ section }) => !/HTML/i.test(section));
    const same = plain.filter(({ html }) => form(readBack(body(html))) === form(absolute(html)));
    expect(plain.length).to.be.above(580);
    expect(same.length / plain.length).to.be.at.least(0.85);
  });

  it("markdown() keeps every word of a large page with all kinds of elements", () => {
    const part = (index: number) => `<section><h3 id=s${index}>Chapter ${index}</h3>
      <p>Some <b>bold</b>, <i>slanted</i> and <code>code_${index}</code> words; <a href="/c/${index}">link${index}</a>.</p>
      <ul><li>first${index}<ul><li>inner${index}</li></ul></li><li><p>second${index}</p></li></ul>
      <table><thead><tr><th>Key${index}</th><th>Value</th></tr></thead><tbody><tr><td>a${index}</td><td>b<br>c</td></tr></tbody></table>
      <pre><code class="language-ts">const x${index} = 1;\n</code></pre><blockquote><p>said${index}</p></blockquote></section>`;
    const html = Array.from({ length: 2_000 }, (_, index) => part(index)).join("\n");
    const made = body(html);
    const [of, all] = kept(wordsSeen(html), wordsOf(made));
    expect(all).to.be.above(30_000);
    expect(of / all).to.equal(1);
    expect(made.match(/^```ts$/gm)).to.have.length(2_000);
    expect(made.match(/^\| --- \| --- \|$/gm)).to.have.length(2_000);
    expect(made.match(/^ {2}- inner/gm)).to.have.length(2_000);
  });

  it("markdown() reads MARKDOWN_HTML_CHARS_MAX characters", () => {
    const page = (chars: number) => `${" ".repeat(chars - 3)}end`;
    expect(body(page(MARKDOWN_HTML_CHARS_MAX))).to.equal("end");
    expect(body(page(MARKDOWN_HTML_CHARS_MAX + 1))).to.equal("en");
  });
});

const BASE = "https://a.example/b/page";

function body(html: string): string {
  return markdown({ html, baseUrl: BASE }).replace(/\n$/, "");
}

/** Makes the addresses in the examples absolute, as `markdown()` does. */
function absolute(html: string): string {
  return html.replace(/ (href|src)="([^"]*)"/g, (whole, name: string, address: string) => {
    const url = URL.parse(address.replaceAll("&amp;", "&"), BASE);
    return url === null ? whole : ` ${name}="${url.href.replaceAll("&", "&amp;")}"`;
  });
}

/** Returns HTML without insignificant white space. */
function form(html: string): string {
  return html
    .replace(/\s+/g, " ")
    .replace(/ ?(<\/?(?:p|ul|ol|li|blockquote|pre|h\d|hr)\b[^>]*>) ?/g, "$1")
    .trim();
}
