/**
 * The stored form of the lines of neighbouring records: one text, in which each line begins with the number of
 * characters that it shares with the line before. The addresses of one site begin alike.
 */

/** No line may contain a line feed. */
export function packLines(lines: readonly string[]): string {
  let before = "";
  const packed = lines.map((line) => {
    const shared = sharedChars(before, line);
    before = line;
    return `${shared} ${line.slice(shared)}`;
  });
  return packed.join("\n");
}

/** Returns the lines; with `count`, only the first ones. */
export function unpackLines(text: string, count?: number): string[] {
  let before = "";
  return text.split("\n", count).map((packed) => {
    const end = packed.indexOf(" ");
    before = before.slice(0, Number(packed.slice(0, end))) + packed.slice(end + 1);
    return before;
  });
}

function sharedChars(one: string, other: string): number {
  const most = Math.min(one.length, other.length);
  let shared = 0;
  while (shared < most && one.charCodeAt(shared) === other.charCodeAt(shared)) shared += 1;
  return shared;
}
