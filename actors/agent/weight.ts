/** What something that an app's process said takes in memory, more or less. */

/** Of a value, a key or an element beside what is in it. */
const EACH = 16;

export function weightOf(value: unknown): number {
  if (typeof value === "string") return EACH + 2 * value.length;
  if (typeof value !== "object" || value === null) return EACH;
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return EACH + value.byteLength;
  let bytes = EACH;
  // Without the list of its values, which would be made for every pair of headers.
  for (const name in value) bytes += EACH + weightOf((value as Record<string, unknown>)[name]);
  return bytes;
}
