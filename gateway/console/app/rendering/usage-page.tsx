/** Browser time of the account, by day. */
import { useAccount } from "../lib/account.tsx";
import { formatDuration, formatNumber } from "../lib/format.ts";
import { useRest } from "../lib/use-rest.ts";
import type { WireUsage } from "../lib/wire.ts";
import { Meter, Time } from "../parts/bits.tsx";
import { Card, Empty, Page, Read } from "../parts/page.tsx";
import { Table } from "../parts/table.tsx";
import { RenderingTabs } from "./rendering-tabs.tsx";

const REFRESH_MS = 15_000;
const HEIGHT = 120;
const STEP = 26;

export function UsagePage() {
  const { restPath } = useAccount();
  const path = restPath("/browser-rendering/usage");
  const reading = useRest<WireUsage>(path, { everyMs: REFRESH_MS });
  return (
    <Page
      title="Rendering usage"
      lead="Time of browsers, which renderings and crawls share."
      request={{ path }}
    >
      <RenderingTabs current="rendering/usage" />
      <Read reading={reading}>{(usage) => <Usage usage={usage} />}</Read>
    </Page>
  );
}

function Usage({ usage }: { usage: WireUsage }) {
  return (
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
        {usage.days.length === 0 ? (
          <Empty title="No browser time was used in the last month" />
        ) : (
          <>
            <Bars days={usage.days} />
            <Table
              label="Browser time by day"
              rows={usage.days.toReversed()}
              keyOf={({ date }) => date}
              columns={[
                { name: "Day", cell: ({ date }) => date },
                { name: "Browser time", cell: ({ browser_ms_used: ms }) => formatDuration(ms) },
                { name: "Tasks", cell: ({ tasks }) => formatNumber(tasks) },
              ]}
            />
          </>
        )}
      </Card>
    </>
  );
}

/** The table below has the same numbers for screen readers. */
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
