/**
 * The home page: the health of the platform, the used part of the limits, recent activity, and three quick starts.
 */
import { useEffect, useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { formatBytes, formatDuration, formatNumber } from "../lib/format.ts";
import { curlOf, post, sayingNothing } from "../lib/rest.ts";
import { ROOT } from "../lib/router.ts";
import { useInterval, useRest } from "../lib/use-rest.ts";
import type { WireAgentUsage, WireStored, WireUsage } from "../lib/wire.ts";
import { CopyButton } from "../parts/button.tsx";
import { ButtonLink, Link } from "../parts/link.tsx";
import { Badge, ErrorNote, Meter } from "../parts/note.tsx";
import { Card, Page } from "../parts/page.tsx";
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

/** The response of /healthz. Undefined while it has not arrived. */
type HealthState = { isReady: boolean; faults: string[] } | undefined;

function Health() {
  const [state, setState] = useState<HealthState>();
  const read = async () => {
    const response = await fetch(`${ROOT}/healthz`).catch(() => undefined);
    if (!response) return setState({ isReady: false, faults: ["The platform cannot be reached."] });
    try {
      const { errors = [] } = await response.json();
      const faults = errors.map(({ message }: { message: string }) => message);
      setState({ isReady: response.ok, faults });
    } catch {
      // The response is not from the platform, perhaps from a proxy in front of it, so the page shows its status.
      setState({ isReady: false, faults: [sayingNothing(response)] });
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
  const rendering = useRest<WireUsage>(restPath("/browser-rendering/usage"), REFRESH_MS);
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

function QuickStarts() {
  const { account, restPath } = useAccount();
  const html = "<h1>Hello from Trunkline</h1>";
  const pdf = curlOf(post(restPath("/browser-rendering/pdf"), { html }));
  const asked = { url: "https://example.com/", limit: 10, formats: ["markdown"] };
  const crawl = curlOf(post(restPath("/browser-rendering/crawl"), asked));
  const git = [
    curlOf(post(restPath("/artifacts/namespaces/default/repos"), { name: "hello" })),
    // The token is passed in the environment, because every user of the machine can read command lines.
    'GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=http.extraHeader GIT_CONFIG_VALUE_0="Authorization: Bearer $TOKEN" \\',
    `  git clone ${location.origin}${ROOT}/git/${account.id}/default/hello.git`,
  ].join("\n");
  return (
    <Card title="Quick starts">
      <p class="quiet">
        Do each here, or in a terminal with a token in <code>TOKEN</code>:{" "}
        <Link to="account/tokens/new">make one</Link>.
      </p>
      <Start title="Print a page as a PDF" text={`${pdf} \\\n  -o hello.pdf`} to="rendering" />
      <Start title="Crawl a site to Markdown" text={crawl} to="crawls/new" />
      <Start title="Make a repository and clone it" text={git} to="repositories/-/new" />
    </Card>
  );
}

function Start({ title, text, to }: { title: string; text: string; to: string }) {
  return (
    <section class="start" aria-label={title}>
      <div class="card-head">
        <h3>{title}</h3>
        <div class="actions">
          <ButtonLink to={to}>Do it here</ButtonLink>
          <CopyButton text={text} />
        </div>
      </div>
      <pre>{text}</pre>
    </section>
  );
}
