/**
 * Bytes that are mostly zeros, as those between the zeros: a record of a small turn takes 10 µs so, and 74 with a
 * compressor, nearly all of them to set that up. In words of four bytes: first how many bytes there are, then runs of
 * zero words and of words as they are, each with the numbers of both before it.
 */

const WORD_BYTES = 4;
const RUN_WORDS_MAX = 0xffff;

/** Undefined where the packed bytes would be more than `bytesMax`. Of whole words, and fewer bytes than 2^32. */
export function packZeroRuns(bytes: Uint8Array, bytesMax: number): Uint8Array | undefined {
  const words = wordsOf(bytes);
  const packed = new Uint32Array(bytesMax / WORD_BYTES);
  packed[0] = bytes.length;
  let to = 1;
  for (let at = 0; at < words.length; ) {
    const from = endOfRun(words, at, true);
    const end = endOfRun(words, from, false);
    if (to + 1 + end - from > packed.length) return undefined;
    packed[to] = ((from - at) << 16) | (end - from);
    packed.set(words.subarray(from, end), to + 1);
    to += 1 + end - from;
    at = end;
  }
  return new Uint8Array(packed.buffer, 0, to * WORD_BYTES);
}

/** Restores the input of `packZeroRuns`. Throws a RangeError if it exceeds `bytesMax` or is cut off. */
export function unpackZeroRuns(packed: Uint8Array, bytesMax: number): Buffer {
  const from = wordsOf(packed);
  const length = from[0] ?? 0;
  if (length > bytesMax) throw new RangeError(`Cannot unpack ${length} bytes: at most ${bytesMax}`);
  const bytes = Buffer.alloc(length);
  const words = wordsOf(bytes);
  let to = 0;
  for (let at = 1; at < from.length; ) {
    const run = from[at] ?? 0;
    const end = at + 1 + (run & RUN_WORDS_MAX);
    to += run >>> 16;
    if (end > from.length || to + end - at - 1 > words.length) throw cutOff();
    words.set(from.subarray(at + 1, end), to);
    to += end - at - 1;
    at = end;
  }
  if (to !== words.length) throw cutOff();
  return bytes;
}

const cutOff = () => new RangeError("Cannot unpack bytes that are cut off");

function endOfRun(words: Uint32Array, from: number, isZero: boolean): number {
  const last = Math.min(words.length, from + RUN_WORDS_MAX);
  let at = from;
  while (at < last && (words[at] === 0) === isZero) at += 1;
  return at;
}

/** In place where they lie so. */
function wordsOf(bytes: Uint8Array): Uint32Array {
  const isAligned = bytes.byteOffset % WORD_BYTES === 0;
  const { buffer, byteOffset, length } = isAligned ? bytes : new Uint8Array(bytes);
  return new Uint32Array(buffer, byteOffset, Math.floor(length / WORD_BYTES));
}
