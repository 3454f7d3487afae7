/** The account's apps, and what their agents keep. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { formatBytes, formatNumber } from "../lib/format.ts";
import { Link } from "../lib/router.tsx";
import { useRest } from "../lib/use-rest.ts";
import type { WireAgentUsage, WireAppEntry } from "../lib/wire.ts";
import { Badge, Meter, Time } from "../parts/bits.tsx";
import { Copyable } from "../parts/copy.tsx";
import { List } from "../parts/list.tsx";
import { Card, Empty, ErrorNote, Page } from "../parts/page.tsx";

const REFRESH_MS = 15_000;

export function AppsPage() {
  const { restPath, placeOf } = useAccount();
  const [page, setPage] = useState(1);
  const path = restPath(`/apps?page=${page}`);
  const apps = useRest<WireAppEntry[]>(path, { everyMs: REFRESH_MS });
  const usage = useRest<WireAgentUsage>(restPath("/agents/usage"), { everyMs: REFRESH_MS });
  const usageOf = (name: string) => usage.value?.apps.find((one) => one.name === name);
  return (
    <Page
      title="Apps and agents"
      lead="Your code, and the agents that it runs: each with a database, timers and WebSockets of its own."
      request={{ path }}
    >
      <Card>
        <List
          reading={apps}
          label="Apps"
          noun="app"
          keyOf={({ name }) => name}
          onPage={setPage}
          empty={<NoApp />}
          columns={[
            {
              name: "Name",
              cell: ({ name }) => <Link to={placeOf(`apps/${name}`)}>{name}</Link>,
            },
            {
              name: "Serves",
              cell: ({ serving_version: version }) => <Serving version={version} />,
            },
            { name: "Agents", cell: ({ name }) => formatNumber(usageOf(name)?.agents ?? 0) },
            { name: "Keeps", cell: ({ name }) => formatBytes(usageOf(name)?.stored_bytes ?? 0) },
            { name: "Changed", cell: ({ modified_on: at }) => <Time at={at} /> },
          ]}
        />
      </Card>
      {apps.hasAnswered && (
        <Card title="Limits of the account">
          {usage.error && <ErrorNote error={usage.error} retry={usage.reload} />}
          <Meter
            label="Agents"
            used={usage.value?.agents}
            limit={usage.value?.agents_limit}
            format={formatNumber}
          />
          <Meter
            label="Storage of agents"
            used={usage.value?.stored_bytes}
            limit={usage.value?.stored_bytes_limit}
            format={formatBytes}
          />
        </Card>
      )}
    </Page>
  );
}

export function Serving({ version }: { version: number | null }) {
  return version === null ? (
    <Badge tone="quiet">nothing yet</Badge>
  ) : (
    <Badge tone="good">version {version}</Badge>
  );
}

function NoApp() {
  return (
    <Empty title="There is no app yet">
      <p>Apps are deployed from a terminal, in the folder that has their trunkline.jsonc:</p>
      <Copyable label="command" value="npx trunkline deploy" />
    </Empty>
  );
}
