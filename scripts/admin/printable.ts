/** Escapes stored text, which anybody may have written, so that it cannot control the terminal that shows it. */

/** Control characters (C0, DEL, C1), line separators, and characters that reverse the direction of text. */
const STEERING = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/** Returns one line in which each of these characters is written as JSON writes it: `\u001b`. */
export const printable = (text: string): string => text.replaceAll(STEERING, escaped);

/** The same for text of several lines. */
export const printableLines = (text: string): string => text.split("\n").map(printable).join("\n");

const escaped = (character: string) =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
