/**
 * Lists the records of a crawl by their status. Each record has the reason for its status and a preview of the stored
 * content.
 */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Reading } from "../lib/use-rest.ts";
import type { WireCrawl } from "../lib/wire.ts";
import { CopyButton } from "../parts/button.tsx";
import { Fields } from "../parts/form.tsx";
import { parseHtml, writeHtml } from "../parts/html-tree.ts";
import { type ListOf, Pager, statesFilter } from "../parts/list.tsx";
import { MARKDOWN_CHARS_MAX, Markdown } from "../parts/markup.tsx";
import { Empty, State, type Tone } from "../parts/note.tsx";
import { Card, Read } from "../parts/page.tsx";
import { SourceText } from "../parts/source.tsx";

type WireRecord = WireCrawl["records"][number];

const TONES: Readonly<Record<WireRecord["status"], Tone>> = {
  queued: "busy",
  completed: "good",
  errored: "bad",
  disallowed: "quiet",
  skipped: "quiet",
  cancelled: "quiet",
};
const FILTERS = [statesFilter(Object.keys(TONES))];

interface RecordsProps extends Pick<ListOf<WireRecord>, "next" | "previous"> {
  reading: Reading<WireCrawl>;
  status: string;
  onStatus: (status: string) => void;
}

export function Records({ reading, status, onStatus, next, previous }: RecordsProps) {
  const [shown, setShown] = useState<string>();
  const change = ({ status: chosen = "" }: Record<string, string>) => onStatus(chosen);
  return (
    <Card title="Pages">
      <div class="filters">
        <Fields form={{ values: { status }, change }} fields={FILTERS} />
      </div>
      <Read reading={reading}>
        {({ records, status: of }) => (
          <>
            {records.length === 0 ? (
              <Empty title={emptyTitle(status, of === "running")} />
            ) : (
              <ul class="entries records">
                {records.map((record) => (
                  <RecordLine
                    key={record.url}
                    record={record}
                    isShown={shown === record.url}
                    onShow={(isShown) => setShown(isShown ? record.url : undefined)}
                  />
                ))}
              </ul>
            )}
            <Pager next={next} previous={previous} />
          </>
        )}
      </Read>
    </Card>
  );
}

function emptyTitle(status: string, isRunning: boolean): string {
  if (status !== "") return `No page is ${status}`;
  return isRunning ? "The first page is on its way" : "There is no page";
}

interface LineProps {
  record: WireRecord;
  isShown: boolean;
  onShow: (isShown: boolean) => void;
}

function RecordLine({ record, isShown, onShow }: LineProps) {
  const { url, status, metadata, reason } = record;
  const hasContent = [record.markdown, record.html, record.json].some((one) => one !== undefined);
  const notes = [
    metadata?.status !== undefined && `HTTP ${metadata.status}`,
    metadata?.contentType?.split(";")[0],
    metadata?.truncated && "cut off",
    metadata?.cachedAt && "from the cache",
    metadata?.noindex && "noindex",
  ].filter(Boolean);
  const word = isShown ? "Close" : "Preview";
  return (
    <li>
      <div class="record-line">
        <span class="commit-text">
          <span class="record-title">{metadata?.title || url}</span>
          <span class="quiet">
            {metadata?.title && `${url} · `}
            {notes.join(" · ")}
          </span>
          {reason && <span class={status === "errored" ? "reason" : "quiet"}>{reason}</span>}
        </span>
        <span class="record-side">
          <State of={status} tones={TONES} />
          {hasContent && (
            <button
              type="button"
              class="small second"
              aria-expanded={isShown}
              aria-label={`${word} ${url}`}
              onClick={() => onShow(!isShown)}
            >
              {word}
            </button>
          )}
        </span>
      </div>
      {isShown && <Preview record={record} />}
    </li>
  );
}

/** Maximum number of characters in a view. Longer content is cut; the REST API returns all of it. */
const SHOWN_CHARS_MAX = MARKDOWN_CHARS_MAX;

interface View {
  name: string;
  text: string;
  kind: "markdown" | "html" | "source";
  language: string;
}

function Preview({ record }: { record: WireRecord }) {
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
  const data = json === undefined ? undefined : JSON.stringify(json, null, 2);
  const views: [name: string, text: string | undefined, kind: View["kind"], language: string][] = [
    ["Markdown", markdown, "markdown", "markdown"],
    ["Page", html, "html", "html"],
    ["Markdown source", markdown, "source", "markdown"],
    ["HTML source", html, "source", "html"],
    ["JSON", data, "source", "json"],
  ];
  return views.flatMap(([name, text, kind, language]) =>
    text === undefined ? [] : [{ name, text, kind, language }],
  );
}

/**
 * The head of the frame's document. The document has no scripts, forms, links, pictures or styles of the crawled
 * page, and may load nothing. The inherited content security policy also forbids our own styles, so the old element
 * <font> sets the font.
 */
const FRAME_HEAD = `<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light dark">\
<meta http-equiv="Content-Security-Policy" content="default-src 'none'"><title>Page</title><font face="system-ui, sans-serif">`;

/**
 * Shows a crawled page without anything that could run or load. The console's content security policy refuses text as
 * markup, also for `srcdoc`, so the frame shows a blob URL. The blob inherits the same policy, and the sandbox gives
 * the frame no origin.
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
