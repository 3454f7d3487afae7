/** The webhooks that one agent sent, with all attempts of each, and a form that sends a test to a receiver. */
import { agentPath, useAgentPlace, webhooksPlace } from "../apps/agent-place.ts";
import { useAccount } from "../lib/account.tsx";
import { formatBytes, formatDuration } from "../lib/format.ts";
import { post, resultOf } from "../lib/rest.ts";
import { useParameters } from "../lib/router.ts";
import type { WireTry, WireWebhook, WireWebhookContent } from "../lib/wire.ts";
import { ActButton } from "../parts/button.tsx";
import { FormCard, useForm } from "../parts/form.tsx";
import { Link } from "../parts/link.tsx";
import { ListCard, statesFilter, useList } from "../parts/list.tsx";
import { Badge, Facts, State, Time } from "../parts/note.tsx";
import { Card, Page, RestPage } from "../parts/page.tsx";
import { BodyCard, type Step, Timeline, TONES, webhooksFrame } from "./status.tsx";

export function SentPage() {
  const agent = useAgentPlace();
  const { restPath, may } = useAccount();
  const base = restPath(`${agentPath(agent)}/webhooks`);
  const list = useList<WireWebhook>(base, { everyMs: 3_000, filters: { status: "" } });
  return (
    <Page {...webhooksFrame(agent, "/sent")} request={list}>
      <ListCard
        list={list}
        label="Sent webhooks"
        noun="webhook"
        filters={[statesFilter(["waiting", "arrived", "failed"])]}
        empty={["The agent has sent none yet", "Its code sends them, and you can test."]}
        none={["No webhook is in this state", "Choose another state, or all."]}
        columns={{
          To: ({ id, url, is_test: isTest }) => (
            <div>
              <Link to={`${webhooksPlace(agent)}/sent/${id}`}>{url}</Link>{" "}
              {isTest && <Badge tone="quiet">test</Badge>}
            </div>
          ),
          State: ({ status }) => <State of={status} tones={TONES} />,
          Tries: ({ attempts }) => attempts,
          "Last answer": ({ last_try: last }) => last?.status ?? last?.error ?? "–",
          Sent: ({ created_on: at }) => <Time at={at} />,
        }}
      />
      {may("apps.write") && <Test path={`${base}/test`} reload={list.reading.reload} />}
    </Page>
  );
}

function Test({ path, reload }: { path: string; reload: () => void }) {
  const form = useForm({ url: "", secret: "" });
  const send = async () => {
    const { url, secret } = form.values;
    const request = post(path, { url, ...(secret && { secret }) });
    const { id } = await resultOf<WireWebhook>(request);
    reload();
    return `Test #${id} is on its way.`;
  };
  return (
    <FormCard
      title="Test a receiver"
      submit="Send a test"
      onSubmit={send}
      form={form}
      fields={[
        { name: "url", label: "Address", type: "url", required: true },
        {
          ...{ name: "secret", label: "Secret", isCode: true },
          hint: "The name of a secret of the app, which signs it; empty: it is not signed",
        },
      ]}
    />
  );
}

export function SentWebhookPage() {
  const agent = useAgentPlace();
  const { id = "" } = useParameters();
  const { restPath, may } = useAccount();
  const path = restPath(`${agentPath(agent)}/webhooks/${encodeURIComponent(id)}`);
  return (
    <RestPage<WireWebhookContent>
      path={path}
      everyMs={3_000}
      title={`Webhook #${id}`}
      above={[`Sent by ${agent.name}`, `${webhooksPlace(agent)}/sent`]}
      actions={({ status }, reload) =>
        may("apps.write") && (
          <ActButton
            request={post(`${path}/resend`)}
            said="Sent again"
            label="Send again"
            isDisabled={status === "waiting"}
            done={reload}
          />
        )
      }
    >
      {(webhook) => (
        <>
          <div class="columns">
            <Card title="Webhook">
              <Facts
                of={{
                  State: <State of={webhook.status} tones={TONES} />,
                  To: <code>{webhook.url}</code>,
                  "Header webhook-id": <code>{webhook.webhook_id}</code>,
                  Size: formatBytes(webhook.payload_bytes),
                  "Sent again": `${webhook.resends} times`,
                  Made: <Time at={webhook.created_on} />,
                }}
              />
            </Card>
            <Card title="Tries">
              <Timeline steps={stepsOf(webhook)} />
            </Card>
          </div>
          <BodyCard title="Payload" of={webhook} />
        </>
      )}
    </RestPage>
  );
}

function stepsOf({ created_on: at, tries, next_attempt_on: nextOn }: WireWebhookContent) {
  const ordered = tries.toSorted((one, other) => one.at.localeCompare(other.at));
  const steps: (Step | false)[] = [
    { at, tone: "quiet", what: "Made by the agent" },
    ...ordered.map(stepOf),
    nextOn !== null && { at: nextOn, tone: "busy", what: "Next try" },
  ];
  return steps;
}

const stepOf = ({ at, status, error, duration_ms: ms, answer }: WireTry): Step => ({
  at,
  tone: status !== null && status >= 200 && status < 300 ? "good" : "bad",
  what: status === null ? "No answer" : `Answered ${status}`,
  detail: [error, formatDuration(ms), answer].filter(Boolean).join("\n"),
});
