import { expect } from "chai";
import { type Piece, readAhead } from "./read-ahead.ts";

const BOUNDS = { wholeMax: 10, bytesMax: 20, countMax: 4 };

describe("readAhead", () => {
  it("readAhead() returns all bytes in order, whichever piece arrives first", async () => {
    const later = Promise.withResolvers<void>();
    const pieces = [
      Buffer.from("<"),
      piece("slow", later.promise),
      piece("fast"),
      piece("a large one, in pieces"),
      Buffer.from(">"),
    ];
    const reading = text(readAhead(each(pieces), BOUNDS));
    later.resolve();
    expect(await reading).to.equal("<slowfasta large one, in pieces>");
  });

  it("readAhead() prefetches small pieces within its limits, and reads a large one in its turn", async () => {
    const read: string[] = [];
    const named = (name: string, bytes: number): Piece => ({
      bytes,
      async *read() {
        read.push(name);
        yield Buffer.alloc(bytes, name);
      },
    });
    const pieces = [..."abcdef"]
      .map((name) => named(name, 1))
      .concat(named("L", 11), named("g", 1));
    const reading = readAhead(each(pieces), BOUNDS);
    await reading.next();
    expect(read.join("")).to.equal("abcd");
    for (let taken = 0; taken < 3; taken++) await reading.next();
    expect(read.join("")).to.equal("abcdef");
    expect(await text(reading)).to.equal(`ef${"L".repeat(11)}g`);
    expect(read.join("")).to.equal("abcdefgL");
    const tens = ["a", "b", "c"].map((name) => named(name, 10));
    read.length = 0;
    await readAhead(each(tens), BOUNDS).next();
    expect(read.join("")).to.equal("ab");
  });

  it("readAhead() fails at a failed piece after those before it, and releases the rest", async () => {
    let ended = false;
    async function* pieces() {
      try {
        yield piece("good");
        yield piece("bad", Promise.reject(new Error("gone")));
        yield piece("never");
      } finally {
        ended = true;
      }
    }
    const reading = readAhead(pieces(), BOUNDS);
    expect(String((await reading.next()).value)).to.equal("good");
    const failure = await reading.next().catch((error: unknown) => error);
    expect(failure).to.have.property("message", "gone");
    expect(ended).to.equal(true);
  });

  it("readAhead() releases everything when its reader stops", async () => {
    let ended = false;
    async function* pieces() {
      try {
        for (;;) yield Buffer.from("x");
      } finally {
        ended = true;
      }
    }
    const reading = readAhead(pieces(), BOUNDS);
    await reading.next();
    await reading.return();
    expect(ended).to.equal(true);
  });
});

function piece(content: string, ready: Promise<void> = Promise.resolve()): Piece {
  ready.catch(() => {});
  return {
    bytes: content.length,
    async *read() {
      await ready;
      for (let from = 0; from < content.length; from += 4) {
        yield Buffer.from(content.slice(from, from + 4));
      }
    },
  };
}

async function* each(pieces: readonly Piece[]): AsyncGenerator<Piece, void, undefined> {
  yield* pieces;
}

async function text(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  return Buffer.concat(await Array.fromAsync(chunks)).toString();
}
