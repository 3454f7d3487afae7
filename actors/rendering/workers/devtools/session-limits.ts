/** Limits of a session in its worker. Tests use smaller ones. */
import {
  DEVTOOLS_MEMORY_BYTES_MAX,
  DEVTOOLS_MEMORY_CHECK_MS,
  DEVTOOLS_RENEW_MS,
  DEVTOOLS_SESSION_MS_MAX,
} from "../../../../schemas/rendering/devtools-limits.ts";

export interface SessionLimits {
  sessionMsMax: number;
  memoryBytesMax: number;
  /** Interval between checks of time and memory. */
  checkMs: number;
  renewMs: number;
}

export const SESSION_LIMITS: SessionLimits = {
  sessionMsMax: DEVTOOLS_SESSION_MS_MAX,
  memoryBytesMax: DEVTOOLS_MEMORY_BYTES_MAX,
  checkMs: DEVTOOLS_MEMORY_CHECK_MS,
  renewMs: DEVTOOLS_RENEW_MS,
};
