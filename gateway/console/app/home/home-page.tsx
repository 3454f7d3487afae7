/** The first page: whether all is well, how much of the limits is used, what happened, and three ways to begin. */
import { useEffect, useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { formatBytes, formatDuration, formatNumber } from "../lib/format.ts";
import { ROOT } from "../lib/router.tsx";
import { useInterval, useRest } from "../lib/use-rest.ts";
import type { WireAgentUsage, WireStored, WireUsage } from "../lib/wire.ts";
import { Badge, Meter } from "../parts/bits.tsx";
import { Card, ErrorNote, Page } from "../parts/page.tsx";
import { QuickStarts } from "./quick-starts.tsx";
import { RecentActivity } from "./recent-activity.tsx";

const REFRESH_MS = 15_000;

export function HomePage() {
  const { account, restPath } = useAccount();
  return (
    <Page
      title="Home"
      lead={`The account ${account.name}: its health, its usage and what happened last.`}
      request={{ path: restPath("/browser-rendering/usage") }}
    >
      <div class="columns">
        <Health />
        <Usage />
      </div>
      <RecentActivity>
        <QuickStarts />
      </RecentActivity>
    </Page>
  );
}

/** What /healthz answers; `undefined`: not yet. */
type HealthState = { isReady: boolean; faults: string[] } | undefined;

function Health() {
  const [state, setState] = useState<HealthState>();
  const read = async () => {
    try {
      const response = await fetch(`${ROOT}/healthz`);
      const { errors = [] } = await response.json();
      const faults = errors.map(({ message }: { message: string }) => message);
      setState({ isReady: response.ok, faults });
    } catch {
      setState({ isReady: false, faults: ["The platform cannot be reached."] });
    }
  };
  useEffect(() => void read(), []);
  useInterval(() => void read(), REFRESH_MS);
  return (
    <Card title="Health">
      <p aria-live="polite">
        {state === undefined && <Badge tone="quiet">checking</Badge>}
        {state?.isReady && <Badge tone="good">All is well</Badge>}
        {state && !state.isReady && <Badge tone="bad">Not ready</Badge>}
      </p>
      {(state === undefined || state.isReady) && (
        <p class="quiet">
          {state ? "The gateway, the bus and the actors answer." : "Checking the gateway."}
        </p>
      )}
      {state?.faults.map((fault) => (
        <p key={fault}>{fault}</p>
      ))}
    </Card>
  );
}

function Usage() {
  const { restPath } = useAccount();
  const rendering = useRest<WireUsage>(restPath("/browser-rendering/usage"), {
    everyMs: REFRESH_MS,
  });
  const artifacts = useRest<WireStored>(restPath("/artifacts/usage"));
  const agents = useRest<WireAgentUsage>(restPath("/agents/usage"));
  return (
    <Card title="Usage">
      {rendering.error && <ErrorNote error={rendering.error} retry={rendering.reload} />}
      <Meter
        label="Browser time today"
        used={rendering.value?.browser_ms_used}
        limit={rendering.value?.browser_ms_limit}
        format={formatDuration}
      />
      <Meter
        label="Repositories"
        used={artifacts.value?.bytes}
        limit={artifacts.value?.bytes_max}
        format={formatBytes}
      />
      <Meter
        label="Agents"
        used={agents.value?.agents}
        limit={agents.value?.agents_limit}
        format={formatNumber}
      />
    </Card>
  );
}
