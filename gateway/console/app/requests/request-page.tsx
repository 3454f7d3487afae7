/** The page of one request, found by its id: its steps with times and outcomes, and links to its results. */

import { agentPlace, webhooksPlace } from "../apps/agent-place.ts";
import { useAccount } from "../lib/account.tsx";
import { useParameters } from "../lib/router.ts";
import type { WireStep, WireTrace } from "../lib/wire.ts";
import { FormCard, useForm } from "../parts/form.tsx";
import { Link } from "../parts/link.tsx";
import { TableCard } from "../parts/list.tsx";
import { Badge, Facts, Time } from "../parts/note.tsx";
import { Card, Page, RestPage } from "../parts/page.tsx";

/** Interval between two reads. The request may still run, and processes store its steps with a short delay. */
const REFRESH_MS = 3_000;

export function RequestPage() {
  const { id = "" } = useParameters();
  const { restPath, user } = useAccount();
  const below = `/requests/${encodeURIComponent(id)}`;
  return (
    <RestPage<WireTrace>
      path={user.is_administrator ? `/installation${below}` : restPath(below)}
      everyMs={REFRESH_MS}
      request={{ path: restPath(below) }}
      title={`Request ${id}`}
      above={["Requests", "requests"]}
    >
      {({ steps }) => <Way steps={steps} />}
    </RestPage>
  );
}

function Way({ steps }: { steps: readonly WireStep[] }) {
  const { account } = useAccount();
  const request = steps.find(({ way }) => way === "request");
  const lines = steps.filter(({ way }) => way === "log");
  const results = resultsOf(steps, account.id);
  return (
    <>
      <Card title="Request">
        <Facts
          of={{
            Route: request && <code>{request.name}</code>,
            Answer: request && <Outcome step={request} />,
            Took: request && <Figure ms={request.ms} />,
            Came: <Time at={steps[0]?.at} />,
            "Led to": results.length > 0 && (
              <ul class="lines">
                {results.map(({ label, to }) => (
                  <li key={to}>
                    <Link to={to}>{label}</Link>
                  </li>
                ))}
              </ul>
            ),
          }}
        />
      </Card>
      <Steps steps={steps.filter(({ way }) => way !== "log")} />
      {lines.length > 0 && (
        <TableCard
          title="Log lines"
          rows={lines}
          columns={{
            Level: ({ level }) => level,
            Line: ({ name }) => name,
            Error: ({ error }) => error ?? "–",
          }}
        />
      )}
    </>
  );
}

function Steps({ steps }: { steps: readonly WireStep[] }) {
  const start = Date.parse(steps[0]?.at ?? "");
  const after = ({ at }: WireStep) => Date.parse(at) - start;
  const whole = Math.max(1, ...steps.map((step) => after(step) + step.ms));
  return (
    <TableCard
      title="Way"
      rows={steps}
      columns={{
        Step: ({ way, name, key }) => (
          <>
            {name} <Badge tone="quiet">{way}</Badge>
            {key !== null && <code class="step-key">{key}</code>}
          </>
        ),
        "Began after": (step) => <Figure ms={after(step)} />,
        Took: ({ ms }) => <Figure ms={ms} />,
        When: (step) => <Bar from={after(step) / whole} share={step.ms / whole} />,
        Outcome: (step) => <Outcome step={step} />,
      }}
    />
  );
}

const BAR = 1_000;
/** Minimum width of a bar, so that the shortest step is visible. */
const WIDTH_MIN = 8;

/**
 * A bar that shows when the step ran, relative to the time of all steps. The table's other cells show the numbers.
 */
function Bar({ from, share }: { from: number; share: number }) {
  return (
    <svg class="step-bar" viewBox={`0 0 ${BAR} 1`} preserveAspectRatio="none" aria-hidden="true">
      <rect
        x={Math.min(from * BAR, BAR - WIDTH_MIN)}
        width={Math.max(WIDTH_MIN, share * BAR)}
        height="1"
      />
    </svg>
  );
}

function Outcome({ step: { status, error } }: { step: WireStep }) {
  const text = [status, error?.replaceAll("_", " ")].filter((one) => one != null).join(" ") || "ok";
  return <Badge tone={error === null ? "good" : "bad"}>{text}</Badge>;
}

function Figure({ ms }: { ms: number }) {
  const text = ms < 100 ? ms.toFixed(1) : Math.round(ms).toLocaleString("en");
  return <span class="figure">{text} ms</span>;
}

export function FindRequestPage() {
  const { go } = useAccount();
  const form = useForm({ id: "" });
  const show = async () => go(`requests/${encodeURIComponent(form.values.id.trim())}`);
  return (
    <Page
      title="Requests"
      lead="The steps of one request in gateway, actors, mail and workers. They are kept for three days at most, and of about the last 60,000 requests."
    >
      <FormCard
        submit="Show"
        onSubmit={show}
        form={form}
        fields={[
          {
            ...{ name: "id", label: "Request id", isCode: true, required: true, autoFocus: true },
            hint: "See the header X-Request-Id of every response, responses to webhooks, and the text below every error",
          },
        ]}
      />
    </Page>
  );
}

interface Result {
  label: string;
  /** A path below the account. */
  to: string;
}

/** Returns each result once, in the order of the steps. */
function resultsOf(steps: readonly WireStep[], accountId: string): Result[] {
  const found = steps.map((step) => resultOf(step, accountId)).filter((one) => one !== undefined);
  return [...new Map(found.map((one) => [one.to, one])).values()];
}

function resultOf({ name, key }: WireStep, accountId: string): Result | undefined {
  const [kind] = name.split(" ");
  if (kind === "crawl-job" && key !== null) return { label: `Crawl ${key}`, to: `crawls/${key}` };
  if (!key?.startsWith(`${accountId}.`)) return undefined;
  const [first = "", second = "", ...rest] = key.slice(accountId.length + 1).split(".");
  const place = { app: first, className: second, name: rest.join(".") };
  switch (kind) {
    case "app":
    case "app-entry":
      return { label: `App ${first}`, to: `apps/${first}` };
    case "agent":
      return { label: `Agent ${second} ${place.name}`, to: agentPlace(place) };
    case "agent-inbox":
      return { label: `Webhooks of ${second} ${place.name}`, to: webhooksPlace(place) };
    case "outgoing-webhook":
      return { label: `Webhooks from ${second} ${place.name}`, to: `${webhooksPlace(place)}/sent` };
    default:
      return undefined;
  }
}
