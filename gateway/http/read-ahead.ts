/** Reads what is next while what is now is on its way: small things whole, large ones piece by piece. */

/** Bytes as they are, or so many that are to be read. */
export type Piece = Uint8Array | { bytes: number; read(): AsyncIterable<Uint8Array> };

/**
 * The bytes of all pieces, in order. Pieces of at most `wholeMax` bytes are read before their turn comes, `bytesMax` of
 * them and `countMax` at most; one that is larger is read when its turn comes. Stops reading when nobody takes any more.
 */
export async function* readAhead(
  pieces: AsyncIterator<Piece, void, undefined>,
  { wholeMax, bytesMax, countMax }: { wholeMax: number; bytesMax: number; countMax: number },
): AsyncGenerator<Uint8Array, void, undefined> {
  const ahead: { piece: Piece; whole?: Promise<Uint8Array> }[] = [];
  let bytes = 0;
  let ended = false;
  try {
    for (;;) {
      while (!ended && ahead.length < countMax && (ahead.length === 0 || bytes < bytesMax)) {
        const { done, value: piece } = await pieces.next();
        if (done) ended = true;
        else {
          ahead.push(
            piece instanceof Uint8Array || piece.bytes > wholeMax ? { piece } : begun(piece),
          );
          bytes += heldBytes(piece, wholeMax);
        }
      }
      const next = ahead.shift();
      if (!next) return;
      const { piece, whole } = next;
      if (piece instanceof Uint8Array) yield piece;
      else if (whole) yield await whole;
      else yield* piece.read();
      bytes -= heldBytes(piece, wholeMax);
    }
  } finally {
    await pieces.return?.();
  }
}

function begun(piece: Exclude<Piece, Uint8Array>) {
  const whole = Array.fromAsync(piece.read()).then((chunks) => Buffer.concat(chunks));
  // It is looked at when its turn comes, or never.
  whole.catch(() => {});
  return { piece, whole };
}

function heldBytes(piece: Piece, wholeMax: number): number {
  if (piece instanceof Uint8Array) return piece.length;
  return piece.bytes > wholeMax ? 0 : piece.bytes;
}
