/**
 * Ascending lists of message sequences, in memory and encoded as bytes. A list says which messages of a stream a
 * backup contains.
 */
import { readVarint, writeVarint } from "./archive-entries.ts";

const VARINT_BYTES_MAX = 10;
const FIRST_CAPACITY = 1_024;

/** A list of ascending sequences that uses 8 bytes per sequence. Sequences can be added only at its end. */
export class SequenceList {
  #values = new Float64Array(FIRST_CAPACITY);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  get last(): number {
    return this.#length === 0 ? 0 : (this.#values[this.#length - 1] ?? 0);
  }

  get first(): number | undefined {
    return this.#length === 0 ? undefined : this.#values[0];
  }

  /** Adds a sequence. Throws if it is not above all others in the list. */
  push(sequence: number): void {
    if (sequence <= this.last)
      throw new Error(`Cannot list sequence ${sequence}: it follows ${this.last}`);
    if (this.#length === this.#values.length) {
      const grown = new Float64Array(2 * this.#values.length);
      grown.set(this.#values);
      this.#values = grown;
    }
    this.#values[this.#length++] = sequence;
  }

  has(sequence: number): boolean {
    return this.indexOf(sequence) !== -1;
  }

  /** Returns the index of a sequence in the list, or -1. */
  indexOf(sequence: number): number {
    const index = this.#indexFrom(sequence);
    return index < this.#length && this.#values[index] === sequence ? index : -1;
  }

  /** Returns true if the list contains a sequence from `first` to `last`, both included. */
  hasAny(first: number, last: number): boolean {
    const index = this.#indexFrom(first);
    return index < this.#length && (this.#values[index] ?? 0) <= last;
  }

  /** Returns the index of the first sequence that is `first` or above. */
  #indexFrom(first: number): number {
    let low = 0;
    let high = this.#length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#values[middle] ?? 0) < first) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  [Symbol.iterator](): Iterator<number> {
    return this.#values.subarray(0, this.#length).values();
  }

  /** Encodes the differences between consecutive sequences as varints. */
  encode(): Buffer {
    const buffer = Buffer.allocUnsafe(VARINT_BYTES_MAX * this.#length);
    let at = 0;
    let before = 0;
    for (const sequence of this) {
      at = writeVarint(buffer, at, sequence - before);
      before = sequence;
    }
    return buffer.subarray(0, at);
  }

  static decode(bytes: Buffer): SequenceList {
    const list = new SequenceList();
    let before = 0;
    for (let at = 0; at < bytes.length; ) {
      const { value, end } = readVarint(bytes, at);
      before += value;
      list.push(before);
      at = end;
    }
    return list;
  }
}
