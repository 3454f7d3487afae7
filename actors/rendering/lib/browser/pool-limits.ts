/** What a browser pool is bounded by; tests make them small. */
import * as limits from "../../../../schemas/limits.ts";
import {
  BROWSER_IDLE_SECONDS,
  RENDERER_CHECK_MS,
  RENDERER_MEMORY_BYTES_MAX,
} from "../../../../schemas/rendering/render-limits.ts";

export interface PoolLimits {
  contextsWarm: number;
  contextsMax: number;
  ageMsMax: number;
  memoryBytesMax: number;
  memoryBytesKill: number;
  rendererBytesMax: number;
  rendererCheckMs: number;
  /** A browser without a task is ended after this; 0: it stays. */
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
  contextsWarm: limits.CONTEXTS_WARM,
  contextsMax: limits.BROWSER_CONTEXTS_MAX,
  ageMsMax: limits.BROWSER_AGE_MS_MAX,
  memoryBytesMax: limits.BROWSER_MEMORY_BYTES_MAX,
  memoryBytesKill: limits.BROWSER_MEMORY_BYTES_KILL,
  rendererBytesMax: RENDERER_MEMORY_BYTES_MAX,
  rendererCheckMs: RENDERER_CHECK_MS,
  idleMs: BROWSER_IDLE_SECONDS * 1_000,
  startMs: limits.BROWSER_START_MS,
  retryMs: limits.BROWSER_RETRY_MS,
  retryMsMax: limits.BROWSER_RETRY_MS_MAX,
  pingMs: limits.BROWSER_PING_MS,
  pingTimeoutMs: limits.BROWSER_PING_TIMEOUT_MS,
  contextCloseMs: limits.CONTEXT_CLOSE_MS,
  drainMs: limits.BROWSER_DRAIN_MS,
};
