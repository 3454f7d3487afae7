/** Loads something that takes several requests, with the same states as one request. */
import { useCallback, useEffect, useState } from "preact/hooks";
import { RestError } from "./rest.ts";
import type { Reading } from "./use-rest.ts";

interface Loaded<T> {
  of: string;
  value?: T;
  error?: RestError;
}

/** Loads again whenever the key changes; without a key it loads nothing. */
export function useLoaded<T>(
  key: string | undefined,
  load: (signal: AbortSignal) => Promise<T>,
): Reading<T> {
  const [shown, setShown] = useState<Loaded<T>>();
  const [turn, setTurn] = useState(0);
  const reload = useCallback(() => setTurn((before) => before + 1), []);
  useEffect(() => {
    if (key === undefined) return;
    const leaving = new AbortController();
    load(leaving.signal).then(
      (value) => !leaving.signal.aborted && setShown({ of: key, value }),
      (error: unknown) => {
        if (leaving.signal.aborted) return;
        const refusal =
          error instanceof RestError ? error : new RestError(0, [{ message: String(error) }]);
        setShown({ of: key, error: refusal });
      },
    );
    return () => leaving.abort();
  }, [key, turn]);
  const current = shown?.of === key ? shown : undefined;
  return {
    value: current?.value,
    error: current?.error,
    hasAnswered: shown !== undefined,
    isLoading: key !== undefined && !current,
    info: {},
    reload,
    path: undefined,
  };
}
