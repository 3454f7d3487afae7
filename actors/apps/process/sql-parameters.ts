/**
 * Counts the parameters of a statement. Without this check, SQLite silently binds NULL to parameters without a value.
 */

/** The parts of SQL in which a question mark is no parameter: strings, quoted names, comments, plain names. */
const OTHER = [
  /'[^']*(?:''[^']*)*'/,
  /"[^"]*(?:""[^"]*)*"/,
  /`[^`]*(?:``[^`]*)*`/,
  /\[[^\]]*\]/,
  /--[^\n]*/,
  /\/\*[\s\S]*?(?:\*\/|$)/,
  /[\p{L}_\u{80}-\u{10ffff}][\w$\u{80}-\u{10ffff}]*/u,
]
  .map(({ source }) => source)
  .join("|");
const TOKEN = new RegExp(
  `${OTHER}|\\?(?<number>\\d*)|(?<name>[:@$][\\w$\\u{80}-\\u{10ffff}]+)`,
  "gu",
);

/**
 * Counts parameters as SQLite does: `?` gets the number after the largest one so far, and `?NNN` states its number.
 */
export function parameterCount(sql: string): number {
  let count = 0;
  for (const { groups } of sql.matchAll(TOKEN)) {
    if (groups?.name !== undefined) {
      throw new TypeError(`Cannot bind ${groups.name}: values have no names here, expected ?`);
    }
    if (groups?.number === undefined) continue;
    count = groups.number === "" ? count + 1 : Math.max(count, Number(groups.number));
  }
  return count;
}
