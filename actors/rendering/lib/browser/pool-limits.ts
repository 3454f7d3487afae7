/** Limits of a browser pool. Tests use smaller ones. */
import { BROWSER_PING_TIMEOUT_MS } from "../../../../schemas/limits.ts";
import {
  BROWSER_IDLE_SECONDS,
  RENDERER_MEMORY_BYTES_MAX,
} from "../../../../schemas/rendering/limits.ts";

/**
 * Interval between memory checks of renderers in use. A page can allocate one or two gigabytes in this time. A check
 * takes about 5 ms.
 */
const RENDERER_CHECK_MS = 1_000;

/** Contexts that are prepared in advance: as many as the tasks that one worker starts together. */
const CONTEXTS_WARM = 4;
/** A browser is replaced after this many contexts or this time, so that leaks stay small. A new browser takes 0.1 to 0.3 s. */
const BROWSER_CONTEXTS_MAX = 300;
const BROWSER_AGE_MS_MAX = 30 * 60_000;
/** Memory of the whole process tree at which a browser is replaced: five times that of a fresh one with four pages. */
const BROWSER_MEMORY_BYTES_MAX = 1_500_000_000;
/**
 * Memory at which a browser's largest renderers are killed, or the browser itself if they do not hold the memory, before
 * the machine has no memory left.
 */
const BROWSER_MEMORY_BYTES_KILL = 4_000_000_000;
/** Timeout for the start of a browser. It usually takes 0.1 s, on a loaded machine longer. */
const BROWSER_START_MS = 20_000;
/** Delays between failed starts. Each is twice the one before, from the first to the maximum. */
const BROWSER_RETRY_MS = 250;
const BROWSER_RETRY_MS_MAX = 15_000;
/** Interval between two pings of a browser. */
const BROWSER_PING_MS = 5_000;
/**
 * Timeout for closing a context. Closing takes 10 ms even if its page hangs. If it takes longer than this, the
 * browser itself hangs.
 */
const CONTEXT_CLOSE_MS = 2_000;
/** A browser that is being replaced may finish its tasks for this long. No task lasts longer. */
const BROWSER_DRAIN_MS = 10 * 60_000;

export interface PoolLimits {
  contextsWarm: number;
  contextsMax: number;
  ageMsMax: number;
  memoryBytesMax: number;
  memoryBytesKill: number;
  rendererBytesMax: number;
  rendererCheckMs: number;
  /** A browser without a task is closed after this time; with 0 it is never closed. */
  idleMs: number;
  startMs: number;
  retryMs: number;
  retryMsMax: number;
  pingMs: number;
  pingTimeoutMs: number;
  contextCloseMs: number;
  drainMs: number;
}

export const POOL_LIMITS: PoolLimits = {
  contextsWarm: CONTEXTS_WARM,
  contextsMax: BROWSER_CONTEXTS_MAX,
  ageMsMax: BROWSER_AGE_MS_MAX,
  memoryBytesMax: BROWSER_MEMORY_BYTES_MAX,
  memoryBytesKill: BROWSER_MEMORY_BYTES_KILL,
  rendererBytesMax: RENDERER_MEMORY_BYTES_MAX,
  rendererCheckMs: RENDERER_CHECK_MS,
  idleMs: BROWSER_IDLE_SECONDS * 1_000,
  startMs: BROWSER_START_MS,
  retryMs: BROWSER_RETRY_MS,
  retryMsMax: BROWSER_RETRY_MS_MAX,
  pingMs: BROWSER_PING_MS,
  pingTimeoutMs: BROWSER_PING_TIMEOUT_MS,
  contextCloseMs: CONTEXT_CLOSE_MS,
  drainMs: BROWSER_DRAIN_MS,
};
