/** Reads an agent's tables: one by its name, or by SQL. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { counted } from "../lib/format.ts";
import { ask } from "../lib/rest.ts";
import type { WireAgent, WireQueryRows } from "../lib/wire.ts";
import { CopyAsCurl } from "../parts/copy.tsx";
import { Form, TextField } from "../parts/form.tsx";
import { Card } from "../parts/page.tsx";
import { type AgentPlace, agentPath } from "./agent-place.ts";
import { ScrollBox } from "./code-block.tsx";

interface QueryProps {
  place: AgentPlace;
  tables: WireAgent["tables"];
}

export function QueryCard({ place, tables }: QueryProps) {
  const { restPath, may } = useAccount();
  const [sql, setSql] = useState("SELECT name FROM sqlite_schema");
  const [found, setFound] = useState<WireQueryRows>();
  const requestOf = (text: string) => ({
    method: "POST" as const,
    path: restPath(`${agentPath(place)}/query`),
    json: { sql: text },
  });
  const run = async (text: string) => setFound((await ask<WireQueryRows>(requestOf(text))).result);
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
    <Card title="Tables" actions={<CopyAsCurl request={requestOf(sql)} />}>
      {tables.length === 0 ? (
        <p class="quiet">The agent has made no table yet.</p>
      ) : (
        <fieldset class="table-names">
          <legend class="hidden">Tables</legend>
          {tables.map(({ name, columns }) => (
            <button
              key={name}
              type="button"
              class="small second"
              title={columns.join(", ")}
              onClick={() => setSql(`SELECT * FROM ${quotedName(name)} LIMIT 100`)}
            >
              {name}
            </button>
          ))}
        </fieldset>
      )}
      <Form submit="Run" onSubmit={() => run(sql)}>
        <TextField
          label="SQL"
          hint="One statement that reads. The agent waits until it has ended"
          pointer="/sql"
          rows={3}
          value={sql}
          onChange={setSql}
          isCode
          required
        />
      </Form>
      {found && <Rows found={found} />}
    </Card>
  );
}

const quotedName = (name: string) => `"${name.replaceAll('"', '""')}"`;

function Rows({ found: { columns, rows, is_cut: isCut } }: { found: WireQueryRows }) {
  return (
    <div class="rows">
      <ScrollBox label="Rows">
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
      </ScrollBox>
      <p class="quiet" role="status">
        {counted(rows.length, "row")}
        {isCut && ", cut: there are more rows, or a value is longer"}
      </p>
    </div>
  );
}

function Cell({ value }: { value: WireQueryRows["rows"][number][number] }) {
  if (value === null) return <span class="quiet">NULL</span>;
  if (typeof value === "object") return <span class="quiet">bytes {value.base64}</span>;
  return <>{String(value)}</>;
}
