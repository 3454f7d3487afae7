/** One agent: its state as it changes, its timers and queue, and its tables. */
import { useAccount } from "../lib/account.tsx";
import { counted, formatBytes, formatNumber } from "../lib/format.ts";
import type { PageParameters } from "../lib/pages.ts";
import { Link } from "../lib/router.tsx";
import { useRest } from "../lib/use-rest.ts";
import type { WireAgent, WireAgentWork } from "../lib/wire.ts";
import { Badge, Facts, Time } from "../parts/bits.tsx";
import { Card, Page, Read } from "../parts/page.tsx";
import { Table } from "../parts/table.tsx";
import { type AgentPlace, agentPath, webhooksPlace } from "./agent-place.ts";
import { CallCard } from "./call-card.tsx";
import { CodeBlock } from "./code-block.tsx";
import { QueryCard } from "./query-card.tsx";

/** Each look opens the agent where it is not in memory. */
const REFRESH_MS = 5_000;

export function AgentPage({ parameters }: PageParameters) {
  const { restPath, placeOf } = useAccount();
  const { app = "", className = "", agent: name = "" } = parameters;
  const place = { app, className, name };
  const path = restPath(agentPath(place));
  const agent = useRest<WireAgent>(path, { everyMs: REFRESH_MS });
  return (
    <Page
      title={name}
      above={{ label: `Agents of ${app}`, to: placeOf(`apps/${app}/agents`) }}
      lead={
        <>
          An agent of the class <code>{className}</code>
        </>
      }
      request={{ path }}
      actions={
        <Link class="button small second" to={placeOf(webhooksPlace(place))}>
          Deliveries
        </Link>
      }
    >
      <Read reading={agent}>{(value) => <Agent agent={value} place={place} />}</Read>
    </Page>
  );
}

function Agent({ agent, place }: { agent: WireAgent; place: AgentPlace }) {
  const { may } = useAccount();
  return (
    <>
      <div class="columns">
        <Card title="Now">
          <Facts
            rows={[
              ["Runs in", `version ${agent.version}`],
              ["Database", formatBytes(agent.database_bytes)],
              ["Open WebSockets", formatNumber(agent.connections)],
              ["Wakes", <Time key="wakes" at={agent.next_wake_on ?? undefined} />],
            ]}
          />
        </Card>
        <State agent={agent} />
      </div>
      <QueryCard place={place} tables={agent.tables} />
      {may("apps.write") && <CallCard place={place} />}
      <Work title="Timers" noun="timer" work={agent.timers} />
      <Work title="Queue" noun="queued call" work={agent.queue} />
    </>
  );
}

function State({ agent: { state, state_chars: chars } }: { agent: WireAgent }) {
  return (
    <Card title="State" actions={<Badge tone="good">live</Badge>}>
      {chars === 0 ? (
        <p class="quiet">No state was set yet.</p>
      ) : state === null ? (
        <p class="quiet">
          The state is too long to show here: {counted(chars, "character")} of JSON.
        </p>
      ) : (
        <CodeBlock label="State of the agent" text={JSON.stringify(state, null, 2)} />
      )}
    </Card>
  );
}

function Work({
  title,
  noun,
  work,
}: {
  title: string;
  noun: string;
  work: readonly WireAgentWork[];
}) {
  return (
    <Card title={title}>
      {work.length === 0 ? (
        <p class="quiet">There is no {noun}.</p>
      ) : (
        <Table
          label={title}
          keyOf={({ id }) => id}
          rows={work}
          columns={[
            { name: "Method", cell: ({ method }) => <code>{method}</code> },
            { name: "Type", cell: ({ type }) => type },
            {
              name: "Due",
              cell: ({ due_on: at }) =>
                at === null ? <Badge tone="bad">failed</Badge> : <Time at={at} />,
            },
            { name: "Tries", cell: ({ attempts }) => formatNumber(attempts) },
            { name: "Last error", cell: ({ error }) => error ?? "–" },
          ]}
        />
      )}
    </Card>
  );
}
