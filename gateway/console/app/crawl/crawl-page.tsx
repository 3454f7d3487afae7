/** The page of one crawl: its live progress, and the record of each page with the stored content. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { counted, formatDuration, formatNumber } from "../lib/format.ts";
import { asRefusal, eventsOf, queryOf, RestError } from "../lib/rest.ts";
import { useParameters } from "../lib/router.ts";
import { type Reading, useInterval, useRest } from "../lib/use-rest.ts";
import type { WireCrawl, WireCrawlSummary } from "../lib/wire.ts";
import { ConfirmButton } from "../parts/dialog.tsx";
import { useCursors } from "../parts/list.tsx";
import { ErrorNote, Facts, Lines, Time } from "../parts/note.tsx";
import { Card, Page, Read } from "../parts/page.tsx";
import { CrawlState } from "./crawls-page.tsx";
import { Records } from "./records.tsx";

/** Number of records per page. It is low, because each record contains the content of a crawled page. */
const PAGE = 20;

export function CrawlPage() {
  const { id = "" } = useParameters();
  const { restPath, may } = useAccount();
  const [status, setStatus] = useState("");
  const { cursor, restart, pagesBeside } = useCursors();
  const path = restPath(`/browser-rendering/crawl/${encodeURIComponent(id)}`);
  const query = queryOf({ limit: String(PAGE), status, cursor });
  const { reading, progress, latest, error, follow } = useCrawl(path, query);
  // On the first page of the unfiltered list, the first record is the address where the crawl began. Filtered lists
  // and later pages may begin with another record.
  const start = useRef<string | undefined>(undefined);
  if (status === "" && cursor === undefined) start.current ??= reading.value?.records[0]?.url;
  const choose = (next: string) => {
    setStatus(next);
    restart();
  };
  const isRunning = reading.value?.status === "running";
  return (
    <Page
      title="Crawl"
      above={["Crawls", "crawls"]}
      lead={start.current ?? " "}
      request={{ path: path + query }}
      actions={
        isRunning &&
        may("browser-rendering.write") && (
          <ConfirmButton
            label="Cancel the crawl"
            title="Cancel the crawl?"
            text="It fetches no further page. The records that it has stay."
            request={{ method: "DELETE", path }}
            done={reading.reload}
          />
        )
      }
    >
      <Card title="Progress">
        {error && <ErrorNote error={error} retry={follow} />}
        <Read reading={reading}>
          {(value) => <Progress value={{ ...value, ...progress }} latest={latest} />}
        </Read>
      </Card>
      <Records
        reading={reading}
        status={status}
        onStatus={choose}
        {...pagesBeside(reading.value?.cursor)}
      />
    </Page>
  );
}

function Progress({ value, latest }: { value: WireCrawl; latest: readonly string[] }) {
  const { status, total, finished, skipped, createdAt, endedAt, messages } = value;
  const tookMs = endedAt && Date.parse(endedAt) - Date.parse(createdAt);
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
        of={{
          Id: <code>{value.id}</code>,
          Started: <Time at={createdAt} />,
          Ended: endedAt && <Time at={endedAt} />,
          Took: tookMs !== undefined && formatDuration(Number(tookMs)),
          "Browser time": formatDuration(value.browserSecondsUsed * 1_000),
          "Latest pages": status === "running" && latest.length > 0 && (
            <Lines class="latest-pages" of={latest} />
          ),
        }}
      />
    </>
  );
}

/**
 * Minimum time between two reads of the records. Records contain the content of pages, so they are not read again for
 * every new page.
 */
const RECORDS_EVERY_MS = 1_500;
/** Time after which a broken event stream is opened again. */
const RECONNECT_MS = 3_000;

type CrawlProgress = Pick<WireCrawlSummary, "status" | "total" | "finished" | "skipped">;

interface FollowedCrawl {
  reading: Reading<WireCrawl>;
  /** The progress of a running crawl, which is newer than `reading`. */
  progress: CrawlProgress | undefined;
  /** The latest crawled addresses, the newest first. */
  latest: readonly string[];
  /** The error because of which the crawl's events are no longer read. */
  error: RestError | undefined;
  /** Starts again to read the crawl's events. */
  follow(): void;
}

const LATEST_MAX = 5;

function useCrawl(path: string, query: string): FollowedCrawl {
  const reading = useRest<WireCrawl>(`${path}${query}`);
  const [progress, setProgress] = useState<CrawlProgress>();
  const [latest, setLatest] = useState<readonly string[]>([]);
  const [error, setError] = useState<RestError>();
  const [turn, setTurn] = useState(0);
  const hasNews = useRef(false);
  const isRunning = reading.value?.status === "running";
  const take = useCallback((event: string, data: Record<string, unknown>) => {
    hasNews.current = true;
    if (event === "page") {
      setLatest((before) => [String(data.url), ...before].slice(0, LATEST_MAX));
    } else if (event !== "missed") {
      setProgress((before) => ({ ...before, ...data }) as CrawlProgress);
    }
  }, []);
  useEffect(() => {
    if (!isRunning) return;
    const leaving = new AbortController();
    setError(undefined);
    const { signal } = leaving;
    follow(`${path}/events`, signal, take).catch((thrown: unknown) => {
      if (!signal.aborted) setError(asRefusal(thrown));
    });
    return () => leaving.abort();
  }, [path, isRunning, turn]);
  useInterval(
    () => {
      if (hasNews.current && reading.refresh()) hasNews.current = false;
    },
    isRunning ? RECORDS_EVERY_MS : undefined,
  );
  return {
    ...{ reading, latest },
    progress: isRunning ? progress : undefined,
    error: isRunning ? error : undefined,
    follow: () => setTurn((before) => before + 1),
  };
}

/**
 * Follows the events of a crawl until it has finished. Reconnects after restarts of the platform. Rejects if the
 * platform refuses the request.
 */
async function follow(
  path: string,
  signal: AbortSignal,
  take: (event: string, data: Record<string, unknown>) => void,
): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const { event, data } of eventsOf(path, signal)) {
        if (data !== "") take(event, JSON.parse(data));
        if (event === "finished") return;
      }
    } catch (error) {
      if (error instanceof RestError && error.status >= 400 && error.status < 500) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS));
    if (signal.aborted) return;
    // Events may have been missed while there was no stream, so the caller must read the crawl again.
    take("missed", {});
  }
}
