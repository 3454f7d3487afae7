/** What happened last in the account, as far as lists of the REST API tell: crawls, deployments, clients and tokens. */
import type { ComponentChildren } from "preact";
import { useAccount } from "../lib/account.tsx";
import { Link } from "../lib/router.tsx";
import { useRest } from "../lib/use-rest.ts";
import type { WireAppEntry, WireCrawlEntry, WireOAuthClient, WireToken } from "../lib/wire.ts";
import { Badge, Time, type Tone } from "../parts/bits.tsx";
import { Card, Empty } from "../parts/page.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { Table } from "../parts/table.tsx";

const SHOWN_MAX = 8;
const REFRESH_MS = 15_000;

interface Happening {
  key: string;
  what: string;
  subject: string;
  /** The page of the subject, below the account. */
  to?: string;
  at: string;
  state?: { tone: Tone; text: string };
}

/** Shows `below` under the lists once all lists have answered, so that no list moves it. */
export function RecentActivity({ children: below }: { children: ComponentChildren }) {
  const { restPath, placeOf } = useAccount();
  const crawls = useRest<WireCrawlEntry[]>(restPath("/browser-rendering/crawl?per_page=8"), {
    everyMs: REFRESH_MS,
  });
  const apps = useRest<WireAppEntry[]>(restPath("/apps"));
  const clients = useRest<WireOAuthClient[]>(restPath("/oauth_clients?limit=8"));
  const tokens = useRest<WireToken[]>(restPath("/tokens?direction=desc&per_page=8"));
  const all = [
    ...(crawls.value ?? []).map(crawlHappening),
    ...(apps.value ?? []).map(appHappening),
    ...(clients.value ?? []).map(clientHappening),
    ...(tokens.value ?? []).map(tokenHappening),
  ];
  const rows = all.toSorted((one, other) => other.at.localeCompare(one.at)).slice(0, SHOWN_MAX);
  const readings = [crawls, apps, clients, tokens];
  const missing = readings.filter(({ error, value }) => error && !value).length;
  const isLoading = readings.every((reading) => reading.isLoading);
  return (
    <>
      <Card title="Recent activity">
        {isLoading && <Skeleton />}
        {missing > 0 && (
          <p class="quiet">
            Not everything is shown: your role or an error hides {missing} of 4 lists.
          </p>
        )}
        {!isLoading && rows.length === 0 && (
          <Empty title="Nothing has happened yet">
            <p>
              Crawls, deployments, OAuth clients and tokens appear here. Begin with a quick start
              below.
            </p>
          </Empty>
        )}
        {rows.length > 0 && (
          <Table
            label="Recent activity"
            rows={rows}
            keyOf={({ key }) => key}
            columns={[
              { name: "What", cell: ({ what }) => what },
              {
                name: "Of",
                cell: ({ subject, to }) => (to ? <Link to={placeOf(to)}>{subject}</Link> : subject),
              },
              {
                name: "State",
                cell: ({ state }) => state && <Badge tone={state.tone}>{state.text}</Badge>,
              },
              { name: "When", cell: ({ at }) => <Time at={at} /> },
            ]}
          />
        )}
      </Card>
      {readings.every(({ hasAnswered }) => hasAnswered) && below}
    </>
  );
}

function crawlHappening({ id, url, status, createdAt, endedAt }: WireCrawlEntry): Happening {
  const tone: Tone = status === "completed" ? "good" : status === "running" ? "busy" : "bad";
  return {
    key: `crawl ${id}`,
    what: endedAt ? "Crawl ended" : "Crawl started",
    subject: url,
    at: endedAt ?? createdAt,
    state: { tone, text: status.replaceAll("_", " ") },
  };
}

function appHappening({
  name,
  modified_on: at,
  serving_version: version,
}: WireAppEntry): Happening {
  const state: Happening["state"] =
    version === null
      ? { tone: "quiet", text: "serves no version" }
      : { tone: "good", text: `serves version ${version}` };
  return { key: `app ${name}`, what: "App changed", subject: name, at, state };
}

function clientHappening({
  client_id: id,
  client_name: subject,
  updated_at: at,
}: WireOAuthClient): Happening {
  return {
    key: `client ${id}`,
    what: "OAuth client changed",
    subject,
    at,
    to: `oauth-clients/${id}`,
  };
}

function tokenHappening({ id, name, issued_on: at, status }: WireToken): Happening {
  const tone: Tone = status === "active" ? "good" : "quiet";
  return {
    key: `token ${id}`,
    what: "API token made",
    to: `account/tokens/${id}`,
    subject: name,
    at,
    state: { tone, text: status },
  };
}
