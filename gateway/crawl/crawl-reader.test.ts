import { expect } from "chai";
import { BLOB_CHUNK_BYTES } from "../../schemas/limits.ts";
import { memoryActors } from "../../scripts/testing/memory-actors.ts";
import { testCrawls } from "../testing/test-crawls.ts";
import { CRAWL_READ_AHEAD_BYTES_MAX, CRAWL_READ_AHEAD_MAX, readCrawl } from "./crawl-reader.ts";

const ACCOUNT = "a".repeat(32);

describe("readCrawl", () => {
  /** Begins a read of these records and takes its first piece. */
  const begin = async (count: number, bodyBytes: number) => {
    const crawls = testCrawls();
    const actors = memoryActors({ actors: crawls.actors });
    const records = Array.from({ length: count }, () => ({ bodies: [bodyBytes] }));
    const job = crawls.add(ACCOUNT, {}, records);
    const { signal } = new AbortController();
    const chunks = await readCrawl(
      { actors, blobs: crawls.blobs },
      { account: ACCOUNT, job, signal },
    );
    const reading = chunks[Symbol.asyncIterator]();
    await reading.next();
    return { reading, blobs: crawls.blobs };
  };
  // Each record has two pieces: its text and its body. So half of the prefetched pieces are bodies.
  const bodiesAhead = CRAWL_READ_AHEAD_MAX / 2;

  it("readCrawl() prefetches pieces up to its limit, and the next when the client reads one", async () => {
    const { reading, blobs } = await begin(bodiesAhead + 2, 100);
    expect(blobs.read).to.have.length(bodiesAhead);
    await reading.next();
    await reading.next();
    expect(blobs.read).to.have.length(bodiesAhead + 1);
    await reading.return?.();
    expect(blobs.read).to.have.length(bodiesAhead + 1);
  });

  it("readCrawl() limits the prefetched bytes, and does not prefetch a body of several pieces", async () => {
    const whole = await begin(2 * bodiesAhead, BLOB_CHUNK_BYTES);
    expect(whole.blobs.bytesTaken).to.equal(CRAWL_READ_AHEAD_BYTES_MAX);
    const large = await begin(2 * bodiesAhead, BLOB_CHUNK_BYTES + 1);
    expect(large.blobs.read).to.deep.equal([]);
  });
});
