import { expect } from "chai";
import { DELIVERIES_TRIMMED_AT_ONCE, EVENT_IDS_MAX } from "../../../../schemas/apps/limits.ts";
import { ROW_BYTES_MAX, TRANSITION_ROWS_MAX } from "../../../../schemas/limits.ts";
import { SeededRandom } from "../../../../scripts/testing/seeded-random.ts";
import { countOf, hasNumber, type NumberRuns, withoutNumber, withRun } from "./number-runs.ts";
import {
  forgetOld,
  GENERATION_IDS_MAX,
  IDS_ROW_CHARS_MAX,
  type RecentDays,
  type RecentId,
  type RecentIdsRow,
  recall,
  recentId,
  remember,
} from "./recent-ids.ts";

const DAY_MS = 86_400_000;

describe("number-runs", () => {
  it("withRun() and withoutNumber() do as a set does, and keep runs apart and in order", () => {
    const seed = 7;
    const random = new SeededRandom(seed);
    const upTo = (max: number) => random.integer(0, max);
    let runs: NumberRuns = [];
    const set = new Set<number>();
    for (let step = 0; step < 2_000; step++) {
      const from = upTo(59);
      const to = from + upTo(3);
      if (step % 2 === 0) {
        runs = withRun(runs, from, to);
        for (let number = from; number <= to; number++) set.add(number);
      } else {
        runs = withoutNumber(runs, from);
        set.delete(from);
      }
      expect(countOf(runs), `seed ${seed}, step ${step}`).to.equal(set.size);
      for (let number = 0; number < 64; number++) {
        expect(hasNumber(runs, number)).to.equal(set.has(number));
      }
      for (const [index, [first, last]] of runs.entries()) {
        expect(first).to.be.at.most(last);
        expect(first).to.be.greaterThan((runs[index - 1]?.[1] ?? -2) + 1);
      }
    }
  });
});

describe("recent-ids", () => {
  it("forgetOld() lets the oldest days go past the number of ids, and never the last", () => {
    const rows = new Map<string, RecentIdsRow>();
    let days: RecentDays = [];
    const keptMs = 7 * DAY_MS;
    for (let day = 0; day < 3; day++) {
      for (let i = 0; i < 10; i++) {
        const now = (20_000 + day) * DAY_MS;
        const next = remember({ rows, days, now }, recentId(`${day} ${i}`), 10 * day + i);
        for (const [row, value] of Object.entries(next.rows)) if (value) rows.set(row, value);
        ({ days } = next);
      }
    }
    const now = 20_002 * DAY_MS;
    for (let day = 0; day < 3; day++) {
      for (let i = 0; i < 10; i++) {
        expect(recall({ rows, days, now, keptMs }, recentId(`${day} ${i}`))).to.equal(10 * day + i);
      }
    }
    const left = (idsMax: number) =>
      forgetOld({ rows, days, now }, { keptMs, idsMax }).days.map(({ count }) => count);
    expect(left(30)).to.deep.equal([10, 10, 10]);
    expect(left(29)).to.deep.equal([10, 10]);
    expect(left(1)).to.deep.equal([10]);
    const later = { rows, days, now: now + 8 * DAY_MS };
    const gone = forgetOld(later, { keptMs, idsMax: 100 });
    expect(gone.days).to.deep.equal([]);
    expect(new Set(Object.keys(gone.rows))).to.deep.equal(new Set(rows.keys()));
  });

  /** The ids of one log, all remembered on the same day. */
  class Memory {
    readonly rows = new Map<string, RecentIdsRow>();
    days: RecentDays = [];
    readonly #now = 20_000 * DAY_MS;

    remember(id: RecentId, number: number): void {
      const next = remember({ rows: this.rows, days: this.days, now: this.#now }, id, number);
      for (const [row, value] of Object.entries(next.rows)) {
        if (value === null) this.rows.delete(row);
        else this.rows.set(row, value);
      }
      this.days = next.days;
    }

    recall(id: RecentId): number | undefined {
      const { rows, days } = this;
      return recall({ rows, days, now: this.#now, keptMs: 7 * DAY_MS }, id);
    }

    longestRow(): number {
      return Math.max(...[...this.rows.values()].map(({ ids }) => ids.length));
    }
  }

  it("remember() begins a generation after GENERATION_IDS_MAX ids, and the first ones are still known", () => {
    const memory = new Memory();
    const idOf = (number: number) => recentId(`event ${number}`);
    for (let number = 0; number <= GENERATION_IDS_MAX; number++) {
      memory.remember(idOf(number), number);
    }
    expect(memory.days).to.deep.equal([
      { day: 20_000, count: GENERATION_IDS_MAX },
      { day: 20_000, generation: 1, count: 1 },
    ]);
    for (const number of [0, 1, GENERATION_IDS_MAX - 1, GENERATION_IDS_MAX]) {
      expect(memory.recall(idOf(number))).to.equal(number);
    }
    const { part } = idOf(GENERATION_IDS_MAX);
    expect([...memory.rows.keys()].at(-1)).to.equal(`ids/20000.1/${part}`);
    expect(memory.longestRow()).to.be.below(IDS_ROW_CHARS_MAX / 2);
  });

  it("remember() begins a generation when one row is long, as one of an earlier version may be", () => {
    const memory = new Memory();
    const idOf = (number: number) => ({ ...recentId(`event ${number}`), part: 7 });
    for (let number = 0; number < 20_000; number++) memory.remember(idOf(number), number);
    expect(memory.longestRow()).to.be.below(ROW_BYTES_MAX / 2);
    for (const number of [0, 10_000, 19_999]) {
      expect(memory.recall(idOf(number))).to.equal(number);
    }
    const early = new Memory();
    const full = " ".repeat(ROW_BYTES_MAX - 30);
    early.rows.set("ids/20000/7", { row: "ids", ids: `${full} ${idOf(1).hash}=1` });
    early.days = [{ day: 20_000, count: 890_000 }];
    early.remember(idOf(2), 2);
    expect([early.recall(idOf(1)), early.recall(idOf(2))]).to.deep.equal([1, 2]);
    expect(early.days.map(({ generation }) => generation)).to.deep.equal([undefined, 1]);
  });

  it("remember() deletes the oldest generation past EVENT_IDS_MAX ids", () => {
    const memory = new Memory();
    memory.remember(recentId("first"), 1);
    memory.days = [
      { day: 20_000, count: EVENT_IDS_MAX - GENERATION_IDS_MAX },
      { day: 20_000, generation: 1, count: GENERATION_IDS_MAX },
    ];
    memory.remember(recentId("second"), 2);
    expect(memory.days).to.deep.equal([
      { day: 20_000, generation: 1, count: GENERATION_IDS_MAX },
      { day: 20_000, generation: 2, count: 1 },
    ]);
    expect(memory.rows).to.have.property("size", 1);
    expect(memory.recall(recentId("first"))).to.equal(undefined);
    expect(memory.recall(recentId("second"))).to.equal(2);
  });

  it("forgetOld() deletes no more rows at once than a transition may change", () => {
    const rows = new Map<string, RecentIdsRow>();
    let days: RecentDays = Array.from({ length: 9 }, (_, index) => ({
      ...{ day: 20_000, count: 1 },
      ...(index > 0 && { generation: index }),
    }));
    for (const { day, generation } of days) {
      const of = generation === undefined ? day : `${day}.${generation}`;
      for (let part = 0; part < 64; part++) rows.set(`ids/${of}/${part}`, { row: "ids", ids: "" });
    }
    const now = 20_030 * DAY_MS;
    let hasMore = true;
    for (let calls = 0; hasMore; calls++) {
      expect(calls).to.be.below(9);
      const old = forgetOld({ rows, days, now }, { keptMs: 7 * DAY_MS, idsMax: EVENT_IDS_MAX });
      // The same transition may delete two rows of each entry of the log.
      const changed = Object.keys(old.rows).length + 2 * DELIVERIES_TRIMMED_AT_ONCE;
      expect(changed).to.be.at.most(TRANSITION_ROWS_MAX);
      for (const row of Object.keys(old.rows)) rows.delete(row);
      ({ days, hasMore } = old);
    }
    expect([days.length, rows.size]).to.deep.equal([0, 0]);
  });
});
