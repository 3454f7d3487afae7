/**
 * Parses text from outside as JSON. Returns `undefined` if the text is no JSON; the caller's schema then refuses
 * `undefined`.
 */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
