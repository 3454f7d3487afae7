/** The state of a webhook, and its tries on a line of time. */
import type { ComponentChildren } from "preact";
import type { WireDelivery, WireWebhook } from "../lib/wire.ts";
import { Badge, Time, type Tone } from "../parts/bits.tsx";

const TONES: Record<WireDelivery["status"] | WireWebhook["status"], Tone> = {
  waiting: "busy",
  delivered: "good",
  arrived: "good",
  failed: "bad",
};

export function StatusBadge({
  status,
}: {
  status: WireDelivery["status"] | WireWebhook["status"];
}) {
  return <Badge tone={TONES[status]}>{status}</Badge>;
}

export interface Step {
  at: string;
  tone: Tone;
  what: string;
  detail?: ComponentChildren;
}

/** What happened and what comes, the oldest first. */
export function Timeline({ steps }: { steps: readonly (Step | false | null | undefined)[] }) {
  const shown = steps.filter((step) => !!step);
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

/** The states to choose from in a list. */
export const statusOptions = (statuses: readonly string[]) => [
  { value: "", label: "All" },
  ...statuses.map((value) => ({
    value,
    label: value.slice(0, 1).toUpperCase() + value.slice(1),
  })),
];
