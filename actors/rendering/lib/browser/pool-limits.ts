/** What a browser pool is bounded by; tests make them small. */
import * as limits from "../../../../schemas/limits.ts";

export interface PoolLimits {
  contextsWarm: number;
  contextsMax: number;
  ageMsMax: number;
  memoryBytesMax: number;
  memoryBytesKill: number;
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
  startMs: limits.BROWSER_START_MS,
  retryMs: limits.BROWSER_RETRY_MS,
  retryMsMax: limits.BROWSER_RETRY_MS_MAX,
  pingMs: limits.BROWSER_PING_MS,
  pingTimeoutMs: limits.BROWSER_PING_TIMEOUT_MS,
  contextCloseMs: limits.CONTEXT_CLOSE_MS,
  drainMs: limits.BROWSER_DRAIN_MS,
};
