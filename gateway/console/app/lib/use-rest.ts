/** Reads from the REST API for a component, and keeps what it shows fresh. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ask, asRefusal, type RestAnswer, type RestError, type ResultInfo } from "./rest.ts";

export interface Reading<T> {
  /** The last good answer. It stays while a newer one is on its way, and when that fails. */
  value: T | undefined;
  info: ResultInfo;
  error: RestError | undefined;
  /**
   * True once the first response has arrived. Content below a list appears only then, so that the list does not move
   * it.
   */
  hasAnswered: boolean;
  /** Reads again now, and gives a read up that is on its way. */
  reload(): void;
  /** Reads again unless a read is on its way, and returns whether it does. For what calls at an interval. */
  refresh(): boolean;
}

/** Reads a path below /v4, and again at this interval. An undefined path reads nothing. */
export function useRest<T>(path: string | undefined, everyMs?: number): Reading<T> {
  return useReading<T>(path, (signal) => ask<T>({ path: path ?? "" }, signal), everyMs);
}

/** Loads something that takes several requests, whenever the key changes; without a key nothing. */
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
    // An answer may take longer than the interval: given up at each call, it would never be shown.
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

/** Calls back at this interval while the page is visible, and when it becomes visible. */
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
