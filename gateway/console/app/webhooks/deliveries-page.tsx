/** The events that one agent received: a list with filters, replays, and the headers and body of each event. */
import { useState } from "preact/hooks";
import { agentPath, agentPlace, useAgentPlace, webhooksPlace } from "../apps/agent-place.ts";
import { useAccount } from "../lib/account.tsx";
import { counted, formatBytes } from "../lib/format.ts";
import { post, resultOf } from "../lib/rest.ts";
import { useParameters } from "../lib/router.ts";
import type { WireDelivery, WireDeliveryContent } from "../lib/wire.ts";
import { ActButton, Button } from "../parts/button.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Form, useForm } from "../parts/form.tsx";
import { Link } from "../parts/link.tsx";
import { ListCard, statesFilter, useList } from "../parts/list.tsx";
import { Facts, State, Time } from "../parts/note.tsx";
import { Card, Page, RestPage } from "../parts/page.tsx";
import { BodyCard, HeadersCard, type Step, Timeline, TONES, webhooksFrame } from "./status.tsx";

export function DeliveriesPage() {
  const agent = useAgentPlace();
  const { restPath, may } = useAccount();
  const base = restPath(`${agentPath(agent)}/deliveries`);
  const list = useList<WireDelivery>(base, { everyMs: 3_000, filters: { status: "" } });
  const { reload } = list.reading;
  const canWrite = may("apps.write");
  return (
    <Page
      {...webhooksFrame(agent, "")}
      lead={
        <>
          To the class <code>{agent.className}</code> of {agent.app}.{" "}
          <Link to={agentPlace(agent)}>Show the agent's state</Link>
        </>
      }
      request={list}
      actions={canWrite && <ReplayMany base={base} reload={reload} />}
    >
      <ListCard
        list={list}
        label="Deliveries"
        noun="event"
        filters={[statesFilter(["waiting", "delivered", "failed"])]}
        empty={[
          "No event came to this agent",
          "Events of the endpoints that the app declares are listed here when they come.",
        ]}
        none={["No delivery is in this state", "Choose another state, or all."]}
        columns={{
          Event: ({ id, event_type: type }) => (
            <Link to={`${webhooksPlace(agent)}/${id}`}>
              {type ?? "event"} #{id}
            </Link>
          ),
          State: ({ status }) => <State of={status} tones={TONES} />,
          From: ({ source }) => source,
          Tries: triesOf,
          Size: ({ body_bytes: bytes }) => formatBytes(bytes),
          Came: ({ received_on: at }) => <Time at={at} />,
        }}
        actions={({ id, status }) =>
          canWrite && (
            <ActButton
              request={post(`${base}/${encodeURIComponent(id)}/replay`)}
              said="Replayed"
              label={`Replay #${id}`}
              isDisabled={status === "waiting"}
              done={reload}
            />
          )
        }
      />
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

function ReplayMany({ base, reload }: { base: string; reload: () => void }) {
  const [isOpen, setOpen] = useState(false);
  const [said, setSaid] = useState("");
  const form = useForm({ status: "failed", from: "", to: "" });
  const replay = async () => {
    const json = Object.fromEntries(Object.entries(form.values).filter(([, value]) => value));
    const request = post(`${base}/replay`, json);
    const { replayed } = await resultOf<{ replayed: number }>(request);
    setSaid(`${counted(replayed, "event")} replayed`);
    setOpen(false);
    reload();
  };
  const close = () => setOpen(false);
  return (
    <>
      <Button isMain onClick={() => setOpen(true)}>
        Replay many
      </Button>
      <span class={said ? "" : "hidden"} role="status">
        {said}
      </span>
      {isOpen && (
        <Dialog title="Replay many events" onClose={close}>
          <p class="quiet">
            They are delivered again in the order in which they came, before newer ones.
          </p>
          <Form
            {...{ submit: "Replay", onSubmit: replay, onCancel: close }}
            form={form}
            fields={[
              {
                ...{ name: "status", label: "Which" },
                options: [
                  ["failed", "Those that failed"],
                  ["delivered", "Those that were delivered"],
                  ["", "Both"],
                ],
              },
              {
                ...{ name: "from", label: "From number" },
                hint: "The first one; empty is the oldest that is kept",
              },
              {
                ...{ name: "to", label: "To number" },
                hint: "The last one; empty is the newest",
              },
            ]}
          />
        </Dialog>
      )}
    </>
  );
}

export function DeliveryPage() {
  const agent = useAgentPlace();
  const { id = "" } = useParameters();
  const { restPath, may } = useAccount();
  const path = restPath(`${agentPath(agent)}/deliveries/${encodeURIComponent(id)}`);
  return (
    <RestPage<WireDeliveryContent>
      path={path}
      everyMs={3_000}
      title={(event) => `${event?.event_type ?? "Event"} #${id}`}
      above={[`Deliveries of ${agent.name}`, webhooksPlace(agent)]}
      actions={({ status }, reload) =>
        may("apps.write") && (
          <ActButton
            request={post(`${path}/replay`)}
            said="Replayed"
            label="Replay"
            isDisabled={status === "waiting"}
            done={reload}
          />
        )
      }
    >
      {(delivery) => (
        <>
          <div class="columns">
            <Card title="Event">
              <Facts
                of={{
                  State: <State of={delivery.status} tones={TONES} />,
                  From: delivery.source,
                  "Id of the provider": <code>{delivery.event_id}</code>,
                  Request: <code>{`${delivery.method} ${delivery.url}`}</code>,
                  Size: formatBytes(delivery.body_bytes),
                  Came: <Time at={delivery.received_on} />,
                }}
              />
            </Card>
            <Card title="What happened">
              <Timeline steps={stepsOf(delivery)} />
            </Card>
          </div>
          <BodyCard title="Body" of={delivery} />
          <HeadersCard headers={delivery.headers} />
        </>
      )}
    </RestPage>
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
