/** What something that an app's process said takes in memory, more or less. */

/** Of a value, a key or an element beside what is in it. */
const EACH = 16;

export function weightOf(value: unknown): number {
  if (typeof value === "string") return EACH + 2 * value.length;
  if (typeof value !== "object" || value === null) return EACH;
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return EACH + value.byteLength;
  let bytes = EACH;
  for (const inner of Object.values(value)) bytes += EACH + weightOf(inner);
  return bytes;
}
