/**
 * Prefetches the next pieces of an answer while the current piece is being sent. Small pieces are read completely,
 * large pieces in chunks.
 */

/** A piece of an answer: bytes in memory, or a blob of a known size. */
export type Piece = Uint8Array | { bytes: number; read(): AsyncIterable<Uint8Array> };

/**
 * Yields the bytes of all pieces in order. Prefetches pieces of at most `wholeMax` bytes each, until it holds
 * `bytesMax` bytes or `countMax` pieces. A larger piece is read only when all earlier pieces are sent. Stops reading
 * when the consumer stops.
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
  // The consumer awaits this promise later, or never. The empty handler prevents an unhandled rejection.
  whole.catch(() => {});
  return { piece, whole };
}

function heldBytes(piece: Piece, wholeMax: number): number {
  if (piece instanceof Uint8Array) return piece.length;
  return piece.bytes > wholeMax ? 0 : piece.bytes;
}
