import { expect } from "chai";
import { MessageHashes } from "./message-hashes.ts";
import { SequenceList } from "./sequence-list.ts";

/** More entries than V8 allows in a Map. */
const MESSAGES = 2 ** 24 + 1;

describe("MessageHashes", function () {
  this.timeout(240_000);

  it("holds the hashes of more messages than a Map", () => {
    const sequences = new SequenceList();
    for (let index = 1; index <= MESSAGES; index++) sequences.push(2 * index);
    const hashes = new MessageHashes(sequences);
    for (const sequence of sequences) hashes.add(sequence, sequence % 1_000);
    expect(hashes.count).to.equal(MESSAGES);
    for (const index of [1, MESSAGES - 1, MESSAGES]) {
      expect(hashes.has(2 * index, (2 * index) % 1_000)).to.equal(true);
      expect(hashes.has(2 * index, (2 * index + 1) % 1_000)).to.equal(false);
      expect(hashes.has(2 * index - 1, (2 * index) % 1_000)).to.equal(false);
    }
  });

  it("has no message with another hash, that was not added, or that is not in the list", () => {
    const sequences = new SequenceList();
    for (const sequence of [2, 3, 7]) sequences.push(sequence);
    const hashes = new MessageHashes(sequences);
    hashes.add(2, 0);
    hashes.add(7, 70);
    expect(hashes.count).to.equal(2);
    const had = [
      ...[hashes.has(2, 0), hashes.has(7, 70)],
      ...[hashes.has(7, 71), hashes.has(3, 0), hashes.has(1, 0), hashes.has(8, 70)],
    ];
    expect(had).to.deep.equal([true, true, false, false, false, false]);
    expect(() => hashes.add(5, 0)).to.throw("Cannot add message 5: it is not in the list");
  });
});
