/** The page of one request: its steps with times and outcomes, and its results. */
import { useAccount } from "../lib/account.tsx";
import type { PageParameters } from "../lib/pages.ts";
import { Link } from "../lib/router.tsx";
import { useRest } from "../lib/use-rest.ts";
import type { WireStep, WireTrace } from "../lib/wire.ts";
import { Badge, Facts, Time } from "../parts/bits.tsx";
import { Card, Page, Read } from "../parts/page.tsx";
import { Table } from "../parts/table.tsx";
import { resultsOf } from "./results-of.ts";

/** The request may still run, and processes write its steps a moment later. */
const REFRESH_MS = 3_000;

export function RequestPage({ parameters: { id = "" } }: PageParameters) {
  const { restPath, placeOf, user } = useAccount();
  const below = `/requests/${encodeURIComponent(id)}`;
  const path = user.is_administrator ? `/installation${below}` : restPath(below);
  const trace = useRest<WireTrace>(path, { everyMs: REFRESH_MS });
  return (
    <Page
      title={`Request ${id}`}
      above={{ label: "Requests", to: placeOf("requests") }}
      request={{ path: restPath(below) }}
    >
      <Read reading={trace}>{({ steps }) => <Way steps={steps} />}</Read>
    </Page>
  );
}

function Way({ steps }: { steps: readonly WireStep[] }) {
  const { account, placeOf } = useAccount();
  const request = steps.find(({ way }) => way === "request");
  const lines = steps.filter(({ way }) => way === "log");
  const results = resultsOf(steps, account.id);
  return (
    <>
      <Card title="Request">
        <Facts
          rows={[
            request !== undefined && ["Route", <code key="route">{request.name}</code>],
            request !== undefined && ["Answer", <Outcome key="answer" step={request} />],
            request !== undefined && ["Took", <Figure key="took" ms={request.ms} />],
            ["Came", <Time key="came" at={steps[0]?.at} />],
            results.length > 0 && [
              "Led to",
              <ul key="results" class="lines">
                {results.map(({ label, to }) => (
                  <li key={to}>
                    <Link to={placeOf(to)}>{label}</Link>
                  </li>
                ))}
              </ul>,
            ],
          ]}
        />
      </Card>
      <Steps steps={steps.filter(({ way }) => way !== "log")} />
      {lines.length > 0 && <LogLines lines={lines} />}
    </>
  );
}

function Steps({ steps }: { steps: readonly WireStep[] }) {
  const start = Date.parse(steps[0]?.at ?? "");
  const after = ({ at }: WireStep) => Date.parse(at) - start;
  const whole = Math.max(1, ...steps.map((step) => after(step) + step.ms));
  return (
    <Card title="Way">
      <Table
        label="Steps"
        rows={steps.map((step, number) => ({ ...step, number }))}
        keyOf={({ number }) => String(number)}
        columns={[
          {
            name: "Step",
            cell: ({ way, name, key }) => (
              <>
                {name} <Badge tone="quiet">{way}</Badge>
                {key !== null && <code class="step-key">{key}</code>}
              </>
            ),
          },
          { name: "Began after", cell: (step) => <Figure ms={after(step)} /> },
          { name: "Took", cell: ({ ms }) => <Figure ms={ms} /> },
          {
            name: "When",
            cell: (step) => <Bar from={after(step) / whole} share={step.ms / whole} />,
          },
          { name: "Outcome", cell: (step) => <Outcome step={step} /> },
        ]}
      />
    </Card>
  );
}

const BAR = 1_000;
/** Keeps the bar of the shortest step visible. */
const WIDTH_MIN = 8;

/** Shows the position of the step in the time of all steps; other cells hold its figures. */
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

function LogLines({ lines }: { lines: readonly WireStep[] }) {
  return (
    <Card title="Log lines">
      <Table
        label="Log lines"
        rows={lines.map((line, number) => ({ ...line, number }))}
        keyOf={({ number }) => String(number)}
        columns={[
          { name: "Level", cell: ({ level }) => level },
          { name: "Line", cell: ({ name }) => name },
          { name: "Error", cell: ({ error }) => error ?? "–" },
        ]}
      />
    </Card>
  );
}

function Figure({ ms }: { ms: number }) {
  const text = ms < 100 ? ms.toFixed(1) : Math.round(ms).toLocaleString("en");
  return <span class="figure">{text} ms</span>;
}
