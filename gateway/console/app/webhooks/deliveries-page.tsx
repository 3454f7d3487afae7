/** Events that came to one agent, filtered, and replayed one by one or many at once. */
import { useState } from "preact/hooks";
import { agentPath, agentPlace, webhooksPlace } from "../apps/agent-place.ts";
import { useAccount } from "../lib/account.tsx";
import { counted, formatBytes } from "../lib/format.ts";
import type { PageParameters } from "../lib/pages.ts";
import { ask } from "../lib/rest.ts";
import { Link } from "../lib/router.tsx";
import { useRest } from "../lib/use-rest.ts";
import type { WireDelivery } from "../lib/wire.ts";
import { ActButton } from "../parts/act-button.tsx";
import { Time } from "../parts/bits.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Form, SelectField, TextField } from "../parts/form.tsx";
import { List } from "../parts/list.tsx";
import { Card, Empty, Page } from "../parts/page.tsx";
import { agentOf, WebhookTabs } from "./agent-of.tsx";
import { StatusBadge, statusOptions } from "./status.tsx";

const REFRESH_MS = 3_000;

export function DeliveriesPage(props: PageParameters) {
  const agent = agentOf(props);
  const { restPath, placeOf, may } = useAccount();
  const [status, setStatus] = useState("");
  const [cursor, setCursor] = useState("");
  const query = new URLSearchParams({ ...(status && { status }), ...(cursor && { cursor }) });
  const base = restPath(`${agentPath(agent)}/deliveries`);
  const path = `${base}?${query}`;
  const reading = useRest<WireDelivery[]>(path, { everyMs: REFRESH_MS });
  const canWrite = may("apps.write");
  const filter = (value: string) => {
    setStatus(value);
    setCursor("");
  };
  return (
    <Page
      title={agent.name}
      above={{ label: "Webhooks", to: `${placeOf("webhooks")}?app=${agent.app}` }}
      lead={
        <>
          To the class <code>{agent.className}</code> of {agent.app}.{" "}
          <Link to={placeOf(agentPlace(agent))}>Show the agent's state</Link>
        </>
      }
      request={{ path }}
      actions={canWrite && <ReplayMany base={base} reload={reading.reload} />}
    >
      <WebhookTabs agent={agent} current="" />
      <Card>
        <div class="filters">
          <SelectField
            label="State"
            value={status}
            onChange={filter}
            options={statusOptions(["waiting", "delivered", "failed"])}
          />
          {cursor && (
            <button type="button" class="small second" onClick={() => setCursor("")}>
              Back to the newest
            </button>
          )}
        </div>
        <List
          reading={reading}
          label="Deliveries"
          noun="event"
          keyOf={({ id }) => id}
          onCursor={setCursor}
          empty={<NoDelivery isFiltered={status !== ""} />}
          columns={[
            {
              name: "Event",
              cell: ({ id, event_type: type }) => (
                <Link to={`${placeOf(webhooksPlace(agent))}/${id}`}>
                  {type ?? "event"} #{id}
                </Link>
              ),
            },
            { name: "State", cell: ({ status: state }) => <StatusBadge status={state} /> },
            { name: "From", cell: ({ source }) => source },
            { name: "Tries", cell: (one) => triesOf(one) },
            { name: "Size", cell: ({ body_bytes: bytes }) => formatBytes(bytes) },
            { name: "Came", cell: ({ received_on: at }) => <Time at={at} /> },
          ]}
          actions={({ id, status: state }) =>
            canWrite && (
              <ActButton
                request={{ method: "POST", path: `${base}/${id}/replay` }}
                said="Replayed"
                label={`Replay #${id}`}
                isDisabled={state === "waiting"}
                done={reading.reload}
              />
            )
          }
        />
      </Card>
    </Page>
  );
}

const triesOf = ({ attempts, replays, answer_status: answer }: WireDelivery) =>
  [
    answer === null ? String(attempts) : `${attempts}, answered ${answer}`,
    replays > 0 && counted(replays, "replay"),
  ]
    .filter(Boolean)
    .join(", ");

function NoDelivery({ isFiltered }: { isFiltered: boolean }) {
  return isFiltered ? (
    <Empty title="No delivery is in this state">
      <p>Choose another state, or all.</p>
    </Empty>
  ) : (
    <Empty title="No event came to this agent">
      <p>Events of the endpoints that the app declares are listed here when they come.</p>
    </Empty>
  );
}

function ReplayMany({ base, reload }: { base: string; reload: () => void }) {
  const [isOpen, setOpen] = useState(false);
  const [status, setStatus] = useState("failed");
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const [said, setSaid] = useState("");
  const replay = async () => {
    const json = { ...(status && { status }), ...(from && { from }), ...(to && { to }) };
    const asked = { method: "POST" as const, path: `${base}/replay`, json };
    const { replayed } = (await ask<{ replayed: number }>(asked)).result;
    setSaid(`${counted(replayed, "event")} replayed`);
    setOpen(false);
    reload();
  };
  return (
    <>
      <button type="button" class="small" onClick={() => setOpen(true)}>
        Replay many
      </button>
      <span class={said ? "" : "hidden"} role="status">
        {said}
      </span>
      {isOpen && (
        <Dialog title="Replay many events" onClose={() => setOpen(false)}>
          <p class="quiet">
            They are delivered again in the order in which they came, before newer ones.
          </p>
          <Form submit="Replay" onSubmit={replay} onCancel={() => setOpen(false)}>
            <SelectField
              label="Which"
              pointer="/status"
              value={status}
              onChange={setStatus}
              options={[
                { value: "failed", label: "Those that failed" },
                { value: "delivered", label: "Those that were delivered" },
                { value: "", label: "Both" },
              ]}
            />
            <TextField
              label="From number"
              hint="The first one; empty is the oldest that is kept"
              pointer="/from"
              value={from}
              onChange={setFrom}
            />
            <TextField
              label="To number"
              hint="The last one; empty is the newest"
              pointer="/to"
              value={to}
              onChange={setTo}
            />
          </Form>
        </Dialog>
      )}
    </>
  );
}
