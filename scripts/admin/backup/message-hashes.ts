/** Hashes of the messages of a stream, by their sequences. */
import type { SequenceList } from "./sequence-list.ts";

/**
 * One number for each sequence of a list, in 8 bytes. A Map needs several times as much, and V8 limits a Map to
 * 16,777,216 entries.
 */
export class MessageHashes {
  readonly #sequences: SequenceList;
  /** The hash of each sequence of the list; NaN for a message that was not added. */
  readonly #hashes: Float64Array;
  #count = 0;

  constructor(sequences: SequenceList) {
    this.#sequences = sequences;
    this.#hashes = new Float64Array(sequences.length).fill(Number.NaN);
  }

  /** The number of messages that were added. */
  get count(): number {
    return this.#count;
  }

  /** Adds the hash of a message. Throws if its sequence is not in the list. */
  add(sequence: number, hashed: number): void {
    const index = this.#sequences.indexOf(sequence);
    if (index === -1) throw new Error(`Cannot add message ${sequence}: it is not in the list`);
    this.#hashes[index] = hashed;
    this.#count += 1;
  }

  /** Returns true if the message was added with this hash. */
  has(sequence: number, hashed: number): boolean {
    return this.#hashes[this.#sequences.indexOf(sequence)] === hashed;
  }
}
