/** Reads data from the REST API for a component, and keeps the shown data up to date. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ask, asRefusal, type RestAnswer, type RestError, type ResultInfo } from "./rest.ts";

export interface Reading<T> {
  /** The last successful response for this path. Stays while a newer request runs, and also if that request fails. */
  value: T | undefined;
  info: ResultInfo;
  error: RestError | undefined;
  /**
   * True once the first read has succeeded or failed. Content below a list appears only then, so that the list does
   * not move the content.
   */
  hasAnswered: boolean;
  /** Reads again immediately, and cancels a running read. */
  reload(): void;
  /** Reads again, but only if no read is running. Returns true if it starts a read. Made for calls at an interval. */
  refresh(): boolean;
}

/** Reads a path below /v4, and repeats the read every `everyMs`. Reads nothing if the path is undefined. */
export function useRest<T>(path: string | undefined, everyMs?: number): Reading<T> {
  return useReading<T>(path, (signal) => ask<T>({ path: path ?? "" }, signal), everyMs);
}

/** Loads data that needs several requests, and loads it again when the key changes. Loads nothing without a key. */
export function useLoaded<T>(
  key: string | undefined,
  load: (signal: AbortSignal) => Promise<T>,
): Reading<T> {
  return useReading(key, async (signal) => ({ result: await load(signal), info: {} }));
}

function useReading<T>(
  key: string | undefined,
  load: (signal: AbortSignal) => Promise<RestAnswer<T>>,
  everyMs?: number,
): Reading<T> {
  type Shown = Pick<Reading<T>, "value" | "info" | "error"> & { of: string | undefined };
  const nothing: Shown = { of: undefined, value: undefined, info: {}, error: undefined };
  const [shown, setShown] = useState(nothing);
  const [turn, setTurn] = useState(0);
  const isReading = useRef(false);
  const reload = useCallback(() => setTurn((before) => before + 1), []);
  const refresh = useCallback(() => {
    // Does not cancel a running read. If a response took longer than the interval, it would otherwise never be shown.
    if (isReading.current) return false;
    reload();
    return true;
  }, []);
  useEffect(() => {
    if (key === undefined) return;
    const leaving = new AbortController();
    isReading.current = true;
    const show = (next: (before: Shown) => Shown) => {
      if (leaving.signal.aborted) return;
      isReading.current = false;
      setShown(next);
    };
    load(leaving.signal).then(
      ({ result: value, info }) => show(() => ({ of: key, value, info, error: undefined })),
      (thrown: unknown) =>
        show((before) => ({
          ...(before.of === key ? before : nothing),
          ...{ of: key, error: asRefusal(thrown) },
        })),
    );
    return () => {
      leaving.abort();
      isReading.current = false;
    };
  }, [key, turn]);
  useInterval(refresh, key === undefined ? undefined : everyMs);
  const { value, info, error } = shown.of === key ? shown : nothing;
  return { value, info, error, hasAnswered: shown.of !== undefined, reload, refresh };
}

/** Calls the function at this interval while the page is visible, and when the page becomes visible again. */
export function useInterval(callback: () => void, everyMs: number | undefined): void {
  const latest = useRef(callback);
  latest.current = callback;
  useEffect(() => {
    if (everyMs === undefined) return;
    const call = () => {
      if (document.visibilityState === "visible") latest.current();
    };
    const timer = setInterval(call, everyMs);
    document.addEventListener("visibilitychange", call);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", call);
    };
  }, [everyMs]);
}
