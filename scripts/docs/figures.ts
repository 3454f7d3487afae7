/** Formats numbers for people. */

/** One row of the page of limits. */
export type LimitRow = readonly [what: string, most: string, past: string];

/** Formats a number with a comma after every three digits. */
export function count(value: number): string {
  return value.toLocaleString("en-US");
}

/** Formats bytes in the largest unit that gives a whole number, such as "50 MiB" or "720 kB". */
export function bytes(value: number): string {
  const units = [
    [1024 ** 3, "GiB"],
    [1_000_000_000, "GB"],
    [1024 ** 2, "MiB"],
    [1_000_000, "MB"],
    [1024, "KiB"],
    [1_000, "kB"],
  ] as const;
  const [size, unit] = units.find(([size]) => value % size === 0) ?? [1, "bytes"];
  return `${count(value / size)} ${unit}`;
}

/** Formats a time in the largest unit that gives a whole number above one, such as "15 minutes" or "0.5 s". */
export function time(ms: number): string {
  const units = [
    [86_400_000, "days"],
    [3_600_000, "hours"],
    [60_000, "minutes"],
  ] as const;
  const [size, unit] = units.find(([size]) => ms % size === 0 && ms > size) ?? [1_000, "s"];
  return `${count(ms / size)} ${unit}`;
}
