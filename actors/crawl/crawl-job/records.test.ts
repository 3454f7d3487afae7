import { expect } from "chai";
import { CRAWL_URL_CHARS_MAX } from "../../../schemas/crawl/limits.ts";
import {
  ACCOUNT,
  fetched,
  HOST,
  JOB,
  JobWorld,
  START,
} from "../../../scripts/testing/job-world.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { RECORD_LIST_BYTES_MAX } from "./records.ts";

/** Returns a job whose start page is settled and that has `pages` queued pages. */
function jobOf(pages: number): JobWorld {
  const world = new JobWorld().start({ source: "links", limit: 100_000 });
  world.learn();
  world.visit(fetched(Array.from({ length: pages }, (_, number) => `${START}${number}`)));
  world.settleBacklog();
  return world;
}

/** Settles these pages, which must fit one turn. */
function settle(world: JobWorld, indexes: number[]): void {
  const turn = world.grant();
  for (const index of indexes) world.report(turn, fetched()(index));
  world.run("turnEnded", { host: HOST, turn: turn.turn });
}

const indexesOf = (entries: { entry: { index: number } }[]) =>
  entries.map(({ entry }) => entry.index);

describe("list() of a crawl's records", () => {
  it("list() without a status returns the requested number in discovery order", () => {
    const world = jobOf(7);
    const first = world.list({ count: 3 });
    expect(indexesOf(first.entries)).to.deep.equal([0, 1, 2]);
    expect(first.more).to.equal(true);
    expect(first.summary).to.deep.include({ total: 8 });
    const cursor = first.entries[2]?.cursor ?? "";
    expect(indexesOf(world.list({ cursor }).entries)).to.deep.equal([3, 4, 5, 6, 7]);
    const last = world.list({ cursor, count: 5 });
    expect(last.more).to.equal(false);
    expect(world.list({ cursor: last.entries[4]?.cursor ?? "" })).to.deep.include({
      ...{ entries: [], more: false },
    });
  });

  it("list() by status shows each record once although pages settle meanwhile", () => {
    const world = jobOf(9);
    settle(world, [3, 5]);
    const status = "completed";
    const first = world.list({ status, count: 2 });
    expect(indexesOf(first.entries)).to.deep.equal([0, 3]);
    settle(world, [1, 4]);
    const second = world.list({ status, count: 2, cursor: first.entries[1]?.cursor ?? "" });
    expect(indexesOf(second.entries)).to.deep.equal([5, 1]);
    expect(second.more).to.equal(true);
    settle(world, [2, 9]);
    const third = world.list({ status, cursor: second.entries[1]?.cursor ?? "" });
    expect(indexesOf(third.entries)).to.deep.equal([4, 2, 9]);
    expect(third.more).to.equal(false);
    world.run("cancel", { account: world.state.account });
    const rest = world.list({ status, cursor: third.entries[2]?.cursor ?? "" });
    expect(rest).to.deep.include({ entries: [], more: false });
    expect(indexesOf(world.list({ status: "cancelled" }).entries)).to.deep.equal([6, 7, 8]);
    expect(indexesOf(world.list({ status }).entries)).to.deep.equal([0, 1, 2, 3, 4, 5, 9]);
  });

  it("list() of cancelled records continues after a cursor from before the end", () => {
    const world = jobOf(3);
    world.run("cancel", { account: world.state.account });
    const { entries } = world.list({ status: "cancelled", count: 2 });
    expect(indexesOf(entries)).to.deep.equal([1, 2]);
    const { cursor } = entries[1] ?? { cursor: "" };
    expect(indexesOf(world.list({ status: "cancelled", cursor }).entries)).to.deep.equal([3]);
  });

  it("list() of an ended job shows what was fetched of pages that wait for their JSON", () => {
    const ends = [
      [(world: JobWorld) => world.run("cancel", { account: ACCOUNT }), "the crawl was cancelled"],
      [(world: JobWorld) => world.run("timeOut", {}), "the crawl took longer than it may"],
    ] as const;
    for (const [end, why] of ends) {
      const world = new JobWorld().start({ source: "links", formats: ["markdown", "json"] });
      world.learn();
      const blobs = [{ name: `crawl.${JOB}.0.turn`, bytes: 10 }];
      const metadata = { status: 200, url: START, title: "Start" };
      world.visit(fetched([`${START}a`], { jsonSource: "text", blobs, metadata }));
      world.settleBacklog();
      expect(world.list().entries[0]?.entry).to.deep.equal({
        ...{ index: 0, url: START, status: "queued", reason: "its JSON is being made", blobs: [] },
      });
      end(world);
      world.run("jsonExtracted", { index: 0, reason: "too late" });
      const [first, second] = world.list({ status: "cancelled" }).entries;
      expect(first?.entry).to.deep.equal({
        ...{ index: 0, url: START, status: "cancelled", metadata, blobs },
        reason: `its JSON was not made: ${why}`,
      });
      expect(second?.entry).to.deep.include({ index: 1, reason: why, blobs: [] });
    }
  });

  it("list() of queued records shows queued pages and pages in flight", () => {
    const world = jobOf(4);
    world.grant(2);
    const { entries } = world.list({ status: "queued" });
    expect(indexesOf(entries)).to.deep.equal([1, 2, 3, 4]);
    expect(entries[0]?.entry.reason).to.equal("it is being fetched");
    expect(world.list({ status: "cancelled" }).entries).to.deep.equal([]);
  });

  it("list() refuses a cursor it did not make", () => {
    const world = jobOf(1);
    for (const query of [
      { cursor: "" },
      { cursor: "x" },
      { cursor: "1.2" },
      { cursor: "-1" },
      { cursor: "2" },
      { cursor: "999999999" },
      { cursor: "1.1.1" },
      { cursor: "1", status: "completed" as const },
    ]) {
      expect(refusal(() => world.list(query)).code, query.cursor).to.equal("invalid_request");
    }
    expect(world.list({ cursor: "1" })).to.deep.include({ entries: [], more: false });
  });

  it("list() stays within a message, whatever the records hold", () => {
    const world = new JobWorld().start({ source: "links", limit: 1_000 });
    world.learn();
    const long = "a".repeat(CRAWL_URL_CHARS_MAX - START.length - 3);
    world.visit(fetched(Array.from({ length: 100 }, (_, page) => `${START}${page}${long}`)));
    world.settleBacklog();
    for (let turns = 0; turns < 20; turns += 1) {
      const turn = world.tryGrant();
      if (turn === undefined) break;
      for (const { url, ...request } of turn.requests) {
        if (request.type !== "page") continue;
        const metadata = { status: 200, url, title: "\u0001".repeat(1_024) };
        world.report(turn, fetched([], { metadata })(request.index));
      }
    }
    expect(world.summary().status).to.equal("completed");
    const { entries, more } = world.list();
    expect(more).to.equal(true);
    expect(JSON.stringify(entries).length).to.be.within(
      RECORD_LIST_BYTES_MAX / 2,
      RECORD_LIST_BYTES_MAX + 20_000,
    );
    expect(world.records()).to.have.length(101);
  });
});
