/** The page of one agent: its live state, its tables, its methods, its timers and its queue. */

import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { counted, formatBytes, formatNumber } from "../lib/format.ts";
import { post, refuse, resultOf } from "../lib/rest.ts";
import type { WireAgent, WireAgentWork, WireQueryRows } from "../lib/wire.ts";
import { CopyAsCurl, CopyButton } from "../parts/button.tsx";
import { Form, useForm } from "../parts/form.tsx";
import { ButtonLink } from "../parts/link.tsx";
import { TableCard } from "../parts/list.tsx";
import { Badge, Facts, JsonBlock, parseJson, Scroll, Time } from "../parts/note.tsx";
import { Card, RestPage } from "../parts/page.tsx";
import {
  type AgentPlace,
  agentPath,
  appPath,
  useAgentPlace,
  webhooksPlace,
} from "./agent-place.ts";

/** Interval between two reads. It is long, because each read loads the agent into memory if it is not there. */
const REFRESH_MS = 5_000;

export function AgentPage() {
  const { restPath, may } = useAccount();
  const place = useAgentPlace();
  const { app, className, name } = place;
  return (
    <RestPage<WireAgent>
      path={restPath(agentPath(place))}
      everyMs={REFRESH_MS}
      title={name}
      above={[`Agents of ${app}`, `${appPath(app).slice(1)}/agents`]}
      lead={
        <>
          An agent of the class <code>{className}</code>
        </>
      }
      actions={() => <ButtonLink to={webhooksPlace(place)}>Deliveries</ButtonLink>}
    >
      {(agent, _reload, error) => (
        <>
          <div class="columns">
            <Card title="Now">
              <Facts
                of={{
                  "Runs in": `version ${agent.version}`,
                  Database: formatBytes(agent.database_bytes),
                  "Open WebSockets": formatNumber(agent.connections),
                  Wakes: <Time at={agent.next_wake_on} />,
                }}
              />
            </Card>
            <StateCard agent={agent} isLive={error === undefined} />
          </div>
          <QueryCard place={place} tables={agent.tables} />
          {may("apps.write") && <CallCard place={place} />}
          <Work title="Timers" noun="timer" work={agent.timers} />
          <Work title="Queue" noun="queued call" work={agent.queue} />
        </>
      )}
    </RestPage>
  );
}

interface StateProps {
  agent: WireAgent;
  isLive: boolean;
}

function StateCard({ agent: { state, state_chars: chars }, isLive }: StateProps) {
  return (
    <Card title="State" actions={isLive && <Badge tone="good">live</Badge>}>
      {chars === 0 ? (
        <p class="quiet">No state was set yet.</p>
      ) : state === null ? (
        <p class="quiet">
          The state is too long to show here: {counted(chars, "character")} of JSON.
        </p>
      ) : (
        <JsonBlock label="State of the agent" value={state} />
      )}
    </Card>
  );
}

interface WorkProps {
  title: string;
  noun: string;
  work: readonly WireAgentWork[];
}

function Work({ title, noun, work }: WorkProps) {
  return (
    <TableCard
      title={title}
      rows={work}
      empty={<p class="quiet">There is no {noun}.</p>}
      columns={{
        Method: ({ method }) => <code>{method}</code>,
        Type: ({ type }) => type,
        Due: ({ due_on: at }) =>
          at === null ? <Badge tone="bad">failed</Badge> : <Time at={at} />,
        Tries: ({ attempts }) => formatNumber(attempts),
        "Last error": ({ error }) => error ?? "–",
      }}
    />
  );
}

function CallCard({ place }: { place: AgentPlace }) {
  const { restPath } = useAccount();
  const form = useForm({ method: "", arguments: "[]" });
  const [answer, setAnswer] = useState<{ result: unknown }>();
  const given = parseJson(form.values.arguments);
  const request = post(restPath(`${agentPath(place)}/call`), {
    method: form.values.method,
    arguments: given ?? [],
  });
  const call = async () => {
    setAnswer(undefined);
    if (!Array.isArray(given)) {
      throw refuse('Expected a list in JSON, such as [1, "two"]', "/arguments");
    }
    setAnswer(await resultOf<{ result: unknown }>(request));
  };
  return (
    <Card title="Call a method" actions={<CopyAsCurl request={request} />}>
      <Form
        submit="Call"
        onSubmit={call}
        form={form}
        fields={[
          {
            ...{ name: "method", label: "Method", hint: "A public method of the class" },
            ...{ isCode: true, required: true },
          },
          { name: "arguments", label: "Arguments", hint: "A list in JSON", rows: 2, isCode: true },
        ]}
      />
      {answer && (
        <div class="rows">
          <JsonBlock label="Result" value={answer.result} />
        </div>
      )}
    </Card>
  );
}

function QueryCard({ place, tables }: { place: AgentPlace; tables: WireAgent["tables"] }) {
  const { restPath, may } = useAccount();
  const form = useForm({ sql: "SELECT name FROM sqlite_schema" });
  const [found, setFound] = useState<WireQueryRows>();
  const request = post(restPath(`${agentPath(place)}/query`), form.values);
  const run = async () => setFound(await resultOf<WireQueryRows>(request));
  if (!may("apps.write")) {
    return (
      <Card title="Tables">
        <p class="quiet">
          {tables.map(({ name }) => name).join(", ") || "It has no table."} To read rows, your role
          needs apps.write: a query holds the agent up.
        </p>
      </Card>
    );
  }
  return (
    <Card title="Tables" actions={<CopyAsCurl request={request} />}>
      {tables.length === 0 ? (
        <p class="quiet">The agent has made no table yet.</p>
      ) : (
        <fieldset class="actions">
          <legend class="hidden">Tables</legend>
          {tables.map(({ name, columns }) => (
            <button
              key={name}
              type="button"
              class="small second"
              title={columns.join(", ")}
              onClick={() => form.change({ sql: `SELECT * FROM ${quotedName(name)} LIMIT 100` })}
            >
              {name}
            </button>
          ))}
        </fieldset>
      )}
      <Form
        submit="Run"
        onSubmit={run}
        form={form}
        fields={[
          {
            ...{ name: "sql", label: "SQL", rows: 3, isCode: true, required: true },
            hint: "One statement that reads. The agent waits until it has ended",
          },
        ]}
      />
      {found && <Rows found={found} />}
    </Card>
  );
}

const quotedName = (name: string) => `"${name.replaceAll('"', '""')}"`;

function Rows({ found: { columns, rows, is_cut: isCut } }: { found: WireQueryRows }) {
  return (
    <div class="rows">
      <Scroll label="Rows">
        <table class="grid" aria-label="Rows">
          <thead>
            <tr>
              {columns.map((name, index) => (
                <th key={index} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, index) => (
              <tr key={index}>
                {row.map((cell, column) => (
                  <td key={column}>
                    <Cell value={cell} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      <div class="below-list">
        <span class="quiet" role="status">
          {counted(rows.length, "row")}
          {isCut && ", cut: there are more rows, or a value is longer"}
        </span>
        <CopyButton text={csvOf(columns, rows)} label="Copy as CSV" />
      </div>
    </div>
  );
}

type Row = WireQueryRows["rows"][number];

/** Rows as spreadsheets read them (RFC 4180). */
const csvOf = (columns: readonly string[], rows: readonly Row[]) =>
  [columns, ...rows].map((row) => row.map(csvCell).join(",")).join("\r\n");

function csvCell(value: Row[number]): string {
  const text = String((typeof value === "object" ? value?.base64 : value) ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function Cell({ value }: { value: Row[number] }) {
  if (value === null) return <span class="quiet">NULL</span>;
  if (typeof value === "object") return <span class="quiet">bytes {value.base64}</span>;
  return <>{String(value)}</>;
}
