/** Functions that escape text, so that Markdown shows it unchanged, and put marks around it. */

/**
 * Escapes only characters that would be Markdown syntax at their position: `snake_case` and `1 < 2` stay as they are.
 */
export function escapeText(text: string): string {
  const tildes = text.indexOf("~") !== text.lastIndexOf("~");
  return text
    .replace(/[\\`*[\]]/g, "\\$&")
    .replace(/_+/g, escapeUnderscores)
    .replace(/<(?=[a-z/!?]|$)/gi, "\\<")
    .replace(/&(?=#?\w{1,32};)/g, "&amp;")
    .replace(tildes ? /~/g : /^~(?=~)/, "\\~")
    .replace(/^(?:[-+](?=\s|-|$)|#{1,6}(?=\s|$)|>|={2,}$)/, "\\$&")
    .replace(/^(\d{1,9})([.)])(?=\s|$)/, "$1\\$2");
}

/** Underscores between letters are no syntax, so they are not escaped. */
function escapeUnderscores(run: string, offset: number, text: string): string {
  const isWord = (character: string | undefined) =>
    character !== undefined && /[\p{L}\p{N}]/u.test(character);
  if (isWord(text[offset - 1]) && isWord(text[offset + run.length])) return run;
  return "\\_".repeat(run.length);
}

/** Puts marks directly around the text. White space and line breaks at its edges stay outside the marks. */
export function wrap(content: string, open: string, close = open): string {
  const text = content.trim();
  // One pair of marks cannot contain several paragraphs.
  if (text === "" || text.includes("\n\n")) return content;
  const start = content.length - content.trimStart().length;
  return content.slice(0, start) + open + text + close + content.slice(start + text.length);
}

export function codeSpan(text: string): string {
  const code = text.replace(/\r?\n|\r/g, " ");
  const runs = new Set(code.match(/`+/g));
  let fence = "`";
  while (runs.has(fence)) fence += "`";
  const space = /^`|`$|^ .*[^ ].* $/.test(code) ? " " : "";
  return fence + space + code + space + fence;
}

/** Writes a code block. Its fence is longer than any run of backticks in the code. */
export function codeBlock(text: string, language: string): string {
  const longest = (text.match(/`{3,}/g) ?? []).reduce(
    (most, { length }) => Math.max(most, length),
    2,
  );
  const fence = "`".repeat(longest + 1);
  const code = text.endsWith("\n") ? text : `${text}\n`;
  return `\n\n${fence}${language}\n${code}${fence}\n\n`;
}

export function linkTarget(address: string, title: string | null): string {
  const escaped = address.replace(/[<>()\\]/g, "\\$&").replace(/\s/g, "%20");
  const text = (title ?? "").replace(/\s+/g, " ").trim();
  return text === "" ? `(${escaped})` : `(${escaped} "${text.replace(/["\\]/g, "\\$&")}")`;
}

/** Indents all lines after the first, except blank lines. */
export function indent(text: string, columns: number): string {
  return text.replace(/\n(?=[^\n])/g, `\n${" ".repeat(columns)}`);
}
