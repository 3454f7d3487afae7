/** Why a process of an app ended, as those hear it whose turns were under way in it. */
import { APP_HEAP_MB_MAX } from "../../../../schemas/apps/limits.ts";

/** The process ended by itself or at a limit. Its running turns are tried again elsewhere. */
export class ProcessEnded extends Error {
  /** The bound at which it was ended, of time or of memory: what it was at would reach that again. */
  readonly bound: string | undefined;
  /** The last output of Node, only for the platform's log, because it contains paths of this host. */
  readonly lastWords: string;
  /** One turn alone was under way, so that the bound was reached by nothing else. */
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

/** No fault of the app: something outside has removed it. */
export const FOLDER_GONE = "its folder was removed";

const HEAP_FULL = `its objects take more than ${APP_HEAP_MB_MAX} MB of memory`;

/** The bound of the heap, which V8 keeps itself: it says so above a backtrace of its own. */
export const heapBoundOf = (lastWords: string): string | undefined =>
  /heap out of memory|Reached heap limit/.test(lastWords) ? HEAP_FULL : undefined;
