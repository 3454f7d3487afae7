/** What was kept of a page: its Markdown as a document, its HTML in a frame that can do nothing, and both as source. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { CopyButton } from "../parts/copy.tsx";
import { parseHtml, writeHtml } from "../parts/html-tree.ts";
import { MARKDOWN_CHARS_MAX, Markdown } from "../parts/markup.tsx";
import { SourceText } from "../parts/source.tsx";
import type { WireRecord } from "./crawl-state.tsx";

/** More characters than these are cut in a view; the REST API has all of them. */
const SHOWN_CHARS_MAX = MARKDOWN_CHARS_MAX;

interface View {
  name: string;
  text: string;
  kind: "markdown" | "html" | "source";
  language: string;
}

export function Preview({ record }: { record: WireRecord }) {
  const views = viewsOf(record);
  const [chosen, setChosen] = useState(views[0]?.name);
  const view = views.find(({ name }) => name === chosen) ?? views[0];
  if (!view) return null;
  const text = view.text.slice(0, SHOWN_CHARS_MAX);
  return (
    <section class="preview" aria-label={`Content of ${record.url}`}>
      <div class="latest">
        <div class="actions">
          {views.map(({ name }) => (
            <button
              key={name}
              type="button"
              class={`small ${name === view.name ? "" : "second"}`}
              aria-pressed={name === view.name}
              onClick={() => setChosen(name)}
            >
              {name}
            </button>
          ))}
        </div>
        <CopyButton text={view.text} />
      </div>
      {text.length < view.text.length && (
        <p class="quiet padded">Only the beginning is shown. "Copy" copies all of it.</p>
      )}
      <div class={view.kind === "markdown" ? "padded" : ""}>
        <Shown view={view} text={text} url={record.url} />
      </div>
    </section>
  );
}

function Shown({ view, text, url }: { view: View; text: string; url: string }) {
  if (view.kind === "markdown") return <Markdown text={text} />;
  if (view.kind === "html") return <HtmlFrame html={text} title={`HTML of ${url}`} />;
  return <SourceText text={text} language={view.language} label={view.name} />;
}

function viewsOf({ markdown, html, json }: WireRecord): View[] {
  const views: View[] = [];
  if (markdown !== undefined) {
    views.push({ name: "Markdown", text: markdown, kind: "markdown", language: "markdown" });
  }
  if (html !== undefined) views.push({ name: "Page", text: html, kind: "html", language: "html" });
  if (markdown !== undefined) {
    views.push({
      name: "Markdown source",
      text: markdown,
      kind: "source",
      language: "markdown",
    });
  }
  if (html !== undefined) {
    views.push({ name: "HTML source", text: html, kind: "source", language: "html" });
  }
  if (json !== undefined) {
    const text = JSON.stringify(json, null, 2);
    views.push({ name: "JSON", text, kind: "source", language: "json" });
  }
  return views;
}

/**
 * The frame has no scripts, forms, links, pictures or styles of the page, and may load nothing. The policy that it
 * inherits forbids styles of its own too, so an old element names the font.
 */
const FRAME_HEAD = `<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light dark">\
<meta http-equiv="Content-Security-Policy" content="default-src 'none'"><title>Page</title><font face="system-ui, sans-serif">`;

/**
 * Shows a page without what could run or load. The policy of the console takes no text as markup, also not for
 * `srcdoc`, so the frame gets a blob: it inherits the same policy, and the sandbox gives it no origin.
 */
function HtmlFrame({ html, title }: { html: string; title: string }) {
  const text = useMemo(() => `${FRAME_HEAD}${writeHtml(parseHtml(html))}</font>`, [html]);
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([text], { type: "text/html" }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [text]);
  return url === undefined ? null : (
    <iframe class="page-frame" title={title} sandbox="" src={url} />
  );
}
