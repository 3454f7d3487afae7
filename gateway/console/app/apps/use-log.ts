/** Follows the log of an app: what is there, then each line when it is printed. */
import { useEffect, useState } from "preact/hooks";
import { ask, RestError } from "../lib/rest.ts";
import type { WireAppLogLine } from "../lib/wire.ts";

/** Lines that are shown; older ones go. */
const LINES_MAX = 1_000;
const FIRST_LINES = 300;
/** How long the platform holds a request that has nothing to say yet. */
const WAIT_S = 20;
const AGAIN_MS = 3_000;

/** `path` is that of the log. While it is paused, nothing is asked. */
export function useLog(path: string, isPaused: boolean) {
  const [lines, setLines] = useState<WireAppLogLine[]>();
  const [error, setError] = useState<RestError>();
  useEffect(() => {
    if (isPaused) return;
    const leaving = new AbortController();
    const { signal } = leaving;
    let after = lines?.at(-1)?.id;
    const follow = async () => {
      while (!signal.aborted) {
        const query =
          after === undefined
            ? `limit=${FIRST_LINES}`
            : `after=${after}&limit=${FIRST_LINES}&wait_seconds=${WAIT_S}`;
        try {
          const { result } = await ask<WireAppLogLine[]>({ path: `${path}?${query}` }, signal);
          after = result.at(-1)?.id ?? after ?? 0;
          setError(undefined);
          setLines((before = []) => [...before, ...result].slice(-LINES_MAX));
        } catch (thrown) {
          if (signal.aborted) return;
          setError(
            thrown instanceof RestError ? thrown : new RestError(0, [{ message: String(thrown) }]),
          );
          await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
        }
      }
    };
    void follow();
    return () => leaving.abort();
  }, [path, isPaused]);
  return { lines, error, clear: () => setLines((before) => before?.slice(-1)) };
}
