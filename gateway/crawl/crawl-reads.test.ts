import { expect } from "chai";
import { CRAWL_READS_MAX } from "../../schemas/crawl/limits.ts";
import { CRAWL_READS_OF_ACCOUNT_MAX, CrawlReads } from "./crawl-reads.ts";

describe("CrawlReads", () => {
  it("reserve() refuses a read past the limits of an account and of the gateway", () => {
    const reads = new CrawlReads();
    const releases: (() => void)[] = [];
    for (let taken = 0; taken < CRAWL_READS_MAX; taken += 1) {
      const account = Math.floor(taken / CRAWL_READS_OF_ACCOUNT_MAX);
      releases.push(reads.reserve(`account ${account}`));
    }
    expect(() => reads.reserve("account 0")).to.throw("the account reads 16 already");
    expect(() => reads.reserve("another")).to.throw("64 are being read here already");
    releases.shift()?.();
    reads.reserve("account 0");
    for (const release of releases) release();
    reads.reserve("another")();
  });
});
