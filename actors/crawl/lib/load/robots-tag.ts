/** Reads `X-Robots-Tag`: whether a server wants a page's links followed and the page indexed, by everyone or by one crawler. */

/** Directives with a value after a colon, which are no crawler's name. */
const WITH_VALUE = new Set([
  "unavailable_after",
  "max-snippet",
  "max-image-preview",
  "max-video-preview",
]);

/** A name holds for the directives after it, up to the next name: several fields of the name arrive as one. */
export function robotsTag(
  header: string | null,
  productToken: string,
): { nofollow: boolean; noindex?: true } {
  const said = new Set<string>();
  let ours = true;
  for (const part of header?.toLowerCase().split(",") ?? []) {
    const [, name, rest = part] = /^\s*([\w.-]+)\s*:(.*)$/s.exec(part) ?? [];
    if (name !== undefined && WITH_VALUE.has(name)) continue;
    if (name !== undefined) ours = name === productToken.toLowerCase();
    if (ours) said.add(rest.trim());
  }
  return {
    nofollow: said.has("nofollow") || said.has("none"),
    ...((said.has("noindex") || said.has("none")) && { noindex: true }),
  };
}
