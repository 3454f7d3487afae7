/** The error of turns whose process ended while they ran. */
import { APP_HEAP_MB_MAX } from "../../../../schemas/apps/limits.ts";

/**
 * The process crashed or was killed at a limit. Its running turns are attempted again in another process, unless they
 * are the likely cause.
 */
export class ProcessEnded extends Error {
  /** The limit of time or memory at which the process was killed. The same work would reach the limit again. */
  readonly bound: string | undefined;
  /** The last output of Node, only for the platform's log, because it contains paths of this host. */
  readonly lastWords: string;
  /** True if only one turn ran, so that this turn reached the limit. */
  readonly isOfOneTurn: boolean;

  constructor(
    why: string,
    {
      bound,
      lastWords = "",
      isOfOneTurn = false,
    }: { bound?: string | undefined; lastWords?: string; isOfOneTurn?: boolean } = {},
  ) {
    super(`The process of the app has ended: ${why}`);
    this.bound = bound;
    this.lastWords = lastWords;
    this.isOfOneTurn = isOfOneTurn;
  }
}

/** The end of the process is not a fault of the app: another program removed the folder. */
export const FOLDER_GONE = "its folder was removed";

const HEAP_FULL = `its objects take more than ${APP_HEAP_MB_MAX} MB of memory`;

/**
 * Returns the heap limit if V8 ended the process because of it. V8 then prints one of these texts above its
 * backtrace.
 */
export const heapBoundOf = (lastWords: string): string | undefined =>
  /heap out of memory|Reached heap limit/.test(lastWords) ? HEAP_FULL : undefined;
