/**
 * Parses foreign text as JSON. Returns `undefined` for text that is no JSON, which the caller's schema then refuses.
 */
export function parseJson(text: string, revive?: Parameters<typeof JSON.parse>[1]): unknown {
  try {
    return JSON.parse(text, revive);
  } catch {
    return undefined;
  }
}
