import { expect } from "chai";
import { checkJob, fetched, JobWorld, START } from "../../../../scripts/testing/job-world.ts";
import { CrawlJobRow } from "./crawl-job-state.ts";
import { linesOfRow, packRow, waitingOfRow } from "./packed-rows.ts";

const stored = (row: CrawlJobRow) =>
  CrawlJobRow.parse(JSON.parse(JSON.stringify(packRow(CrawlJobRow.parse(row)))));
const numbered = (count: number) =>
  Array.from({ length: count }, (_, number) => `${START}${number}`);

describe("packed rows", () => {
  it("the lines of records read back as they were written", () => {
    const lines = [`${START}\t0\tqueued`, "", `${START}1\t1\tqueued\t{"title":"ä\\n"}`];
    expect(linesOfRow(stored({ type: "pages", lines }))).to.deep.equal(lines);
  });

  it("found addresses read back with their times and the depth of their row", () => {
    const found = [{ url: `${START}1`, lastModifiedAt: 0 }, { url: `${START}2` }, { url: START }];
    const row = stored({ type: "backlog", depth: 3, found });
    expect(waitingOfRow(row)).to.deep.equal({ depth: 3, found });
  });

  it("a tab or a line feed in a found address makes no other address", () => {
    const found = [{ url: `${START}a\n\tb\n`, lastModifiedAt: 1 }, { url: `${START}c` }];
    expect(waitingOfRow(stored({ type: "backlog", depth: 1, found })).found).to.deep.equal([
      ...[{ url: `${START}ab`, lastModifiedAt: 1 }, { url: `${START}c` }],
    ]);
  });

  it("addresses that begin alike take less than half of the bytes of the lists", () => {
    const found = Array.from({ length: 100 }, (_, page) => ({
      url: `${START}articles/section-${page % 97}/an-article-of-ours-0-${page}`,
    }));
    const list = { type: "backlog" as const, depth: 1, found };
    expect(JSON.stringify(stored(list)).length).to.be.below(JSON.stringify(list).length / 2);
  });

  it("other rows are stored as they are", () => {
    const row = { type: "known" as const, known: " 0123456789abc=z" };
    expect(packRow(row)).to.equal(row);
  });

  it("a job goes on with the lists that an earlier release stored", () => {
    const world = new JobWorld().start({ source: "links", limit: 100_000 });
    world.learn();
    world.visit(fetched(numbered(900)));
    const lists = [...world.rows].filter(([name]) => name.startsWith("b/"));
    expect(lists).to.have.length.above(0);
    for (const [name, row] of world.rows) {
      const lines = linesOfRow(row);
      if (lines) world.rows.set(name, { type: "pages", lines });
      if (row.type === "found") world.rows.set(name, { type: "backlog", ...waitingOfRow(row) });
    }
    world.settleBacklog();
    checkJob(world);
    expect(world.records().map(({ url }) => url)).to.deep.equal([START, ...numbered(900)]);
    expect([...world.rows.values()].some(({ type }) => type === "backlog")).to.equal(false);
  });
});
