/** The list of the account's crawls, newest first, and the form for a new crawl. */
import { useAccount } from "../lib/account.tsx";
import { formatNumber } from "../lib/format.ts";
import { post, resultOf } from "../lib/rest.ts";
import type { WireCrawlEntry } from "../lib/wire.ts";
import { type Field, Fields, Form, linesOf, useForm } from "../parts/form.tsx";
import { ButtonLink, Link } from "../parts/link.tsx";
import { ListCard, stateFilter, useList } from "../parts/list.tsx";
import { Badge, Time, type Tone } from "../parts/note.tsx";
import { Card, Page } from "../parts/page.tsx";

type CrawlStatus = WireCrawlEntry["status"];

const STATES: Readonly<Record<CrawlStatus, readonly [Tone, string]>> = {
  running: ["busy", "running"],
  completed: ["good", "completed"],
  errored: ["bad", "errored"],
  cancelled_by_user: ["quiet", "cancelled"],
  cancelled_due_to_limits: ["bad", "limit reached"],
  cancelled_due_to_timeout: ["bad", "timed out"],
};
const OPTIONS = Object.entries(STATES).map(
  ([status, [, words]]) => [status, words.slice(0, 1).toUpperCase() + words.slice(1)] as const,
);

export function CrawlState({ status }: { status: CrawlStatus }) {
  const [tone, words] = STATES[status];
  return <Badge tone={tone}>{words}</Badge>;
}

export function CrawlsPage() {
  const { restPath, may } = useAccount();
  const crawls = useList<WireCrawlEntry>(restPath("/browser-rendering/crawl"), {
    everyMs: 3_000,
    query: { limit: "20" },
    filters: { status: "" },
  });
  return (
    <Page
      title="Crawls"
      lead="Sites that the platform walks, and keeps as HTML, Markdown or data."
      request={crawls}
      actions={
        may("browser-rendering.write") && (
          <ButtonLink isMain to="crawls/new">
            New crawl
          </ButtonLink>
        )
      }
    >
      <ListCard
        list={crawls}
        label="Crawls"
        noun="crawl"
        filters={[stateFilter(OPTIONS)]}
        empty={["There is no crawl yet", "Start one: a few pages take some seconds."]}
        none={["No crawl has this state", "Choose another state, or all."]}
        columns={{
          Start: ({ id, url }) => <Link to={`crawls/${id}`}>{url}</Link>,
          State: ({ status }) => <CrawlState status={status} />,
          Pages: ({ finished, total }) =>
            finished === undefined || total === undefined
              ? "–"
              : `${formatNumber(finished)} of ${formatNumber(total)}`,
          Started: ({ createdAt: at }) => <Time at={at} />,
        }}
      />
    </Page>
  );
}

const FIRST = {
  url: "",
  limit: "10",
  depth: "",
  formats: ["markdown", "html"],
  render: false,
  source: "all",
  subdomains: false,
  external: false,
  include: "",
  exclude: "",
};
type Asked = typeof FIRST;

const START: readonly Field<Asked>[] = [
  {
    ...{ name: "url", label: "Address", type: "url", required: true, autoFocus: true },
    placeholder: "https://example.com/",
  },
];
const EXTENT: readonly Field<Asked>[] = [
  { name: "limit", label: "Pages at most" },
  { name: "depth", label: "Links from the start at most", hint: "Empty: as many as it takes" },
];
const MANNER: readonly Field<Asked>[] = [
  {
    ...{ name: "formats", label: "Keep each page as" },
    choices: [
      ["markdown", "Markdown", "The text of a page, for reading and for models"],
      ["html", "HTML", "The page as the browser has it in the end"],
    ],
  },
  {
    ...{ name: "render", label: "Load pages in a browser" },
    hint: "For pages that scripts make. It takes longer, and uses browser time.",
  },
];
const FOLLOWED: readonly Field<Asked>[] = [
  {
    ...{ name: "source", label: "Addresses come from" },
    choices: [
      ["all", "Links and sitemaps"],
      ["links", "Links only"],
      ["sitemaps", "Sitemaps only"],
    ],
  },
  { name: "subdomains", label: "Follow subdomains" },
  { name: "external", label: "Follow other sites" },
  {
    ...{ name: "include", label: "Only addresses like", pointer: "/options/includePatterns" },
    hint: "One pattern on a line, such as https://example.com/docs/**",
    ...{ rows: 2, isCode: true },
  },
  {
    ...{ name: "exclude", label: "No addresses like", pointer: "/options/excludePatterns" },
    ...{ rows: 2, isCode: true },
  },
];

export function NewCrawlPage() {
  const { restPath, go } = useAccount();
  const form = useForm(FIRST);
  const request = post(restPath("/browser-rendering/crawl"), requestOf(form.values));
  const start = async () => go(`crawls/${await resultOf<string>(request)}`);
  return (
    <Page
      title="New crawl"
      above={["Crawls", "crawls"]}
      lead="Begins at one address and follows what it finds, as the site's robots.txt allows."
      request={request}
    >
      <Card>
        <Form submit="Start the crawl" onSubmit={start} form={form} fields={START}>
          <div class="in-line">
            <Fields form={form} fields={EXTENT} />
          </div>
          <Fields form={form} fields={MANNER} />
          <details>
            <summary>Which addresses are followed</summary>
            <Fields form={form} fields={FOLLOWED} />
          </details>
        </Form>
      </Card>
    </Page>
  );
}

/** Sends an invalid number as typed, so that the platform names the valid range. */
const numberOf = (text: string) => (Number.isNaN(Number(text)) ? text : Number(text));

function requestOf({ url, limit, depth, formats, render, source, ...asked }: Asked) {
  const [include, exclude] = [linesOf(asked.include), linesOf(asked.exclude)];
  const options = {
    ...(include.length > 0 && { includePatterns: include }),
    ...(exclude.length > 0 && { excludePatterns: exclude }),
    ...(asked.subdomains && { includeSubdomains: true }),
    ...(asked.external && { includeExternalLinks: true }),
  };
  return {
    url,
    ...(limit && { limit: numberOf(limit) }),
    ...(depth && { depth: numberOf(depth) }),
    ...{ formats, render, source },
    ...(Object.keys(options).length > 0 && { options }),
  };
}
