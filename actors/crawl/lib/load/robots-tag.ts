/** Reads `X-Robots-Tag`: whether all crawlers, or ours, may follow a page's links and index the page. */

/** Directives that have a value after a colon. Without this list their names would be taken for names of crawlers. */
const WITH_VALUE = new Set([
  "unavailable_after",
  "max-snippet",
  "max-image-preview",
  "max-video-preview",
]);

/** A crawler's name applies to the directives after it, up to the next name. Repeated fields arrive as one. */
export function robotsTag(
  header: string | null,
  productToken: string,
): { nofollow: boolean; noindex?: true } {
  const directives = new Set<string>();
  let ours = true;
  for (const part of header?.toLowerCase().split(",") ?? []) {
    const [, name, rest = part] = /^\s*([\w.-]+)\s*:(.*)$/s.exec(part) ?? [];
    if (name !== undefined && WITH_VALUE.has(name)) continue;
    if (name !== undefined) ours = name === productToken.toLowerCase();
    if (ours) directives.add(rest.trim());
  }
  return {
    nofollow: directives.has("nofollow") || directives.has("none"),
    ...((directives.has("noindex") || directives.has("none")) && { noindex: true }),
  };
}
