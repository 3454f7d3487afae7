/** Lists rendering jobs, and shows the browser time that the account used each day. */
import { useAccount } from "../lib/account.tsx";
import { formatBytes, formatDuration, formatNumber } from "../lib/format.ts";
import type { WireJob, WireUsage } from "../lib/wire.ts";
import { DownloadButton } from "../parts/button.tsx";
import { ConfirmButton } from "../parts/dialog.tsx";
import { ListCard, statesFilter, Table, useList } from "../parts/list.tsx";
import { Empty, Meter, State, Time, type Tone } from "../parts/note.tsx";
import { Card, Page, RestPage } from "../parts/page.tsx";
import { extensionOf } from "./render-request.ts";

/** Interval between two reads. Jobs change while they run, and the REST API has no events for them. */
const REFRESH_MS = 2_000;
const TONES: Readonly<Record<WireJob["status"], Tone>> = {
  ...{ queued: "busy", running: "busy", completed: "good", failed: "bad", cancelled: "quiet" },
};

export function JobsPage() {
  const { restPath, may } = useAccount();
  const base = restPath("/browser-rendering/jobs");
  const jobs = useList<WireJob>(base, { everyMs: REFRESH_MS, filters: { status: "" } });
  return (
    <Page
      title="Rendering jobs"
      lead="Renderings that run on after their request, and keep their results for a day."
      request={jobs}
      tabs={renderingTabs("rendering/jobs")}
    >
      <ListCard
        list={jobs}
        label="Jobs"
        noun="job"
        filters={[statesFilter(Object.keys(TONES))]}
        empty={[
          "There is no job yet",
          "Tick “Run as a job” in the playground, or send the header Prefer: respond-async.",
        ]}
        none={["No job is in this state", "Choose another state, or all."]}
        columns={{
          Job: ({ id, call }) => (
            <>
              {call} <code class="step-key">{id}</code>
            </>
          ),
          State: ({ status, error }) => (
            <>
              <State of={status} tones={TONES} />
              {error && <p class="quiet preline">{error.message}</p>}
            </>
          ),
          Started: ({ createdAt: at }) => <Time at={at} />,
          Took: tookOf,
          Result: ({ result }) => (result ? formatBytes(result.bytes) : "–"),
        }}
        actions={({ id, call, status, result }) => (
          <>
            {result && (
              <DownloadButton
                label={`Download ${call}`}
                path={`${base}/${encodeURIComponent(id)}/result`}
                name={`${call}.${extensionOf(result.mediaType)}`}
              />
            )}
            {(status === "queued" || status === "running") && may("browser-rendering.write") && (
              <ConfirmButton
                label={`Cancel ${call}`}
                title="Cancel the job?"
                text="Its page is closed, and it has no result."
                request={{ method: "DELETE", path: `${base}/${encodeURIComponent(id)}` }}
                done={jobs.reading.reload}
              />
            )}
          </>
        )}
      />
    </Page>
  );
}

const tookOf = ({ startedAt, endedAt }: WireJob) =>
  startedAt === undefined || endedAt === undefined
    ? "–"
    : formatDuration(Date.parse(endedAt) - Date.parse(startedAt));

const HEIGHT = 120;
const STEP = 26;

export function UsagePage() {
  const { restPath } = useAccount();
  return (
    <RestPage<WireUsage>
      path={restPath("/browser-rendering/usage")}
      everyMs={15_000}
      title="Rendering usage"
      lead="Time of browsers, which renderings and crawls share."
      tabs={renderingTabs("rendering/usage")}
    >
      {(usage) => (
        <>
          <Card title="Today">
            <Meter
              label="Browser time"
              used={usage.browser_ms_used}
              limit={usage.browser_ms_limit}
              format={formatDuration}
            />
            <p class="quiet">
              A day ends at midnight UTC, <Time at={usage.resets_at} />.
            </p>
          </Card>
          <Card title="By day">
            <Days days={usage.days} />
          </Card>
        </>
      )}
    </RestPage>
  );
}

function Days({ days }: Pick<WireUsage, "days">) {
  if (days.length === 0) return <Empty title="No browser time was used in the last month" />;
  return (
    <>
      <Bars days={days} />
      <Table
        label="Browser time by day"
        rows={days.toReversed()}
        keyOf={({ date }) => date}
        columns={{
          Day: ({ date }) => date,
          "Browser time": ({ browser_ms_used: ms }) => formatDuration(ms),
          Tasks: ({ tasks }) => formatNumber(tasks),
        }}
      />
    </>
  );
}

/** A bar chart. The table below it shows the same numbers to screen readers. */
function Bars({ days }: { days: WireUsage["days"] }) {
  const most = Math.max(1, ...days.map(({ browser_ms_used: ms }) => ms));
  const width = Math.max(10, days.length) * STEP;
  return (
    <svg
      class="bars"
      viewBox={`0 0 ${width} ${HEIGHT}`}
      preserveAspectRatio="xMinYMid"
      aria-hidden="true"
    >
      {days.map(({ date, browser_ms_used: ms }, index) => {
        const height = Math.max(2, (ms / most) * (HEIGHT - 4));
        return (
          <rect
            key={date}
            x={index * STEP}
            y={HEIGHT - height}
            width={STEP - 8}
            height={height}
            rx="3"
          >
            <title>{`${date}: ${formatDuration(ms)}`}</title>
          </rect>
        );
      })}
    </svg>
  );
}

const TABS = [
  ["rendering", "Playground"],
  ["rendering/jobs", "Jobs"],
  ["rendering/usage", "Usage"],
] as const;

export const renderingTabs = (current: (typeof TABS)[number][0]) => ({
  ...{ label: "Rendering", pages: TABS, current },
});
