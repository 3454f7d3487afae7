/** Webhooks that one agent sent, and a test for a receiver. */
import { useState } from "preact/hooks";
import { agentPath, webhooksPlace } from "../apps/agent-place.ts";
import { useAccount } from "../lib/account.tsx";
import type { PageParameters } from "../lib/pages.ts";
import { ask } from "../lib/rest.ts";
import { Link } from "../lib/router.tsx";
import { useRest } from "../lib/use-rest.ts";
import type { WireWebhook } from "../lib/wire.ts";
import { Badge, Time } from "../parts/bits.tsx";
import { Form, SelectField, TextField } from "../parts/form.tsx";
import { List } from "../parts/list.tsx";
import { Card, Empty, Page } from "../parts/page.tsx";
import { agentOf, WebhookTabs } from "./agent-of.tsx";
import { StatusBadge, statusOptions } from "./status.tsx";

const REFRESH_MS = 3_000;

export function SentPage(props: PageParameters) {
  const agent = agentOf(props);
  const { restPath, placeOf, may } = useAccount();
  const [status, setStatus] = useState("");
  const [cursor, setCursor] = useState("");
  const query = new URLSearchParams({ ...(status && { status }), ...(cursor && { cursor }) });
  const base = restPath(`${agentPath(agent)}/webhooks`);
  const path = `${base}?${query}`;
  const reading = useRest<WireWebhook[]>(path, { everyMs: REFRESH_MS });
  return (
    <Page
      title={agent.name}
      above={{ label: "Webhooks", to: `${placeOf("webhooks")}?app=${agent.app}` }}
      request={{ path }}
    >
      <WebhookTabs agent={agent} current="/sent" />
      <Card>
        <div class="filters">
          <SelectField
            label="State"
            value={status}
            onChange={(value) => {
              setStatus(value);
              setCursor("");
            }}
            options={statusOptions(["waiting", "arrived", "failed"])}
          />
        </div>
        <List
          reading={reading}
          label="Sent webhooks"
          noun="webhook"
          keyOf={({ id }) => id}
          onCursor={setCursor}
          empty={
            <Empty title={status ? "No webhook is in this state" : "The agent has sent none yet"}>
              <p>
                {status
                  ? "Choose another state, or all."
                  : "Its code sends them, and you can test."}
              </p>
            </Empty>
          }
          columns={[
            {
              name: "To",
              cell: ({ id, url, is_test: isTest }) => (
                <div>
                  <Link to={`${placeOf(webhooksPlace(agent))}/sent/${id}`}>{url}</Link>{" "}
                  {isTest && <Badge tone="quiet">test</Badge>}
                </div>
              ),
            },
            { name: "State", cell: ({ status: state }) => <StatusBadge status={state} /> },
            { name: "Tries", cell: ({ attempts }) => attempts },
            {
              name: "Last answer",
              cell: ({ last_try: last }) => last?.status ?? last?.error ?? "–",
            },
            { name: "Sent", cell: ({ created_on: at }) => <Time at={at} /> },
          ]}
        />
      </Card>
      {may("apps.write") && <Test base={base} reload={reading.reload} />}
    </Page>
  );
}

function Test({ base, reload }: { base: string; reload: () => void }) {
  const [url, setUrl] = useState("");
  const [secret, setSecret] = useState("");
  const [said, setSaid] = useState("");
  const send = async () => {
    const json = { url, ...(secret && { secret }) };
    const asked = { method: "POST" as const, path: `${base}/test`, json };
    const { id } = (await ask<WireWebhook>(asked)).result;
    setSaid(`Test #${id} is on its way.`);
    reload();
  };
  return (
    <Card title="Test a receiver">
      <Form submit="Send a test" onSubmit={send}>
        <TextField
          label="Address"
          type="url"
          pointer="/url"
          value={url}
          onChange={setUrl}
          required
        />
        <TextField
          label="Secret"
          hint="The name of a secret of the app, which signs it; empty: it is not signed"
          pointer="/secret"
          value={secret}
          onChange={setSecret}
          isCode
        />
        <p role="status">{said}</p>
      </Form>
    </Card>
  );
}
