/**
 * Maps positions in a bundle to positions in the app's own files. Reads the mappings of a source map (version 3) from
 * the start to the last wanted position and stores none: all mappings would take more memory than the app's code.
 */

/** Lines begin at 1, columns at 0. */
export interface Place {
  line: number;
  column: number;
}

/** A position in the source file with index `source`. */
interface SourcePlace extends Place {
  source: number;
}

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/** Values of base64 characters; -1 for characters that are not base64. */
const VALUES = new Int8Array(128).fill(-1);
for (const [value, digit] of [...DIGITS].entries()) VALUES[digit.charCodeAt(0)] = value;
/** The continuation bit of a base64 digit. */
const GOES_ON = 32;
const SEMICOLON = 59;

/** Returns the source position for each of `wanted`; undefined where the map does not cover the position. */
export function sourcePlaces(
  mappings: string,
  wanted: readonly Place[],
): (SourcePlace | undefined)[] {
  const found: (SourcePlace | undefined)[] = wanted.map(() => undefined);
  const order = [...wanted.keys()].sort((one, other) => compare(wanted[one], wanted[other]));
  const reader = new SegmentReader(mappings);
  let last: SourcePlace | undefined;
  let line = 1;
  let next = 0;
  while (next < order.length) {
    const segment = reader.next();
    // A position belongs to the last segment that begins at or before it.
    const end = segment === undefined || reader.line > line ? Infinity : segment.column;
    for (; next < order.length; next += 1) {
      const place = wanted[order[next] as number] as Place;
      if (place.line > line || (place.line === line && place.column >= end)) break;
      if (place.line === line) found[order[next] as number] = last;
    }
    if (segment === undefined) break;
    line = reader.line;
    last = segment.place;
  }
  return found;
}

const compare = (one: Place | undefined, other: Place | undefined): number =>
  (one?.line ?? 0) - (other?.line ?? 0) || (one?.column ?? 0) - (other?.column ?? 0);

/** Reads the segments of a map. Their fields are relative to the fields of the previous segment. */
class SegmentReader {
  line = 1;
  readonly #mappings: string;
  #at = 0;
  #column = 0;
  #source = 0;
  #sourceLine = 1;
  #sourceColumn = 0;

  constructor(mappings: string) {
    this.#mappings = mappings;
  }

  next(): { column: number; place: SourcePlace | undefined } | undefined {
    for (; this.#at < this.#mappings.length; this.#at += 1) {
      const code = this.#mappings.charCodeAt(this.#at);
      if (code === SEMICOLON) {
        this.line += 1;
        this.#column = 0;
      } else if (this.#hasDigit()) return this.#segment();
    }
    return undefined;
  }

  #segment(): { column: number; place: SourcePlace | undefined } {
    this.#column += this.#number();
    const column = this.#column;
    // A segment with one field is code without a source.
    if (!this.#hasDigit()) return { column, place: undefined };
    this.#source += this.#number();
    this.#sourceLine += this.#number();
    this.#sourceColumn += this.#number();
    if (this.#hasDigit()) this.#number();
    const place = { source: this.#source, line: this.#sourceLine, column: this.#sourceColumn };
    return { column, place };
  }

  #hasDigit(): boolean {
    return this.#at < this.#mappings.length && this.#digit() >= 0;
  }

  #digit(): number {
    return VALUES[this.#mappings.charCodeAt(this.#at)] ?? -1;
  }

  /** Reads a base64 VLQ number: five bits per digit, lowest bits first. The lowest bit of the result is the sign. */
  #number(): number {
    let bits = 0;
    let shift = 0;
    while (this.#hasDigit()) {
      const digit = this.#digit();
      this.#at += 1;
      bits += (digit % GOES_ON) * 2 ** shift;
      if (digit < GOES_ON) break;
      shift += 5;
    }
    const size = Math.floor(bits / 2);
    return bits % 2 === 0 ? size : -size;
  }
}
