import { expect } from "chai";
import { SeededRandom } from "../../../../scripts/testing/seeded-random.ts";
import { countOf, hasNumber, type NumberRuns, withoutNumber, withRun } from "./number-runs.ts";
import {
  forgetOld,
  type RecentDays,
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
        for (const [row, value] of Object.entries(next.rows)) rows.set(row, value);
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
});
