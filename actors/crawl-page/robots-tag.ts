/** Reads `X-Robots-Tag`: what a server says about indexing and following, to everyone or to one crawler. */

/** Directives with a value after a colon, which are no crawler's name. */
const WITH_VALUE = new Set([
  "unavailable_after",
  "max-snippet",
  "max-image-preview",
  "max-video-preview",
]);

/** A name holds for the directives after it, up to the next name: several fields of the name arrive as one. */
export function readRobotsTag(
  header: string | null,
  productToken: string,
): { noindex: boolean; nofollow: boolean } {
  const said = { noindex: false, nofollow: false };
  let ours = true;
  for (const part of header?.toLowerCase().split(",") ?? []) {
    const [, name, rest = part] = /^\s*([\w.-]+)\s*:(.*)$/s.exec(part) ?? [];
    if (name !== undefined && WITH_VALUE.has(name)) continue;
    if (name !== undefined) ours = name === productToken.toLowerCase();
    const directive = rest.trim();
    if (!ours) continue;
    if (directive === "noindex" || directive === "none") said.noindex = true;
    if (directive === "nofollow" || directive === "none") said.nofollow = true;
  }
  return said;
}
