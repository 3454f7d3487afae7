/** Shared parts of the webhook pages: headings, states, attempts, headers and bodies. */
import type { ComponentChildren } from "preact";
import { type AgentPlace, webhooksPlace } from "../apps/agent-place.ts";
import type { WireDelivery, WireWebhook } from "../lib/wire.ts";
import { CopyButton } from "../parts/button.tsx";
import { Table } from "../parts/list.tsx";
import { CodeBlock, readable, Time, type Tone } from "../parts/note.tsx";
import { Card } from "../parts/page.tsx";

/** The heading and tabs that the webhook lists of one agent share. */
export function webhooksFrame(agent: AgentPlace, current: "" | "/sent") {
  const base = webhooksPlace(agent);
  const pages = [[base, "Came in"] as const, [`${base}/sent`, "Sent out"] as const];
  return {
    title: agent.name,
    above: ["Webhooks", endpointsOf(agent.app)] as const,
    tabs: { label: `Webhooks of ${agent.name}`, pages, current: base + current },
  };
}

/** Returns the path of the page with the endpoints of an app. */
export const endpointsOf = (app: string) => `webhooks?app=${encodeURIComponent(app)}`;

export const TONES: Record<WireDelivery["status"] | WireWebhook["status"], Tone> = {
  ...{ waiting: "busy", delivered: "good", arrived: "good", failed: "bad" },
};

export interface Step {
  at: string;
  tone: Tone;
  what: string;
  detail?: ComponentChildren;
}

/** Shows past and planned steps, the oldest first. */
export function Timeline({ steps }: { steps: readonly (Step | false)[] }) {
  const shown = steps.filter((step) => step !== false);
  return (
    <ol class="timeline">
      {shown.map(({ at, tone, what, detail }, index) => (
        <li key={index} data-tone={tone}>
          <span class="what">{what}</span> <Time at={at} />
          {detail && <div class="quiet preline">{detail}</div>}
        </li>
      ))}
    </ol>
  );
}

interface BodyProps {
  title: string;
  of: { body: string | null; body_encoding: "text" | "base64" };
}

export function BodyCard({ title, of: { body, body_encoding: encoding } }: BodyProps) {
  return (
    <Card title={title} actions={body && <CopyButton text={body} label="Copy the body" />}>
      {!body ? (
        <p class="quiet">{body === null ? "The body is kept no more." : "It has no body."}</p>
      ) : (
        <>
          {encoding === "base64" && <p class="quiet">These bytes are no text: shown in base64.</p>}
          <CodeBlock label={title} text={encoding === "text" ? readable(body) : body} />
        </>
      )}
    </Card>
  );
}

export function HeadersCard({ headers }: { headers: readonly { name: string; value: string }[] }) {
  return (
    <Card title="Headers">
      {headers.length === 0 ? (
        <p class="quiet">It has no headers.</p>
      ) : (
        <div class="compact">
          <Table
            label="Headers"
            rows={headers}
            columns={{
              Header: ({ name }) => <code>{name}</code>,
              Value: ({ value }) => <code>{value}</code>,
            }}
          />
        </div>
      )}
    </Card>
  );
}
