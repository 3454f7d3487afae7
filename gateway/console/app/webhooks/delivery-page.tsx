/** One event that came: what became of it, its headers and its body. */
import { agentPath, webhooksPlace } from "../apps/agent-place.ts";
import { useAccount } from "../lib/account.tsx";
import { counted, formatBytes } from "../lib/format.ts";
import type { PageParameters } from "../lib/pages.ts";
import { useRest } from "../lib/use-rest.ts";
import type { WireDeliveryContent } from "../lib/wire.ts";
import { ActButton } from "../parts/act-button.tsx";
import { Facts, Time } from "../parts/bits.tsx";
import { Card, Page, Read } from "../parts/page.tsx";
import { agentOf } from "./agent-of.tsx";
import { BodyCard, HeadersCard } from "./content.tsx";
import { StatusBadge, type Step, Timeline } from "./status.tsx";

const REFRESH_MS = 3_000;

export function DeliveryPage(props: PageParameters) {
  const agent = agentOf(props);
  const { id = "" } = props.parameters;
  const { restPath, placeOf, may } = useAccount();
  const path = restPath(`${agentPath(agent)}/deliveries/${id}`);
  const reading = useRest<WireDeliveryContent>(path, { everyMs: REFRESH_MS });
  const { value } = reading;
  return (
    <Page
      title={`${value?.event_type ?? "Event"} #${id}`}
      above={{ label: `Deliveries of ${agent.name}`, to: placeOf(webhooksPlace(agent)) }}
      request={{ path }}
      actions={
        may("apps.write") &&
        value && (
          <ActButton
            request={{ method: "POST", path: `${path}/replay` }}
            said="Replayed"
            label="Replay"
            isDisabled={value.status === "waiting"}
            done={reading.reload}
          />
        )
      }
    >
      <Read reading={reading}>
        {(delivery) => (
          <>
            <div class="columns">
              <About delivery={delivery} />
              <Card title="What happened">
                <Timeline steps={stepsOf(delivery)} />
              </Card>
            </div>
            <BodyCard title="Body" body={delivery.body} encoding={delivery.body_encoding} />
            <HeadersCard headers={delivery.headers} />
          </>
        )}
      </Read>
    </Page>
  );
}

function About({ delivery }: { delivery: WireDeliveryContent }) {
  return (
    <Card title="Event">
      <Facts
        rows={[
          ["State", <StatusBadge key="state" status={delivery.status} />],
          ["From", delivery.source],
          ["Id of the provider", <code key="id">{delivery.event_id}</code>],
          [
            "Request",
            <code key="request">
              {delivery.method} {delivery.url}
            </code>,
          ],
          ["Size", formatBytes(delivery.body_bytes)],
          ["Came", <Time key="came" at={delivery.received_on} />],
        ]}
      />
    </Card>
  );
}

function stepsOf(delivery: WireDeliveryContent): (Step | false)[] {
  const { attempts, replays, last_attempt_on: lastOn, next_attempt_on: nextOn } = delivery;
  const answer = delivery.answer_status;
  return [
    { at: delivery.received_on, tone: "quiet", what: "Came, and was stored" },
    lastOn !== null && {
      at: lastOn,
      tone: delivery.status === "delivered" ? "good" : "bad",
      what: `Try ${attempts}${replays > 0 ? `, after ${counted(replays, "replay")}` : ""}`,
      detail: delivery.error ?? (answer === null ? undefined : `The agent answered ${answer}`),
    },
    nextOn !== null && { at: nextOn, tone: "busy", what: `Try ${attempts + 1}` },
  ];
}
