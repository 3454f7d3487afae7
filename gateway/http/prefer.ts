/** Reads the header field Prefer (RFC 7240). */

/**
 * Quoted text, which may contain commas and semicolons. Text without a closing quote extends to the end of the field,
 * so the pattern reads no character twice.
 */
const QUOTED = /"(?:[^"\\]|\\.)*(?:"|$)/g;

/**
 * Returns true if the client prefers a response before the work is done. Node joins several fields of this name with
 * commas.
 */
export function prefersAsync(field: string | string[] | undefined): boolean {
  const text = [field ?? []].flat().join(",");
  return text
    .replaceAll(QUOTED, (quoted) => (quoted === '""' ? "" : "quoted"))
    .split(",")
    .some((preference) => /^\s*respond-async\s*(?:=\s*)?(?:;|$)/i.test(preference));
}
