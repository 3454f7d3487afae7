/** The crawls of the account, newest first. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { formatNumber } from "../lib/format.ts";
import { Link } from "../lib/router.tsx";
import { useRest } from "../lib/use-rest.ts";
import type { WireCrawlEntry } from "../lib/wire.ts";
import { Time } from "../parts/bits.tsx";
import { SelectField } from "../parts/form.tsx";
import { List } from "../parts/list.tsx";
import { Card, Empty, Page } from "../parts/page.tsx";
import { CrawlState } from "./crawl-state.tsx";

const REFRESH_MS = 3_000;
const STATES = [
  ["", "All"],
  ["running", "Running"],
  ["completed", "Completed"],
  ["errored", "Errored"],
  ["cancelled_by_user", "Cancelled"],
  ["cancelled_due_to_limits", "Limit reached"],
  ["cancelled_due_to_timeout", "Timed out"],
] as const;

export function CrawlsPage() {
  const { restPath, placeOf, may } = useAccount();
  const [status, setStatus] = useState("");
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const cursor = cursors.at(-1);
  const query = new URLSearchParams({
    limit: "20",
    ...(status && { status }),
    ...(cursor && { cursor }),
  });
  const path = restPath(`/browser-rendering/crawl?${query}`);
  const crawls = useRest<WireCrawlEntry[]>(path, { everyMs: REFRESH_MS });
  const choose = (next: string) => {
    setStatus(next);
    setCursors([]);
  };
  return (
    <Page
      title="Crawls"
      lead="Sites that the platform walks, and keeps as HTML, Markdown or data."
      request={{ path }}
      actions={
        may("browser-rendering.write") && (
          <Link class="button small" to={placeOf("crawls/new")}>
            New crawl
          </Link>
        )
      }
    >
      <Card>
        <div class="filters">
          <SelectField
            label="State"
            value={status}
            onChange={choose}
            options={STATES.map(([value, label]) => ({ value, label }))}
          />
        </div>
        <List
          reading={crawls}
          label="Crawls"
          noun="crawl"
          keyOf={({ id }) => id}
          onCursor={(next) => setCursors([...cursors, next])}
          empty={
            <Empty title={status ? "No crawl has this state" : "There is no crawl yet"}>
              <p>Start one: a few pages take some seconds.</p>
            </Empty>
          }
          columns={[
            {
              name: "Start",
              cell: ({ id, url }) => <Link to={placeOf(`crawls/${id}`)}>{url}</Link>,
            },
            { name: "State", cell: ({ status: state }) => <CrawlState status={state} /> },
            { name: "Pages", cell: pagesOf },
            { name: "Started", cell: ({ createdAt: at }) => <Time at={at} /> },
          ]}
        />
        {cursors.length > 0 && (
          <button
            type="button"
            class="small second"
            onClick={() => setCursors(cursors.slice(0, -1))}
          >
            Newer
          </button>
        )}
      </Card>
    </Page>
  );
}

function pagesOf({ finished, total }: WireCrawlEntry): string {
  if (finished === undefined || total === undefined) return "–";
  return `${formatNumber(finished)} of ${formatNumber(total)}`;
}
