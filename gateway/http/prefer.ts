/** Reads the header field Prefer (RFC 7240). */

/** Quoted text, which may hold commas and semicolons. Without an end it goes to the end, so no character is read twice. */
const QUOTED = /"(?:[^"\\]|\\.)*(?:"|$)/g;

/** Whether the client prefers an answer before the work is done. Several fields come as one, joined by commas. */
export function prefersAsync(field: string | string[] | undefined): boolean {
  const text = [field ?? []].flat().join(",");
  return text
    .replaceAll(QUOTED, (quoted) => (quoted === '""' ? "" : "quoted"))
    .split(",")
    .some((preference) => /^\s*respond-async\s*(?:=\s*)?(?:;|$)/i.test(preference));
}
