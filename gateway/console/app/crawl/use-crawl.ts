/** Follows one crawl live, and reads its records page by page. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { eventsOf, RestError } from "../lib/rest.ts";
import { type Reading, useInterval, useRest } from "../lib/use-rest.ts";
import type { WireCrawl, WireCrawlSummary } from "../lib/wire.ts";

/** Records carry their content, so they are not read for every page that comes in. */
const RECORDS_EVERY_MS = 1_500;
/** A stream that broke is opened again after this time. */
const RECONNECT_MS = 3_000;

type Progress = Pick<WireCrawlSummary, "status" | "total" | "finished" | "skipped">;

export interface FollowedCrawl {
  reading: Reading<WireCrawl>;
  /** Newer than the reading while the crawl runs. */
  progress: Progress | undefined;
  /** Addresses that came in last, the newest first. */
  latest: readonly string[];
}

const LATEST_MAX = 5;

export function useCrawl(path: string, query: string): FollowedCrawl {
  const reading = useRest<WireCrawl>(`${path}${query}`);
  const [progress, setProgress] = useState<Progress>();
  const [latest, setLatest] = useState<readonly string[]>([]);
  const hasNews = useRef(false);
  const isRunning = reading.value?.status === "running";
  const take = useCallback((event: string, data: Record<string, unknown>) => {
    hasNews.current = true;
    if (event === "page") {
      setLatest((before) => [String(data.url), ...before].slice(0, LATEST_MAX));
    } else if (event !== "missed") {
      setProgress((before) => ({ ...before, ...data }) as Progress);
    }
  }, []);
  useEffect(() => {
    if (!isRunning) return;
    const leaving = new AbortController();
    void follow(`${path}/events`, leaving.signal, take);
    return () => leaving.abort();
  }, [path, isRunning]);
  useInterval(
    () => {
      if (!hasNews.current) return;
      hasNews.current = false;
      reading.reload();
    },
    isRunning ? RECORDS_EVERY_MS : undefined,
  );
  return { reading, progress: isRunning ? progress : undefined, latest };
}

/** Follows until the crawl has finished, through restarts of the platform. */
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
      if (signal.aborted) return;
      if (error instanceof RestError && error.status === 404) return;
    }
    await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS));
    // Without a stream, the next reading has the news.
    take("missed", {});
  }
}
