/** Cuts bytes into pieces of one size, whatever the sizes of the incoming pieces. */

/** Yields pieces of `size` bytes; only the last may be smaller. Yields no piece if there are no bytes. */
export async function* chunksOf(
  content: Uint8Array | AsyncIterable<Uint8Array>,
  size: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  let kept: Uint8Array[] = [];
  let bytes = 0;
  for await (const given of content instanceof Uint8Array ? [content] : content) {
    for (let rest = given; rest.length > 0; ) {
      const piece = rest.subarray(0, size - bytes);
      rest = rest.subarray(piece.length);
      // Copies the piece, because the source may reuse its memory while readers still keep the pieces.
      kept.push(content instanceof Uint8Array ? piece : Uint8Array.from(piece));
      bytes += piece.length;
      if (bytes < size) continue;
      yield join(kept);
      kept = [];
      bytes = 0;
    }
  }
  if (bytes > 0) yield join(kept);
}

function join(pieces: readonly Uint8Array[]): Uint8Array {
  const [first] = pieces;
  return pieces.length === 1 && first ? first : Buffer.concat(pieces);
}
