/** Limits the bytes that the files of a folder take while other processes write them. */
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { entriesOf, statOf } from "../cache/cache-files.ts";

const LOOK_MS = 1_000;
/** The pause after a look is this many times as long as the look, which takes longer in a larger folder, within bounds. */
const PAUSE_FACTOR = 4;
const PAUSE_MS_MAX = 5_000;
/** The unit of `blocks` in the status of a file. */
const BLOCK_BYTES = 512;

/**
 * Runs work that writes into a folder. Its signal aborts with the error `tooLarge` when the files of the folder take
 * more than `bytesMax` bytes. The folder is looked at once a second, and less often if it has very many files. So the
 * files may take as much more as the processes write in a few seconds.
 */
export async function withinBytes<T>(
  { folder, bytesMax, tooLarge }: { folder: string; bytesMax: number; tooLarge: () => Error },
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const ended = new AbortController();
  const watched = whenPast(folder, bytesMax, ended.signal).then(
    (isPast) => isPast && over.abort(tooLarge()),
    (error: unknown) => over.abort(error),
  );
  try {
    return await work(AbortSignal.any([signal, over.signal]));
  } finally {
    ended.abort();
    await watched;
  }
}

/** Resolves to true when the files take more bytes, and to false when `ended` aborts before. */
async function whenPast(folder: string, bytesMax: number, ended: AbortSignal): Promise<boolean> {
  while (!ended.aborted) {
    const startedAt = performance.now();
    if ((await bytesIn(folder, bytesMax, ended)) > bytesMax) return true;
    const pauseMs = PAUSE_FACTOR * (performance.now() - startedAt);
    await pause(Math.min(Math.max(LOOK_MS, pauseMs), PAUSE_MS_MAX), undefined, {
      signal: ended,
    }).catch(() => {});
  }
  return false;
}

/**
 * Returns the bytes that files take on disk, where a small file takes a whole block. Counts no more past `bytesMax`, or
 * when `ended` has aborted.
 */
async function bytesIn(folder: string, bytesMax: number, ended: AbortSignal): Promise<number> {
  let bytes = 0;
  const folders = [folder];
  for (let at = folders.pop(); at !== undefined; at = folders.pop()) {
    for (const name of await entriesOf(at)) {
      const path = join(at, name);
      const stats = await statOf(path);
      if (stats?.isDirectory()) folders.push(path);
      else if (stats) bytes += Math.max(stats.size, stats.blocks * BLOCK_BYTES);
      if (bytes > bytesMax || ended.aborted) return bytes;
    }
  }
  return bytes;
}
