/** One webhook that was sent: its tries, their answers, and its payload. */
import { useState } from "preact/hooks";
import { agentPath, webhooksPlace } from "../apps/agent-place.ts";
import { useAccount } from "../lib/account.tsx";
import { formatBytes, formatDuration } from "../lib/format.ts";
import type { PageParameters } from "../lib/pages.ts";
import { ask, RestError } from "../lib/rest.ts";
import { type Reading, useRest } from "../lib/use-rest.ts";
import type { WireTry, WireWebhookContent } from "../lib/wire.ts";
import { Facts, Time } from "../parts/bits.tsx";
import { Card, ErrorNote, Page, Read } from "../parts/page.tsx";
import { agentOf } from "./agent-of.tsx";
import { BodyCard } from "./content.tsx";
import { StatusBadge, type Step, Timeline } from "./status.tsx";

const REFRESH_MS = 3_000;

export function SentWebhookPage(props: PageParameters) {
  const agent = agentOf(props);
  const { id = "" } = props.parameters;
  const { restPath, placeOf, may } = useAccount();
  const path = restPath(`${agentPath(agent)}/webhooks/${id}`);
  const reading = useRest<WireWebhookContent>(path, { everyMs: REFRESH_MS });
  return (
    <Page
      title={`Webhook #${id}`}
      above={{ label: `Sent by ${agent.name}`, to: `${placeOf(webhooksPlace(agent))}/sent` }}
      request={{ path }}
    >
      <Read reading={reading}>
        {(webhook) => (
          <>
            {may("apps.write") && <Resend path={path} reading={reading} />}
            <div class="columns">
              <Card title="Webhook">
                <Facts
                  rows={[
                    ["State", <StatusBadge key="state" status={webhook.status} />],
                    ["To", <code key="to">{webhook.url}</code>],
                    ["Header webhook-id", <code key="id">{webhook.webhook_id}</code>],
                    ["Size", formatBytes(webhook.payload_bytes)],
                    ["Sent again", `${webhook.resends} times`],
                    ["Made", <Time key="made" at={webhook.created_on} />],
                  ]}
                />
              </Card>
              <Card title="Tries">
                <Timeline steps={stepsOf(webhook)} />
              </Card>
            </div>
            <BodyCard title="Payload" body={webhook.body} encoding={webhook.body_encoding} />
          </>
        )}
      </Read>
    </Page>
  );
}

function Resend({ path, reading }: { path: string; reading: Reading<WireWebhookContent> }) {
  const [error, setError] = useState<RestError>();
  const resend = async () => {
    setError(undefined);
    try {
      await ask({ method: "POST", path: `${path}/resend` });
      reading.reload();
    } catch (thrown) {
      setError(
        thrown instanceof RestError ? thrown : new RestError(0, [{ message: String(thrown) }]),
      );
    }
  };
  return (
    <div>
      {error && <ErrorNote error={error} />}
      <button
        type="button"
        class="small second"
        disabled={reading.value?.status === "waiting"}
        onClick={resend}
      >
        Send again
      </button>
    </div>
  );
}

function stepsOf(webhook: WireWebhookContent): Step[] {
  const { tries, next_attempt_on: nextOn } = webhook;
  const ordered = tries.toSorted((one, other) => one.at.localeCompare(other.at));
  return [
    { at: webhook.created_on, tone: "quiet", what: "Made by the agent" },
    ...ordered.map(
      (one): Step => ({
        at: one.at,
        tone: isGood(one) ? "good" : "bad",
        what: one.status === null ? "No answer" : `Answered ${one.status}`,
        detail: [one.error, formatDuration(one.duration_ms), one.answer].filter(Boolean).join("\n"),
      }),
    ),
    ...(nextOn === null ? [] : [{ at: nextOn, tone: "busy" as const, what: "Next try" }]),
  ];
}

const isGood = ({ status }: WireTry) => status !== null && status >= 200 && status < 300;
