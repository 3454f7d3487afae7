/** Reads text of others that should be JSON: whoever parses what comes of it finds `undefined` where it was none. */
export function parseJson(text: string, revive?: Parameters<typeof JSON.parse>[1]): unknown {
  try {
    return JSON.parse(text, revive);
  } catch {
    return undefined;
  }
}
