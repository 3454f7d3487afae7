/** Reads from the REST API for a component, and keeps what it shows fresh. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ask, RestError, type ResultInfo } from "./rest.ts";

export interface Reading<T> {
  /** The last good answer. It stays while a newer one is on its way, and when that fails. */
  value: T | undefined;
  info: ResultInfo;
  error: RestError | undefined;
  isLoading: boolean;
  /**
   * True once the first response has arrived. Content below a list appears only then, so that the list does not move
   * it.
   */
  hasAnswered: boolean;
  /** Reads again now. */
  reload(): void;
  path: string | undefined;
}

interface Options {
  /** Reads again after this many milliseconds, while the page is visible. */
  everyMs?: number | undefined;
}

/** Reads a path below /v4. Without a path it reads nothing. */
export function useRest<T>(path: string | undefined, { everyMs }: Options = {}): Reading<T> {
  const [shown, setShown] = useState<
    Omit<Reading<T>, "reload" | "path" | "hasAnswered"> & { of?: string | undefined }
  >({
    value: undefined,
    info: {},
    error: undefined,
    isLoading: true,
  });
  const [turn, setTurn] = useState(0);
  const reload = useCallback(() => setTurn((before) => before + 1), []);
  useEffect(() => {
    if (path === undefined) return;
    const leaving = new AbortController();
    ask<T>({ path }, leaving.signal).then(
      ({ result: value, info }) =>
        setShown({ value, info, error: undefined, isLoading: false, of: path }),
      (error: unknown) => {
        if (leaving.signal.aborted) return;
        const refusal =
          error instanceof RestError ? error : new RestError(0, [{ message: String(error) }]);
        setShown((before) => ({
          ...(before.of === path ? before : { value: undefined, info: {} }),
          error: refusal,
          isLoading: false,
          of: path,
        }));
      },
    );
    return () => leaving.abort();
  }, [path, turn]);
  useInterval(reload, path === undefined ? undefined : everyMs);
  const isStale = shown.of !== path;
  return {
    value: isStale ? undefined : shown.value,
    info: shown.info,
    error: isStale ? undefined : shown.error,
    hasAnswered: !shown.isLoading,
    isLoading: path !== undefined && (isStale || shown.isLoading),
    reload,
    path,
  };
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
