/** Starts a crawl. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { ask } from "../lib/rest.ts";
import { navigate } from "../lib/router.tsx";
import { Check, CheckGroup, Form, RadioGroup, TextField } from "../parts/form.tsx";
import { Card, Page } from "../parts/page.tsx";

const FORMATS = [
  { value: "markdown", label: "Markdown", hint: "The text of a page, for reading and for models" },
  { value: "html", label: "HTML", hint: "The page as the browser has it in the end" },
];
const SOURCES = [
  { value: "all", label: "Links and sitemaps" },
  { value: "links", label: "Links only" },
  { value: "sitemaps", label: "Sitemaps only" },
];

const FIRST = {
  url: "",
  limit: "10",
  depth: "",
  formats: ["markdown", "html"],
  render: false,
  source: "all",
  include: "",
  exclude: "",
  subdomains: false,
  external: false,
};
type Asked = typeof FIRST;

export function NewCrawlPage() {
  const { restPath, placeOf } = useAccount();
  const [asked, setAsked] = useState(FIRST);
  const change = (more: Partial<Asked>) => setAsked((before) => ({ ...before, ...more }));
  const request = {
    method: "POST" as const,
    path: restPath("/browser-rendering/crawl"),
    json: requestOf(asked),
  };
  const start = async () => {
    const { result } = await ask<string>(request);
    navigate(placeOf(`crawls/${result}`));
  };
  return (
    <Page
      title="New crawl"
      above={{ label: "Crawls", to: placeOf("crawls") }}
      lead="Begins at one address and follows what it finds, as the site's robots.txt allows."
      request={request}
    >
      <Card>
        <Form submit="Start the crawl" onSubmit={start}>
          <Extent asked={asked} change={change} />
          <CheckGroup
            label="Keep each page as"
            pointer="/formats"
            choices={FORMATS}
            chosen={asked.formats}
            onChange={(formats) => change({ formats })}
          />
          <Check
            label="Load pages in a browser"
            hint="For pages that scripts make. It takes longer, and uses browser time."
            isOn={asked.render}
            onChange={(render) => change({ render })}
          />
          <details class="more">
            <summary>Which addresses are followed</summary>
            <Followed asked={asked} change={change} />
          </details>
        </Form>
      </Card>
    </Page>
  );
}

interface PartProps {
  asked: Asked;
  change: (more: Partial<Asked>) => void;
}

function Extent({ asked, change }: PartProps) {
  return (
    <>
      <TextField
        label="Address"
        pointer="/url"
        type="url"
        placeholder="https://example.com/"
        value={asked.url}
        onChange={(url) => change({ url })}
        required
        autoFocus
      />
      <div class="pair">
        <TextField
          label="Pages at most"
          pointer="/limit"
          value={asked.limit}
          onChange={(limit) => change({ limit })}
        />
        <TextField
          label="Links from the start at most"
          hint="Empty: as many as it takes"
          pointer="/depth"
          value={asked.depth}
          onChange={(depth) => change({ depth })}
        />
      </div>
    </>
  );
}

function Followed({ asked, change }: PartProps) {
  return (
    <>
      <RadioGroup
        label="Addresses come from"
        pointer="/source"
        choices={SOURCES}
        value={asked.source}
        onChange={(source) => change({ source })}
      />
      <Check
        label="Follow subdomains"
        isOn={asked.subdomains}
        onChange={(subdomains) => change({ subdomains })}
      />
      <Check
        label="Follow other sites"
        isOn={asked.external}
        onChange={(external) => change({ external })}
      />
      <TextField
        label="Only addresses like"
        hint="One pattern on a line, such as https://example.com/docs/**"
        pointer="/options/includePatterns"
        value={asked.include}
        onChange={(include) => change({ include })}
        rows={2}
        isCode
      />
      <TextField
        label="No addresses like"
        pointer="/options/excludePatterns"
        value={asked.exclude}
        onChange={(exclude) => change({ exclude })}
        rows={2}
        isCode
      />
    </>
  );
}

/** A number that is none is sent as it was typed: the platform says what is valid. */
const numberOf = (text: string) => (Number.isNaN(Number(text)) ? text : Number(text));

function requestOf(asked: Asked) {
  const { url, limit, depth, formats, render, source, include, exclude } = asked;
  const lines = (text: string) =>
    text
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean);
  const options = {
    ...(lines(include).length > 0 && { includePatterns: lines(include) }),
    ...(lines(exclude).length > 0 && { excludePatterns: lines(exclude) }),
    ...(asked.subdomains && { includeSubdomains: true }),
    ...(asked.external && { includeExternalLinks: true }),
  };
  return {
    url,
    ...(limit && { limit: numberOf(limit) }),
    ...(depth && { depth: numberOf(depth) }),
    formats,
    render,
    source,
    ...(Object.keys(options).length > 0 && { options }),
  };
}
