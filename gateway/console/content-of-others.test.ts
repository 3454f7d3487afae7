import { expect } from "chai";
import { type MarkupNode, parseHtml, writeHtml } from "./app/parts/html-tree.ts";
import { parseMarkdown } from "./app/parts/markdown-tree.ts";
import { parsePatch } from "./app/repositories/parse-patch.ts";
import { HOSTILE_CORPUS } from "./testing/hostile-texts.ts";

const KEPT_ATTRIBUTES = ["href", "src", "alt", "colspan", "rowspan", "language"];

function elementsOf(nodes: readonly MarkupNode[]): Exclude<MarkupNode, string>[] {
  return nodes.flatMap((node) =>
    typeof node === "string" ? [] : [node, ...elementsOf(node.children)],
  );
}

const depthOf = (nodes: readonly MarkupNode[]): number =>
  nodes.reduce(
    (deepest, node) => Math.max(deepest, typeof node === "string" ? 0 : 1 + depthOf(node.children)),
    0,
  );

describe("content of others in the console", () => {
  const hostile = [
    ...HOSTILE_CORPUS,
    "<SCRIPT>x</SCRIPT>",
    "<style>p{}</style><link rel=stylesheet href=//evil.example>",
    "<p onclick=x style=y id=z class=w>text</p>",
    "<form action=//evil.example><input autofocus onfocus=x></form>",
    "<svg><foreignObject><p>x</p></foreignObject></svg><math><mtext><p>y</p></mtext></math>",
    "<object data=x><embed src=y></object><base href=//evil.example><meta http-equiv=refresh>",
    "<noscript><p title='</noscript><img src=x onerror=y>'>",
  ];

  for (const text of hostile) {
    it(`keeps nothing that runs or loads of ${text}`, () => {
      for (const nodes of [
        parseHtml(text),
        parseMarkdown(text),
        parseMarkdown(`# a ${text}\n\n- ${text}`),
      ]) {
        for (const { name, attributes } of elementsOf(nodes)) {
          expect(name).to.match(/^(p|img|h1|ul|li|a|code|details)$/);
          expect(KEPT_ATTRIBUTES).to.include.members(Object.keys(attributes));
        }
      }
      expect(writeHtml(parseHtml(text))).to.match(/^(<\/?(p|i|u|details)>|[^<])*$/);
    });
  }

  it("writes text as text, and neither links nor pictures", () => {
    const html = `<h1>a &lt;b&gt; &amp;amp;</h1><a href="//x">link</a><img src=y alt="&lt;c"><td colspan='2" onclick="x'>d</td>`;
    expect(writeHtml(parseHtml(html))).to.equal(
      "<h1>a &lt;b&gt; &amp;amp;</h1><u>link</u><i>[&lt;c]</i><td>d</td>",
    );
  });

  it("bounds depth and number of elements, and keeps the text of what is deeper", () => {
    const nested = (count: number) =>
      parseHtml(`${"<blockquote>".repeat(count)}text${"</blockquote>".repeat(count)}`);
    expect(depthOf(nested(9_999))).to.equal(60);
    expect(writeHtml(nested(10_000))).to.contain("text");
    expect(writeHtml(nested(10_001))).to.not.contain("text");
    expect(depthOf(nested(1_000_000))).to.equal(60);
    const many = parseHtml("<p>a".repeat(40_000));
    expect(elementsOf(many).length).to.be.within(10_000, 30_000);
  });

  it("reads Markdown with tables, tasks, entities and front matter", () => {
    const [front, paragraph, table, list] = parseMarkdown(
      "---\ntitle: x\n---\na &amp; `<b>` **c**<br>d\n\n| e |\n|---|\n| f |\n\n- [x] g\n",
    ).filter((node) => typeof node !== "string");
    expect(front).to.deep.include({ name: "pre", children: ["title: x"] });
    expect(writeHtml(paragraph ? [paragraph] : [])).to.equal(
      "<p>a &amp; <code>&lt;b&gt;</code> <strong>c</strong><br>d</p>",
    );
    expect(writeHtml(table ? [table] : []).replaceAll("\n", "")).to.equal(
      "<table><thead><tr><th>e</th></tr></thead><tbody><tr><td>f</td></tr></tbody></table>",
    );
    expect(writeHtml(list ? [list] : []).replaceAll("\n", "")).to.match(
      /^<ul><li>☑ g<\/li><\/ul>$/,
    );
  });

  it("keeps HTML of a paragraph, and the document after an element without an end", () => {
    const [badge] = elementsOf(
      parseMarkdown("a <a href='https://x.example'><img src=y></a>"),
    ).slice(1);
    expect(badge).to.deep.include({ name: "a", attributes: { href: "https://x.example" } });
    expect(badge?.children).to.have.length(1);
    for (const name of ["object", "title", "select"]) {
      const html = writeHtml(parseMarkdown(`vector<${name}> a\n\n<${name}>\n\nlast`));
      expect(html, name).to.contain("a</p>").and.to.contain("last");
    }
  });

  it("bounds the depth of Markdown and the signs of one paragraph", () => {
    expect(depthOf(parseMarkdown(`${">".repeat(49)} a`))).to.equal(50);
    expect(() => parseMarkdown(`${">".repeat(51)} a`)).to.throw("nested too deeply");
    const signs = (count: number) => writeHtml(parseMarkdown("*a* ".repeat(count / 2)));
    expect(signs(300)).to.contain("<em>");
    expect(signs(302)).to.not.contain("<em>");
    // Without the limit of emphasis characters, this call would take minutes.
    expect(writeHtml(parseMarkdown("*a_".repeat(100_000)))).to.contain("*a_*a_");
  });

  it("numbers the lines of a patch, also of lines that look like headers", () => {
    const patch = [
      "diff --git a/x b/x",
      "--- a/x",
      "+++ b/x",
      "@@ -1,3 +1,3 @@ where",
      " same",
      "--- removed",
      "-diff --git a/y b/y",
      "+++ added",
      "+@@ -1 +1 @@",
      "\\ No newline at end of file",
      "diff --git a/z b/z",
      "new file mode 100644",
      "@@ -0,0 +1 @@",
      "+first",
      "",
    ].join("\n");
    const [x, z, ...others] = parsePatch(patch);
    expect(others).to.deep.equal([]);
    expect(x).to.deep.equal([
      { kind: "hunk", text: "@@ -1,3 +1,3 @@ where" },
      { kind: "same", text: "same", before: 1, after: 1 },
      { kind: "removed", text: "-- removed", before: 2 },
      { kind: "removed", text: "diff --git a/y b/y", before: 3 },
      { kind: "added", text: "++ added", after: 2 },
      { kind: "added", text: "@@ -1 +1 @@", after: 3 },
    ]);
    expect(z?.at(-1)).to.deep.equal({ kind: "added", text: "first", after: 1 });
  });
});
