/** Describes a value for an error message. */
export function describe(value: unknown): string {
  if (value === null || typeof value !== "object") return String(value);
  return `a ${value.constructor?.name ?? "bare object"}`;
}
