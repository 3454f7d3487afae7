/** The playground: a page to render and its options on one side, the result on the other. */
import { useEffect, useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { formatBytes, formatDuration } from "../lib/format.ts";
import { post, send } from "../lib/rest.ts";
import { Fields, Form, type FormState, useForm } from "../parts/form.tsx";
import { Empty, Facts } from "../parts/note.tsx";
import { Card, Page } from "../parts/page.tsx";
import { SourceText } from "../parts/source.tsx";
import { renderingTabs } from "./jobs-page.tsx";
import {
  ACTIONS,
  type Body,
  bodyFor,
  extensionOf,
  FIRST_BODY,
  optionsForm,
} from "./render-request.ts";

/** Media types of results that are shown as pictures. Unknown types are only offered for download. */
const PICTURES = new Set(["image/png", "image/jpeg", "image/webp"]);
const FIRST = { action: "pdf", view: "form", isJob: false };
const FORMS = [
  ["form", "Form"],
  ["json", "JSON"],
] as const;

const KINDS = [
  ["html", "HTML"],
  ["url", "URL"],
] as const;

interface Result {
  url: string;
  type: string;
  extension: string;
  bytes: number;
  headers: Headers;
  tookMs: number;
  /** The text of a result that is text, such as Markdown or links. Undefined for other results. */
  text: string | undefined;
}

export function PlaygroundPage() {
  const { restPath, go } = useAccount();
  const form = useForm(FIRST);
  const [body, setBody] = useState<Body>(FIRST_BODY);
  const [result, setResult] = useState<Result>();
  // Revokes the URL of an old result, because browsers keep its bytes in memory until then.
  useEffect(() => () => result && URL.revokeObjectURL(result.url), [result]);
  const { action, isJob } = form.values;
  const request = {
    ...post(restPath(`/browser-rendering/${action}`), bodyFor(action, body)),
    ...(isJob && { headers: { Prefer: "respond-async" } }),
  };
  const render = async () => {
    setResult(undefined);
    const began = performance.now();
    const response = await send(request);
    if (isJob) go("rendering/jobs");
    else setResult(await resultOf(response, began));
  };
  return (
    <Page
      title="Rendering"
      lead="Try a page and its options out, then copy the request into your program."
      request={request}
      tabs={renderingTabs("rendering")}
    >
      <div class="columns">
        <Card title="Request">
          <RequestForm {...{ form, body, setBody, render }} />
        </Card>
        <Card title="Result">
          {result ? (
            <Shown result={result} action={action} />
          ) : (
            <Empty title="Nothing is rendered yet">
              Press Render. It takes browser time of the account.
            </Empty>
          )}
        </Card>
      </div>
    </Page>
  );
}

async function resultOf(response: Response, began: number): Promise<Result> {
  const type = response.headers.get("content-type")?.split(";")[0] ?? "";
  const buffer = await response.arrayBuffer();
  const answer =
    type === "application/json" ? JSON.parse(new TextDecoder().decode(buffer)).result : undefined;
  // Never creates a URL for a type that may contain scripts: the URL would have the origin of the console.
  const shown =
    PICTURES.has(type) || type === "application/pdf" ? type : "application/octet-stream";
  const blob = new Blob([buffer], { type: shown });
  return {
    url: URL.createObjectURL(blob),
    type: shown,
    extension: extensionOf(type),
    bytes: blob.size,
    headers: response.headers,
    tookMs: performance.now() - began,
    text: Array.isArray(answer) ? answer.join("\n") : answer,
  };
}

interface RequestProps {
  form: FormState<typeof FIRST>;
  body: Body;
  setBody: (body: Body) => void;
  render: () => Promise<void>;
}

function RequestForm({ form, body, setBody, render }: RequestProps) {
  const { action, view } = form.values;
  const options = optionsForm(action, body, setBody);
  return (
    <Form submit="Render" onSubmit={render}>
      <div class="in-line">
        <Fields
          form={form}
          fields={[
            { name: "action", label: "Make", choices: ACTIONS },
            { name: "view", label: "Options as", choices: FORMS },
          ]}
        />
      </div>
      {view === "form" ? (
        <>
          <Source body={body} onChange={setBody} />
          <div class="in-line">
            <Fields {...options} />
          </div>
        </>
      ) : (
        <JsonField action={action} body={body} onChange={setBody} />
      )}
      <Fields
        form={form}
        fields={[
          {
            ...{ name: "isJob", label: "Run as a job" },
            hint: "It runs on when you leave, and keeps its result for a day",
          },
        ]}
      />
    </Form>
  );
}

interface BodyProps {
  body: Body;
  onChange: (body: Body) => void;
}

/** The input of the page to render: its address, or its HTML. */
function Source({ body, onChange }: BodyProps) {
  const { url, html, ...options } = body;
  const kind = url === undefined ? "html" : "url";
  const values = { kind, url: String(url ?? ""), html: String(html ?? "") };
  const change = (changed: Partial<typeof values>) => {
    const { kind: chosen, ...text } = changed;
    const first = chosen === "url" ? { url: "https://example.com/" } : FIRST_BODY;
    onChange({ ...(chosen === undefined ? text : first), ...options });
  };
  return (
    <>
      <div class="in-line">
        <Fields
          form={{ values, change }}
          fields={[{ name: "kind", label: "Page", choices: KINDS }]}
        />
      </div>
      <Fields
        form={{ values, change }}
        fields={[
          kind === "url" && { name: "url", label: "Address", type: "url", required: true },
          kind === "html" && {
            ...{ name: "html", label: "Markup", rows: 6, isCode: true, required: true },
          },
        ]}
      />
    </>
  );
}

function JsonField({ action, body, onChange }: BodyProps & { action: string }) {
  const [text, setText] = useState(() => JSON.stringify(bodyFor(action, body), null, 2));
  const [fault, setFault] = useState("");
  const change = ({ text: next = "" }: { text?: string }) => {
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
      <Fields
        form={{ values: { text }, change }}
        fields={[{ name: "text", label: "Body", rows: 16, isCode: true }]}
      />
      <p class="fault" aria-live="polite">
        {fault}
      </p>
    </>
  );
}

function Shown({ result, action }: { result: Result; action: string }) {
  const { url, type, extension, bytes, headers, tookMs, text } = result;
  const browserMs = headers.get("x-browser-ms-used");
  return (
    <div role="status" aria-label="Result">
      <Facts
        of={{
          Size: formatBytes(bytes),
          Took: formatDuration(tookMs),
          "Browser time": browserMs !== null && formatDuration(Number(browserMs)),
          "Status of the page": headers.get("x-target-status") ?? undefined,
        }}
      />
      <p>
        <a class="button small" href={url} download={`result.${extension}`}>
          Download
        </a>
      </p>
      {text !== undefined && <SourceText text={text} label="Result as text" />}
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
