/** Matches a path against a robots.txt pattern: `*` is any characters, a `$` at the end is the path's end. */

/**
 * RFC 9309, section 2.2.3. A pattern matches from the path's start; without `$` it may end before the path does.
 * Between two stars the first place that fits is always as good as any later one, so there is nothing to come back
 * to, and each piece is searched by Knuth, Morris and Pratt: the time is pattern plus path, whatever they hold.
 */
export function matchesPathPattern(path: string, pattern: string): boolean {
  const anchored = pattern.endsWith("$");
  const pieces = (anchored ? pattern.slice(0, -1) : pattern).split("*");
  const [first = "", ...rest] = pieces;
  if (!path.startsWith(first)) return false;
  const last = rest.pop();
  if (last === undefined) return !anchored || path.length === first.length;
  let position = first.length;
  for (const piece of rest) {
    const found = indexOfPiece(path, piece, position);
    if (found < 0) return false;
    position = found + piece.length;
  }
  if (anchored) return path.length - last.length >= position && path.endsWith(last);
  return indexOfPiece(path, last, position) >= 0;
}

function indexOfPiece(text: string, piece: string, from: number): number {
  if (piece.length <= 1) return text.indexOf(piece, from);
  if (text.length - from < piece.length) return -1;
  const borders = bordersOf(piece);
  let matched = 0;
  for (let index = from; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    while (matched > 0 && piece.charCodeAt(matched) !== code) matched = borders[matched - 1] ?? 0;
    if (piece.charCodeAt(matched) === code) matched += 1;
    if (matched === piece.length) return index - matched + 1;
  }
  return -1;
}

/** For each prefix of the piece, how much of its end is again its beginning. */
function bordersOf(piece: string): Uint32Array {
  const borders = new Uint32Array(piece.length);
  let border = 0;
  for (let index = 1; index < piece.length; index += 1) {
    const code = piece.charCodeAt(index);
    while (border > 0 && piece.charCodeAt(border) !== code) border = borders[border - 1] ?? 0;
    if (piece.charCodeAt(border) === code) border += 1;
    borders[index] = border;
  }
  return borders;
}
