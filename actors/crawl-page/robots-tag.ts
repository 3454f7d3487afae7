/** Reads `X-Robots-Tag`: what a server says about following a page's links, to everyone or to one crawler. */

/** Directives with a value after a colon, which are no crawler's name. */
const WITH_VALUE = new Set([
  "unavailable_after",
  "max-snippet",
  "max-image-preview",
  "max-video-preview",
]);

/** A name holds for the directives after it, up to the next name: several fields of the name arrive as one. */
export function saysNofollow(header: string | null, productToken: string): boolean {
  let ours = true;
  for (const part of header?.toLowerCase().split(",") ?? []) {
    const [, name, rest = part] = /^\s*([\w.-]+)\s*:(.*)$/s.exec(part) ?? [];
    if (name !== undefined && WITH_VALUE.has(name)) continue;
    if (name !== undefined) ours = name === productToken.toLowerCase();
    const directive = rest.trim();
    if (ours && (directive === "nofollow" || directive === "none")) return true;
  }
  return false;
}
