import { expect } from "chai";
import {
  CRAWL_HOSTS_MAX,
  CRAWL_KEPT_MS,
  CRAWLS_KEPT_MAX,
  CRAWLS_RUNNING_MAX,
} from "../../../schemas/crawl/limits.ts";
import { LANE_TASKS_MAX, PAGE_ENTRIES_MAX } from "../../../schemas/limits.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { TURNS_AHEAD_MAX } from "../site/host-capacity.ts";
import { CRAWL_ADMITTED_MS } from "./crawl-list.ts";
import { CrawlListRow, CrawlListState } from "./crawl-list-state.ts";
import { id, List } from "./testing/list.ts";

describe("crawl-list", () => {
  it("list() shows the newest jobs first, with their times", () => {
    const list = new List();
    list.start(1);
    list.now += 5;
    list.start(2);
    list.now += 5;
    list.end(1, "completed");
    expect(list.run("list", { count: 10 })).to.deep.equal({
      entries: [
        { id: id(2), url: "https://a.example/2", status: "running", createdAt: 1_005 },
        {
          ...{ id: id(1), url: "https://a.example/1", status: "completed" },
          ...{ createdAt: 1_000, endedAt: 1_010 },
        },
      ],
    });
  });

  it("list() shows the job's own times, however late the messages arrive", () => {
    const list = new List();
    list.now = 2_000;
    list.run("started", { id: id(1), url: "https://a.example/", createdAt: 1_700 });
    list.run("ended", { id: id(1), status: "completed", endedAt: 1_900 });
    expect(list.run("list", { count: 1 }).entries[0]).to.deep.include({
      ...{ createdAt: 1_700, endedAt: 1_900 },
    });
  });

  it("list() shows the counts that a job reports at its end", () => {
    const list = new List();
    const counts = { total: 7, finished: 6, skipped: 2 };
    list.start(1);
    list.run("ended", { id: id(1), status: "completed", ...counts });
    expect(list.run("list", { count: 1 }).entries[0]).to.deep.include(counts);
  });

  it("list() refuses a cursor that is past its end", () => {
    const list = new List();
    list.start(1);
    for (const cursor of ["1", "99999", "x"]) {
      const refused = refusal(() => list.run("list", { count: 1, cursor }));
      expect(refused.code, cursor).to.equal("invalid_request");
    }
    expect(list.run("list", { count: 1, cursor: "0" }).entries).to.deep.equal([]);
  });

  it("list() lists every job once, though jobs start, end and expire between pages", () => {
    const list = new List();
    for (let number = 1; number <= 25; number++) list.start(number);
    const first = list.run("list", { count: 10 });
    list.start(26);
    list.run("expired", { id: id(20) });
    list.run("expired", { id: id(14) });
    list.end(12, "errored");
    const second = list.run("list", { count: 10, cursor: first.cursor });
    const third = list.run("list", { count: 10, cursor: second.cursor });
    expect(third.cursor).to.equal(undefined);
    const seen = [first, second, third].flatMap(({ entries }) => entries.map((one) => one.id));
    const expected = Array.from({ length: 25 }, (_, index) => 25 - index).filter((n) => n !== 14);
    expect(seen).to.deep.equal(expected.map(id));
  });

  it("list() leaves out an expired job even before its message arrives", () => {
    const list = new List();
    for (const number of [1, 2]) list.start(number);
    list.end(1, "completed");
    list.now += CRAWL_KEPT_MS - 1;
    expect(list.run("list", { count: 10 }).entries).to.have.length(2);
    list.now += 1;
    expect(list.run("list", { count: 10 }).entries.map((one) => one.id)).to.deep.equal([id(2)]);
  });

  it("list() filters by status, and ends with the last match", () => {
    const list = new List();
    for (let number = 1; number <= 6; number++) list.start(number);
    for (const number of [2, 4, 5]) list.end(number, "completed");
    const first = list.run("list", { count: 2, status: "completed" });
    expect(first.entries.map((one) => one.id)).to.deep.equal([id(5), id(4)]);
    const { entries, cursor } = list.run("list", {
      ...{ count: 2, status: "completed", cursor: first.cursor },
    });
    expect(entries.map((one) => one.id)).to.deep.equal([id(2)]);
    expect(cursor).to.equal(undefined);
  });

  it("list() refuses an invalid cursor", () => {
    const list = new List();
    for (const cursor of ["x", "-1", "1.5", " 1", "9".repeat(16)]) {
      const refused = refusal(() => list.run("list", { count: 1, cursor }));
      expect(refused.code).to.equal("invalid_request");
    }
  });

  it("started(), ended() and expired() the same twice, and too late, change nothing", () => {
    const list = new List();
    list.start(1);
    list.start(1);
    expect(list.changed).to.equal(false);
    list.end(1, "completed");
    for (const again of ["completed", "cancelled_by_user", "running"] as const) {
      list.end(1, again);
      expect(list.changed).to.equal(false);
    }
    list.start(1);
    expect(list.changed).to.equal(false);
    list.run("expired", { id: id(1) });
    expect(list.state).to.include({ running: 0, kept: 0 });
    list.run("expired", { id: id(1) });
    expect(list.changed).to.equal(false);
    list.end(1, "completed");
    expect(list.changed).to.equal(false);
  });

  it("expired() of a job that never reported its end counts it as ended", () => {
    const list = new List();
    list.start(1);
    list.run("expired", { id: id(1) });
    expect(list.state).to.include({ running: 0, kept: 0 });
  });

  it("admit() admits CRAWLS_RUNNING_MAX running crawls and refuses one more until one ends", () => {
    const list = new List();
    for (let number = 1; number <= CRAWLS_RUNNING_MAX; number++) {
      list.run("admit", {});
      list.start(number);
    }
    const refused = refusal(() => list.run("admit", {}));
    expect(refused.code).to.equal("limit_reached");
    expect(refused.message).to.contain(String(CRAWLS_RUNNING_MAX));
    list.end(1, "completed");
    list.run("admit", {});
  });

  it("admit() gives each further running crawl half as many hosts, at least one, so that all fit one queue of turns", () => {
    const list = new List();
    const hosts = Array.from({ length: CRAWLS_RUNNING_MAX }, (_, number) => {
      const { hostsMax } = list.run("admit", {});
      list.start(number + 1);
      return hostsMax ?? 0;
    });
    const all = hosts.reduce((sum, count) => sum + count, 0);
    expect(hosts.slice(0, 8)).to.deep.equal([CRAWL_HOSTS_MAX, 37, 18, 9, 4, 2, 1, 1]);
    expect(hosts.at(-1)).to.equal(1);
    expect(all * TURNS_AHEAD_MAX).to.be.at.most(LANE_TASKS_MAX);
    list.end(3, "completed");
    expect(list.run("admit", {})).to.deep.equal({ hostsMax: 1 });
  });

  it("admit() counts admitted crawls that have not started, for CRAWL_ADMITTED_MS", () => {
    const list = new List();
    for (let number = 1; number <= CRAWLS_RUNNING_MAX; number++) list.run("admit", {});
    list.now += CRAWL_ADMITTED_MS - 1;
    expect(refusal(() => list.run("admit", {})).code).to.equal("limit_reached");
    list.now += 1;
    list.run("admit", {});
    expect(list.state.admitted).to.have.length(1);
  });

  it("admit() keeps CRAWLS_KEPT_MAX crawls and refuses one more until one expires; the list stays fast", () => {
    const list = new List();
    for (let number = 1; number <= CRAWLS_KEPT_MAX; number++) {
      const row = { id: id(number), url: "https://a.example/", createdAt: 1, endedAt: 2 };
      list.rows.set(id(number), { ...row, status: "completed", number });
    }
    list.state = { next: 99_999, running: 0, kept: CRAWLS_KEPT_MAX, admitted: [] };
    expect(refusal(() => list.run("admit", {})).message).to.contain(String(CRAWLS_KEPT_MAX));
    const { entries } = list.run("list", { count: PAGE_ENTRIES_MAX });
    expect(entries[0]?.id).to.equal(id(CRAWLS_KEPT_MAX));
    list.run("expired", { id: id(1) });
    list.run("admit", {});
  });

  it("the stored state loads again", () => {
    const list = new List();
    list.run("admit", {});
    list.start(1);
    list.end(1, "completed");
    expect(CrawlListState.parse(JSON.parse(JSON.stringify(list.state)))).to.deep.equal(list.state);
    const row = list.rows.get(id(1));
    expect(CrawlListRow.parse(JSON.parse(JSON.stringify(row)))).to.deep.equal(row);
  });
});
