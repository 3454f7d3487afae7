/** The playground: a page and its options on one side, the result on the other. */
import { useEffect, useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { formatBytes, formatDuration } from "../lib/format.ts";
import { send } from "../lib/rest.ts";
import { Facts } from "../parts/bits.tsx";
import { Form, RadioGroup, TextField } from "../parts/form.tsx";
import { Card, Empty, Page } from "../parts/page.tsx";
import { OptionFields } from "./option-fields.tsx";
import { type Action, type Body, bodyFor, FIRST_BODY } from "./render-request.ts";
import { RenderingTabs } from "./rendering-tabs.tsx";

/** Kinds of results that are shown. Others would be a surprise, and are offered as a file alone. */
const PICTURES = new Set(["image/png", "image/jpeg", "image/webp"]);

interface Result {
  url: string;
  type: string;
  bytes: number;
  headers: Headers;
  tookMs: number;
}

export function PlaygroundPage() {
  const { restPath } = useAccount();
  const [action, setAction] = useState<Action>("pdf");
  const [body, setBody] = useState<Body>(FIRST_BODY);
  const [result, setResult] = useState<Result>();
  // Browsers keep the bytes until the address is revoked.
  useEffect(() => () => result && URL.revokeObjectURL(result.url), [result]);
  const request = {
    method: "POST" as const,
    path: restPath(`/browser-rendering/${action}`),
    json: bodyFor(action, body),
  };
  const render = async () => {
    setResult(undefined);
    const began = performance.now();
    const response = await send(request);
    const type = response.headers.get("content-type")?.split(";")[0] ?? "";
    // Never a type that may hold a program: the address would be of this origin.
    const shown =
      PICTURES.has(type) || type === "application/pdf" ? type : "application/octet-stream";
    const blob = new Blob([await response.arrayBuffer()], { type: shown });
    setResult({
      url: URL.createObjectURL(blob),
      type: shown,
      bytes: blob.size,
      headers: response.headers,
      tookMs: performance.now() - began,
    });
  };
  return (
    <Page
      title="Rendering"
      lead="Try a page and its options out, then copy the request into your program."
      request={request}
    >
      <RenderingTabs current="rendering" />
      <div class="halves">
        <Card title="Request">
          <RequestForm {...{ action, setAction, body, setBody, render }} />
        </Card>
        <Card title="Result">
          {result ? (
            <Shown result={result} action={action} />
          ) : (
            <Empty title="Nothing is rendered yet">
              <p>Press Render. It takes browser time of the account.</p>
            </Empty>
          )}
        </Card>
      </div>
    </Page>
  );
}

interface RequestProps {
  action: Action;
  setAction: (action: Action) => void;
  body: Body;
  setBody: (body: Body) => void;
  render: () => Promise<void>;
}

function RequestForm({ action, setAction, body, setBody, render }: RequestProps) {
  const [view, setView] = useState("form");
  return (
    <Form submit="Render" onSubmit={render}>
      <div class="in-line">
        <RadioGroup
          label="Make"
          value={action}
          onChange={(value) => setAction(value as Action)}
          choices={[
            { value: "pdf", label: "PDF" },
            { value: "screenshot", label: "Screenshot" },
          ]}
        />
        <RadioGroup
          label="Options as"
          value={view}
          onChange={setView}
          choices={[
            { value: "form", label: "Form" },
            { value: "json", label: "JSON" },
          ]}
        />
      </div>
      {view === "form" ? (
        <>
          <Source body={body} onChange={setBody} />
          <OptionFields action={action} body={body} onChange={setBody} />
        </>
      ) : (
        <JsonField action={action} body={body} onChange={setBody} />
      )}
    </Form>
  );
}

/** The page: an address, or its HTML. */
function Source({ body, onChange }: { body: Body; onChange: (body: Body) => void }) {
  const { url, html, ...options } = body;
  const isUrl = url !== undefined;
  return (
    <>
      <div class="in-line">
        <RadioGroup
          label="Page"
          value={isUrl ? "url" : "html"}
          onChange={(kind) =>
            onChange(
              kind === "url"
                ? { url: "https://example.com/", ...options }
                : { ...FIRST_BODY, ...options },
            )
          }
          choices={[
            { value: "html", label: "HTML" },
            { value: "url", label: "URL" },
          ]}
        />
      </div>
      {isUrl ? (
        <TextField
          label="Address"
          type="url"
          pointer="/url"
          value={String(url)}
          onChange={(text) => onChange({ url: text, ...options })}
          required
        />
      ) : (
        <TextField
          label="Markup"
          rows={6}
          isCode
          pointer="/html"
          value={String(html ?? "")}
          onChange={(text) => onChange({ html: text, ...options })}
          required
        />
      )}
    </>
  );
}

function JsonField({
  action,
  body,
  onChange,
}: {
  action: Action;
  body: Body;
  onChange: (body: Body) => void;
}) {
  const [text, setText] = useState(() => JSON.stringify(bodyFor(action, body), null, 2));
  const [fault, setFault] = useState("");
  const change = (next: string) => {
    setText(next);
    try {
      const parsed: unknown = JSON.parse(next);
      const isObject = typeof parsed === "object" && parsed !== null && !Array.isArray(parsed);
      setFault(isObject ? "" : "Expected an object in braces.");
      if (isObject) onChange(parsed as Body);
    } catch (error) {
      setFault(`It is no JSON yet, so the last good version is sent. ${(error as Error).message}`);
    }
  };
  return (
    <>
      <TextField label="Body" rows={16} isCode value={text} onChange={change} />
      <p class="fault" aria-live="polite">
        {fault}
      </p>
    </>
  );
}

function Shown({ result, action }: { result: Result; action: Action }) {
  const { url, type, bytes, headers, tookMs } = result;
  const browserMs = headers.get("x-browser-ms-used");
  const status = headers.get("x-target-status");
  const name = `result.${type.split("/")[1] ?? "bin"}`;
  return (
    <div role="status" aria-label="Result">
      <Facts
        rows={[
          ["Size", formatBytes(bytes)],
          ["Took", formatDuration(tookMs)],
          browserMs !== null && ["Browser time", formatDuration(Number(browserMs))],
          status !== null && ["Status of the page", status],
        ]}
      />
      <p>
        <a class="button small" href={url} download={name}>
          Download
        </a>
      </p>
      {PICTURES.has(type) && <img class="shown" src={url} alt={`The page as a ${action}`} />}
      {type === "application/pdf" &&
        (navigator.pdfViewerEnabled ? (
          <iframe class="shown" src={url} title="The page as a PDF" />
        ) : (
          <p class="quiet">This browser shows no PDF inside a page. Download it.</p>
        ))}
    </div>
  );
}
