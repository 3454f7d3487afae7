/** Shows recent events of the account from lists of the REST API: crawls, deployments, clients and tokens. */
import type { ComponentChildren } from "preact";
import { useAccount } from "../lib/account.tsx";
import { useRest } from "../lib/use-rest.ts";
import type { WireAppEntry, WireCrawlEntry, WireOAuthClient, WireToken } from "../lib/wire.ts";
import { Link } from "../parts/link.tsx";
import { Table } from "../parts/list.tsx";
import { Badge, Empty, Skeleton, Time, type Tone } from "../parts/note.tsx";
import { Card } from "../parts/page.tsx";

const SHOWN_MAX = 8;
const REFRESH_MS = 15_000;

interface Happening {
  key: string;
  what: string;
  subject: string;
  /** Path of the page about the event's subject, relative to the account. */
  to: string;
  at: string;
  state?: readonly [Tone, string];
}

/**
 * Shows recent events, and `below` under them. `below` appears only after every list has loaded or failed, so that no
 * list moves it.
 */
export function RecentActivity({ children: below }: { children: ComponentChildren }) {
  const { restPath } = useAccount();
  const crawls = useRest<WireCrawlEntry[]>(
    restPath("/browser-rendering/crawl?per_page=8"),
    REFRESH_MS,
  );
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
  const hasSome = readings.some(({ hasAnswered }) => hasAnswered);
  return (
    <>
      <Card title="Recent activity">
        {!hasSome && <Skeleton />}
        {missing > 0 && (
          <p class="quiet">
            Not everything is shown: your role or an error hides {missing} of 4 lists.
          </p>
        )}
        {hasSome && rows.length === 0 && (
          <Empty title="Nothing has happened yet">
            Crawls, deployments, OAuth clients and tokens appear here. Begin with a quick start
            below.
          </Empty>
        )}
        {rows.length > 0 && (
          <Table
            label="Recent activity"
            rows={rows}
            keyOf={({ key }) => key}
            columns={{
              What: ({ what }) => what,
              Of: ({ subject, to }) => <Link to={to}>{subject}</Link>,
              State: ({ state }) => state && <Badge tone={state[0]}>{state[1]}</Badge>,
              When: ({ at }) => <Time at={at} />,
            }}
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
    to: `crawls/${id}`,
    at: endedAt ?? createdAt,
    state: [tone, status.replaceAll("_", " ")],
  };
}

function appHappening({ name, modified_on: at, serving_version: version }: WireAppEntry) {
  const serves: Happening["state"] =
    version === null ? ["quiet", "serves no version"] : ["good", `serves version ${version}`];
  return {
    key: `app ${name}`,
    what: "App changed",
    subject: name,
    to: `apps/${name}`,
    at,
    state: serves,
  };
}

function clientHappening(client: WireOAuthClient): Happening {
  const { client_id: id, client_name: subject, updated_at: at } = client;
  const what = "OAuth client changed";
  return { key: `client ${id}`, what, subject, to: `oauth-clients/${id}`, at };
}

function tokenHappening({ id, name, issued_on: at, status }: WireToken): Happening {
  return {
    key: `token ${id}`,
    what: "API token made",
    subject: name,
    to: `account/tokens/${id}`,
    at,
    state: [status === "active" ? "good" : "quiet", status],
  };
}
