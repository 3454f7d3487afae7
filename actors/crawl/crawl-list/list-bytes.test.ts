import { expect } from "chai";
import { CRAWL_KEPT_MS } from "../../../schemas/crawl/limits.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { CrawlListRow, CrawlListState } from "./crawl-list-state.ts";
import { id, List } from "./testing/list.ts";

const REQUEST = { url: "https://a.example/", requestBytes: 10 };

/** A list that limits its account to 1,000 bytes, with running jobs. */
function limited(...numbers: number[]): List {
  const list = new List();
  for (const number of numbers) {
    list.run("admit", { bytesMax: 1_000 });
    list.run("started", { id: id(number), ...REQUEST });
  }
  // The shares of hosts.
  list.take();
  return list;
}
const bytesAfter = (list: List) => list.state.bytes;

describe("bytes of crawl-list", () => {
  it("counts requests while their jobs run, and results until they expire", () => {
    const list = limited(1, 2);
    expect(bytesAfter(list)).to.equal(20);
    list.run("grown", { id: id(1), bytes: 300 });
    list.run("grown", { id: id(1), bytes: 500 });
    expect(bytesAfter(list)).to.equal(520);
    list.run("ended", { id: id(1), status: "completed", bytes: 600 });
    expect(bytesAfter(list)).to.equal(610);
    list.run("ended", { id: id(2), status: "errored", bytes: 0 });
    expect(bytesAfter(list)).to.equal(600);
    list.run("expired", { id: id(1) });
    list.run("expired", { id: id(2) });
    expect(bytesAfter(list)).to.equal(0);
  });

  it("grown() the same twice, with fewer bytes, or of an unknown job changes nothing", () => {
    const list = limited(1);
    list.run("grown", { id: id(1), bytes: 500 });
    for (const [number, bytes] of [
      [1, 500],
      [1, 499],
      [2, 5_000],
    ] as const) {
      list.run("grown", { id: id(number), bytes });
      expect(list.changed).to.equal(false);
    }
  });

  it("grown() of an ended job counts, for pages that were being stored at its end", () => {
    const list = limited(1);
    list.run("ended", { id: id(1), status: "cancelled_by_user", bytes: 600 });
    list.run("grown", { id: id(1), bytes: 2_000 });
    expect(bytesAfter(list)).to.equal(2_000);
    expect(list.sent).to.deep.equal([]);
  });

  it("grown() ends the job that takes the account past its limit, and not the one that reaches it", () => {
    const list = limited(1, 2);
    list.run("grown", { id: id(1), bytes: 980 });
    expect(bytesAfter(list)).to.equal(1_000);
    expect(list.sent).to.deep.equal([]);
    list.run("grown", { id: id(2), bytes: 1 });
    const reason =
      "The crawl was stopped: the account's crawls store 1001 bytes and may store 1000 (TRUNKLINE_CRAWL_BYTES_PER_ACCOUNT); results are removed 14 days after the end of their crawl";
    expect(list.sent).to.deep.equal([
      {
        ...{ to: "actor", kind: "crawl-job", key: id(2), message: "accountFull" },
        input: { reason },
      },
    ]);
  });

  it("admit() admits below the limit and refuses at it until results expire, with the time of that", () => {
    const list = limited(1, 2, 3);
    for (const [number, bytes] of [
      [1, 400],
      [2, 599],
      [3, 0],
    ] as const) {
      list.now += 1_000;
      list.run("ended", { id: id(number), status: "completed", bytes });
    }
    list.run("admit", { bytesMax: 1_000 });
    list.run("grown", { id: id(2), bytes: 600 });
    const refused = refusal(() => list.run("admit", { bytesMax: 1_000 }));
    expect(refused.code).to.equal("storage_full");
    const at = new Date(2_000 + CRAWL_KEPT_MS).toISOString();
    expect(refused.message).to.equal(
      `Cannot start crawl: the account's crawls store 1000 bytes and may store 1000 (TRUNKLINE_CRAWL_BYTES_PER_ACCOUNT); the earliest results are removed on ${at}`,
    );
    list.run("expired", { id: id(1) });
    list.run("admit", { bytesMax: 1_000 });
  });

  it("admit() brings the present limit: a higher one, or none", () => {
    const list = limited(1);
    list.run("grown", { id: id(1), bytes: 2_000 });
    expect(list.take()).to.have.length(1);
    expect(refusal(() => list.run("admit", { bytesMax: 1_000 })).code).to.equal("storage_full");
    list.run("admit", { bytesMax: 3_000 });
    list.run("grown", { id: id(1), bytes: 2_990 });
    expect(list.take()).to.deep.equal([]);
    list.run("admit", { bytesMax: 0 });
    list.run("grown", { id: id(1), bytes: 1_000_000 });
    expect(list.take()).to.deep.equal([]);
  });

  it("admit() of an older gateway keeps the limit that the list knows", () => {
    const list = limited(1);
    list.run("admit", {});
    list.run("grown", { id: id(1), bytes: 990 });
    expect(refusal(() => list.run("admit", {})).code).to.equal("storage_full");
  });

  it("list() does not show the bytes", () => {
    const list = limited(1);
    list.run("grown", { id: id(1), bytes: 500 });
    const { entries } = list.run("list", { count: 1 });
    expect(Object.keys(entries[0] ?? {})).to.deep.equal(["id", "url", "status", "createdAt"]);
  });

  it("state, rows and messages of older versions load, and count no bytes", () => {
    const list = new List();
    list.state = CrawlListState.parse({ next: 2, running: 1, kept: 2, admitted: [] });
    const row = { url: "https://a.example/", createdAt: 1 };
    for (const old of [
      { id: id(1), status: "completed", number: 0, endedAt: 2, ...row },
      { id: id(2), status: "running", number: 1, ...row },
    ]) {
      list.rows.set(old.id, CrawlListRow.parse(old));
    }
    list.run("admit", { bytesMax: 1_000 });
    list.run("grown", { id: id(2), bytes: 700 });
    list.run("ended", { id: id(2), status: "completed" });
    expect(bytesAfter(list)).to.equal(700);
    list.run("expired", { id: id(1) });
    list.run("expired", { id: id(2) });
    expect(list.state).to.include({ running: 0, kept: 0, bytes: 0 });
  });

  it("a host of an older version drops the sum, and the next one adds the rows up again", () => {
    const list = new List();
    const row = { url: "https://a.example/", createdAt: 1 };
    for (const kept of [
      { id: id(1), status: "completed", number: 0, endedAt: 2, bytes: 600, ...row },
      { id: id(2), status: "running", number: 1, bytes: 300, requestBytes: 50, ...row },
    ]) {
      list.rows.set(kept.id, CrawlListRow.parse(kept));
    }
    const dropped = () => CrawlListState.parse({ next: 2, running: 1, kept: 2, admitted: [] });
    list.state = dropped();
    expect(refusal(() => list.run("admit", { bytesMax: 950 })).code).to.equal("storage_full");
    list.run("admit", { bytesMax: 951 });
    list.state = dropped();
    // The job counted anew after its host had dropped its sum as well.
    list.run("ended", { id: id(2), status: "completed", bytes: 10 });
    expect(list.state.bytes).to.equal(900);
    list.run("expired", { id: id(1) });
    expect(list.state).to.include({ running: 0, kept: 1, bytes: 300 });
  });
});
