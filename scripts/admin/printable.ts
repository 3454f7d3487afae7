/**
 * Escapes stored text before it is printed. Anybody may have written the text, and it must not control the terminal.
 */

/** Control characters (C0, DEL, C1), line separators, and characters that reverse the direction of text. */
const STEERING = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/** Returns the text as one line. Control characters are escaped as in JSON: `\u001b`. */
export const printable = (text: string): string => text.replaceAll(STEERING, escaped);

/** Escapes control characters like `printable`, but keeps line breaks. */
export const printableLines = (text: string): string => text.split("\n").map(printable).join("\n");

const escaped = (character: string) =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
