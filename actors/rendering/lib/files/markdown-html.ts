/**
 * Converts Markdown to a complete page, with a style that prints well. The Markdown and the HTML in it come from the
 * client and are untrusted.
 */
import { Marked, type Tokens } from "marked";

/** Front matter properties that become meta tags of the page. */
const META = ["author", "subject", "description", "keywords"];
const FRONT_MATTER = /^---[ \t]*\r?\n(?<lines>[\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)/;

export function markdownHtml(markdown: string): string {
  const source = markdown.replace(/^\uFEFF/, "");
  const front = FRONT_MATTER.exec(source);
  const properties = propertiesOf(front?.groups?.lines ?? "");
  const page = new MarkdownPage();
  const body = page.render(source.slice(front?.[0].length ?? 0));
  const title = properties.get("title") ?? page.title;
  const metas = META.flatMap((name) => {
    const content = properties.get(name);
    return content === undefined ? [] : [`<meta name="${name}" content="${escaped(content)}">`];
  });
  const lang = properties.get("lang");
  return [
    `<!doctype html><html${lang ? ` lang="${escaped(lang)}"` : ""}><head><meta charset="utf-8">`,
    `<title>${escaped(title)}</title>${metas.join("")}<style>${STYLE}</style></head>`,
    `<body>${body}</body></html>`,
  ].join("");
}

class MarkdownPage {
  /** Text of the first heading. */
  title = "";
  readonly #ids = new Map<string, number>();

  render(markdown: string): string {
    const page = this;
    const marked = new Marked({
      renderer: {
        heading({ tokens, depth, text }: Tokens.Heading) {
          const html = this.parser.parseInline(tokens);
          const plain = plainText(html);
          page.title ||= plain;
          return `<h${depth} id="${page.#idOf(plain || text)}">${html}</h${depth}>\n`;
        },
      },
    });
    return marked.parse(markdown, { async: false });
  }

  /** Returns the anchor name of a heading, built as GitHub does, for links within the document. */
  #idOf(text: string): string {
    const name = text
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M}\s_-]/gu, "")
      .trim()
      .replace(/\s/g, "-");
    const before = this.#ids.get(name) ?? 0;
    this.#ids.set(name, before + 1);
    return before === 0 ? name : `${name}-${before}`;
  }
}

/** Reads front matter in single lines `name: value`. These properties need no other YAML syntax. */
function propertiesOf(lines: string): Map<string, string> {
  const pairs = lines.split(/\r?\n/).flatMap((line): [string, string][] => {
    const [, name = "", value = ""] = /^([A-Za-z]+):[ \t]+(\S.*)$/.exec(line) ?? [];
    if (name === "") return [];
    const bare = value.trim().replace(/^\[(.*)\]$/, "$1");
    return [[name.toLowerCase(), bare.replace(/^(["'])(.*)\1$/, "$2")]];
  });
  return new Map(pairs);
}

function plainText(html: string): string {
  return html
    .replace(/<[^<>]*>/g, "")
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&quot;/g, '"')
    .replace(/&#39;/g, "'")
    .replace(/&amp;/g, "&")
    .trim();
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
}

const STYLE = `
:root { color-scheme: light }
body { max-width: 46em; margin: 0 auto; padding: 1em; font: 11pt/1.5 system-ui, "Liberation Sans", Arial, sans-serif }
@media print { body { max-width: none; padding: 0 } }
@page { margin: 2cm }
h1, h2, h3, h4, h5, h6 { line-height: 1.25; margin: 1.4em 0 0.5em; break-after: avoid }
h1 { font-size: 2em; margin-top: 0 }
h1, h2 { border-bottom: 1px solid #d0d7de; padding-bottom: 0.2em }
p, li { orphans: 3; widows: 3 }
blockquote, img, svg, tr { break-inside: avoid }
pre, code { font: 0.9em/1.45 ui-monospace, "Liberation Mono", "DejaVu Sans Mono", monospace }
pre, code { background: #f3f4f6; print-color-adjust: exact }
code { padding: 0.1em 0.3em; border-radius: 3px }
pre { orphans: 4; widows: 4; box-decoration-break: clone; padding: 0.8em 1em; border-radius: 5px; white-space: pre-wrap; overflow-wrap: anywhere }
pre code { padding: 0; background: none }
blockquote { margin: 1em 0; padding: 0 1em; border-left: 3px solid #d0d7de; color: #57606a }
table { border-collapse: collapse; margin: 1em 0 }
thead { display: table-header-group }
th, td { border: 1px solid #d0d7de; padding: 0.3em 0.7em; text-align: left }
th { background: #f3f4f6; print-color-adjust: exact }
[align="right"] { text-align: right } [align="center"] { text-align: center }
img, svg { max-width: 100%; height: auto }
li:has(> input[type="checkbox"]) { list-style: none; margin-left: -1.4em }
hr { border: 0; border-top: 1px solid #d0d7de }
a { color: #0550ae }
`;
