import { expect } from "chai";
import { CRAWL_READS_MAX, CRAWL_READS_OF_ACCOUNT_MAX } from "../../schemas/crawl/limits.ts";
import { CrawlReads } from "./crawl-reads.ts";

describe("CrawlReads", () => {
  it("reserve() refuses a read past the limit of an account until one ends", () => {
    const reads = new CrawlReads();
    const release = reads.reserve("one");
    for (let taken = 1; taken < CRAWL_READS_OF_ACCOUNT_MAX; taken += 1) reads.reserve("one");
    expect(() => reads.reserve("one")).to.throw("the account reads 16 already");
    release();
    reads.reserve("one");
  });

  it("reserve() leaves reads to a fifth account when four take what they can", () => {
    const reads = new CrawlReads();
    for (const account of ["1", "2", "3", "4"]) takeAll(reads, account);
    expect(takeAll(reads, "5")).to.have.length.above(1);
  });

  it("reserve() refuses a read past the limit of the gateway until one ends", () => {
    const reads = new CrawlReads();
    const releases: (() => void)[] = [];
    for (let account = 0; releases.length < CRAWL_READS_MAX; account += 1) {
      releases.push(...takeAll(reads, `account ${account}`));
    }
    expect(() => reads.reserve("another")).to.throw("64 of 64 are being read here already");
    releases.shift()?.();
    reads.reserve("another");
    for (const release of releases) release();
    expect(takeAll(reads, "one")).to.have.length(CRAWL_READS_OF_ACCOUNT_MAX);
  });
});

/** Reserves all reads that the account may have now. */
function takeAll(reads: CrawlReads, account: string): (() => void)[] {
  const releases: (() => void)[] = [];
  for (;;) {
    try {
      releases.push(reads.reserve(account));
    } catch {
      return releases; // The account or the gateway has its limit.
    }
  }
}
