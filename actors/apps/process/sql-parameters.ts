/** How many values a statement takes. SQLite would bind NULL, in silence, to what gets none. */

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

/** SQLite: the number of `?` is one more than the largest before it, `?NNN` says its own. */
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
