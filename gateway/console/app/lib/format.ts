/** Formats times, sizes and numbers for people. */

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["second", 60],
  ["minute", 60],
  ["hour", 24],
  ["day", 30],
  ["month", 12],
  ["year", Number.POSITIVE_INFINITY],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const absolute = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
const UNITS = ["bytes", "kB", "MB", "GB", "TB"];

/** "3 minutes ago", "in 2 days". */
export function relativeTime(at: number, now = Date.now()): string {
  let amount = Math.round((at - now) / 1_000);
  for (const [unit, size] of STEPS) {
    if (Math.abs(amount) < size) return relative.format(amount, unit);
    amount = Math.trunc(amount / size);
  }
  return relative.format(amount, "year");
}

export const absoluteTime = (at: number) => absolute.format(at);

export function formatBytes(bytes: number): string {
  let amount = bytes;
  let step = 0;
  for (; amount >= 1_000 && step < UNITS.length - 1; step++) amount /= 1_000;
  return `${step === 0 || amount >= 100 ? Math.round(amount) : amount.toFixed(1)} ${UNITS[step]}`;
}

export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 120_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  return `${Math.round(ms / 60_000)} min`;
}

export const formatNumber = (value: number) => value.toLocaleString("en");

/** "1 client", "3 clients". */
export const counted = (count: number, noun: string, nouns = `${noun}s`) =>
  `${formatNumber(count)} ${count === 1 ? noun : nouns}`;
