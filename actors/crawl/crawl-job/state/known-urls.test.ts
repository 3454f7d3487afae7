import { expect } from "chai";
import { KNOWN_ROWS_MAX } from "../../../../schemas/crawl/limits.ts";
import { JobWorld } from "../../../../scripts/testing/job-world.ts";
import type { HandlerContext } from "../../../runtime/kinds/define-actor.ts";
import { type CrawlJobRow, INITIAL } from "./crawl-job-state.ts";
import { JobDraft } from "./job-draft.ts";
import { addKnown, KNOWN_PER_ROW, KNOWN_ROWS_MIN, knownIndex, knownRows } from "./known-urls.ts";

const addresses = Array.from({ length: 2_000 }, (_, index) => `https://a.example/${index}`);

describe("known addresses of a crawl job", () => {
  const draftOf = (rows?: number) => {
    const context = { key: "5".repeat(32), now: 0, rows: new Map() };
    const state = rows === undefined ? INITIAL : { ...INITIAL, knownRows: rows };
    return new JobDraft(state, context as unknown as HandlerContext<CrawlJobRow>);
  };

  it("have one row per KNOWN_PER_ROW pages, from KNOWN_ROWS_MIN to KNOWN_ROWS_MAX rows, always a power of two", () => {
    const least = KNOWN_ROWS_MIN * KNOWN_PER_ROW;
    expect([1, 10, least].map(knownRows)).to.deep.equal(Array(3).fill(KNOWN_ROWS_MIN));
    expect(knownRows(least + 1)).to.equal(2 * KNOWN_ROWS_MIN);
    expect(knownRows(65_536)).to.equal(4_096);
    expect(knownRows(100_000)).to.equal(8_192);
    const most = KNOWN_ROWS_MAX * KNOWN_PER_ROW;
    expect([most, most + 1, 10 * most].map(knownRows)).to.deep.equal(Array(3).fill(KNOWN_ROWS_MAX));
  });

  for (const rows of [undefined, KNOWN_ROWS_MIN, KNOWN_ROWS_MAX]) {
    it(`are found again, each by its index, as page or as sitemap, in ${rows ?? "the first release's"} rows`, () => {
      const draft = draftOf(rows);
      for (const [index, url] of addresses.entries()) {
        expect(knownIndex(draft, "page", url)).to.equal(undefined);
        addKnown(draft, "page", url, index);
      }
      const indices = addresses.map((url) => knownIndex(draft, "page", url));
      expect(indices).to.deep.equal([...addresses.keys()]);
      expect(knownIndex(draft, "sitemap", addresses[0] ?? "")).to.equal(undefined);
      const used = Object.keys(draft.transition().rows ?? {}).map((row) => Number(row.slice(2)));
      const count = rows ?? KNOWN_ROWS_MAX;
      expect(Math.max(...used)).to.be.below(count);
      // The hash spreads addresses evenly: with many addresses per row, no row stays empty.
      if (count === KNOWN_ROWS_MIN) expect(used).to.have.length(count);
    });
  }

  it("share rows: 180 addresses of one message rewrite at most 64 rows, for 1,000 pages", () => {
    const draft = draftOf(knownRows(1_000));
    for (const [index, url] of addresses.slice(0, 180).entries()) {
      addKnown(draft, "page", url, index);
    }
    expect(draft.writtenRows).to.be.at.most(64);
  });

  it("a job keeps the number of its rows from its start", () => {
    const world = new JobWorld().start({ source: "links", limit: 4_000 });
    expect(world.state.knownRows).to.equal(256);
  });

  it("known addresses of a job of the first release keep their rows", () => {
    const draft = draftOf();
    addKnown(draft, "page", "https://a.example/", 7);
    const { rows } = draft.transition();
    expect(rows).to.deep.equal({ "u/4115": { type: "known", known: " b299b6f31ecdf=7" } });
  });
});
