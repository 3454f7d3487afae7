/** Reads the pause that a host asks for. */
import { HOST_AWAY_MS_MAX } from "../../../../schemas/crawl/limits.ts";

/**
 * Returns the pause of a 429 or 503 in milliseconds: `Retry-After` in seconds or as a date (RFC 9110, section
 * 10.2.3), or 0 without a valid value.
 */
export function awayMsOf(status: number, header: string | null, now: number): number | undefined {
  if (status !== 429 && status !== 503) return undefined;
  const ms = header === null ? undefined : read(header.trim(), now);
  return ms === undefined ? 0 : Math.max(1, Math.min(ms, HOST_AWAY_MS_MAX));
}

function read(text: string, now: number): number | undefined {
  if (/^\d+$/.test(text)) return Number(text) * 1_000;
  // A bare number is not a date, though Date.parse reads it as a year.
  const at = /[a-z]/i.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isFinite(at) ? at - now : undefined;
}
