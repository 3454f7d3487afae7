/** One crawl: its progress live, and its records with what was kept of each page. */
import { useRef, useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { counted, formatDuration, formatNumber } from "../lib/format.ts";
import type { PageParameters } from "../lib/pages.ts";
import { queryOf } from "../lib/query.ts";
import { ask } from "../lib/rest.ts";
import type { WireCrawl } from "../lib/wire.ts";
import { Facts, Time } from "../parts/bits.tsx";
import { ConfirmButton } from "../parts/dialog.tsx";
import { Card, Page, Read } from "../parts/page.tsx";
import { CrawlState } from "./crawl-state.tsx";
import { Records } from "./records.tsx";
import { type FollowedCrawl, useCrawl } from "./use-crawl.ts";

/** Each record carries its content. */
const PAGE = 20;

export function CrawlPage({ parameters }: PageParameters) {
  const { restPath, placeOf, may } = useAccount();
  const [status, setStatus] = useState("");
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const path = restPath(`/browser-rendering/crawl/${encodeURIComponent(parameters.id ?? "")}`);
  const query = queryOf({ limit: String(PAGE), status, cursor: cursors.at(-1) });
  const crawl = useCrawl(path, query);
  const { reading } = crawl;
  // The first record is where the crawl began; other lists of records do not have it.
  const start = useRef<string | undefined>(undefined);
  if (status === "" && cursors.length === 0) start.current ??= reading.value?.records[0]?.url;
  const cancel = async () => {
    await ask({ method: "DELETE", path });
    reading.reload();
  };
  const choose = (next: string) => {
    setStatus(next);
    setCursors([]);
  };
  const isRunning = reading.value?.status === "running";
  return (
    <Page
      title="Crawl"
      above={{ label: "Crawls", to: placeOf("crawls") }}
      lead={start.current ?? " "}
      request={{ path: path + query }}
      actions={
        isRunning &&
        may("browser-rendering.write") && (
          <ConfirmButton
            label="Cancel the crawl"
            title="Cancel the crawl?"
            text="It fetches no further page. The records that it has stay."
            onConfirm={cancel}
          />
        )
      }
    >
      <Overview crawl={crawl} />
      <Records
        reading={reading}
        status={status}
        onStatus={choose}
        onNewer={cursors.length > 0 ? () => setCursors(cursors.slice(0, -1)) : undefined}
        onOlder={(cursor) => setCursors([...cursors, cursor])}
      />
    </Page>
  );
}

function Overview({ crawl: { reading, progress, latest } }: { crawl: FollowedCrawl }) {
  return (
    <Card title="Progress">
      <Read reading={reading}>
        {(value) => <Progress value={{ ...value, ...progress }} latest={latest} />}
      </Read>
    </Card>
  );
}

function Progress({ value, latest }: { value: WireCrawl; latest: readonly string[] }) {
  const { status, total, finished, skipped, createdAt, endedAt, messages } = value;
  const isRunning = status === "running";
  return (
    <>
      <p aria-live="polite" class="progress-line">
        <CrawlState status={status} />{" "}
        <span>
          {formatNumber(finished)} of {counted(total, "page")}
          {skipped > 0 && `, ${formatNumber(skipped)} skipped`}
        </span>
      </p>
      <progress aria-label="Finished pages" max={Math.max(1, total)} value={finished} />
      {messages.map((message) => (
        <p key={message} class="note hint-note">
          {message}
        </p>
      ))}
      <Facts
        rows={[
          ["Id", <code key="i">{value.id}</code>],
          ["Started", <Time key="s" at={createdAt} />],
          endedAt !== undefined && ["Ended", <Time key="e" at={endedAt} />],
          endedAt !== undefined && [
            "Took",
            formatDuration(Date.parse(endedAt) - Date.parse(createdAt)),
          ],
          ["Browser time", formatDuration(value.browserSecondsUsed * 1_000)],
          isRunning && latest.length > 0 && ["Latest pages", <Latest key="l" urls={latest} />],
        ]}
      />
    </>
  );
}

function Latest({ urls }: { urls: readonly string[] }) {
  return (
    <ul class="lines latest-pages">
      {urls.map((url, index) => (
        <li key={index}>{url}</li>
      ))}
    </ul>
  );
}
