/** Estimates the memory of a value that an app's process sent. */

/** Bytes of a value, a key or an element, without its content. */
const EACH = 16;

export function weightOf(value: unknown): number {
  if (typeof value === "string") return EACH + 2 * value.length;
  if (typeof value !== "object" || value === null) return EACH;
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return EACH + value.byteLength;
  // Loops instead of calling Object.values(), which would create an array for every pair of headers.
  if (Array.isArray(value)) return value.reduce(plusElement, EACH);
  let bytes = EACH;
  for (const name in value) bytes += EACH + weightOf((value as Record<string, unknown>)[name]);
  return bytes;
}

const plusElement = (bytes: number, element: unknown) => bytes + EACH + weightOf(element);
