import { expect } from "chai";
import {
  CRAWL_DELAY_MS,
  HOST_AWAY_MS,
  HOST_REQUESTS_IN_FLIGHT_MAX,
  TURN_LATE_MS,
  TURN_REQUESTS_MAX,
} from "../../../schemas/crawl/limits.ts";
import { LEASE_TTL_MS } from "../../../schemas/limits.ts";
import { SeededRandom } from "../../../scripts/testing/seeded-random.ts";
import {
  EARLY_LOOK_MS_MAX,
  type Simulated,
  type Simulation,
  simulate,
} from "../../../scripts/testing/site-simulation.ts";
import { TURN_SPACED_REQUESTS_MAX, TURN_SPAN_MS, TURNS_STARTED_MAX } from "./host-capacity.ts";
import { TURN_GO_MS_MAX } from "./next-turn.ts";
import { SITE_VISITS_MAX } from "./site.ts";

const HOUR_MS = 3_600_000;
const CALM = { deaths: 0, lateness: 0, pageMs: [20, 400] as [number, number] };
/** Time lost by a dead or late worker: the longest lateness of its request, and the time to grant another turn. */
const LOST_MS_MAX = TURN_LATE_MS + 2 * CRAWL_DELAY_MS;
/** The bus delivers reminders up to a second late. */
const LOOK_LATE_MS_MAX = 1_000;
/** Time at the end of a crawl during which the last task may be returned to its job several times. */
const TAIL_MS_MAX = 60_000;
/** The delay of the last turn's end when two of eight concurrent requests may run. */
const LAST_TURN_MS_MAX = TURN_REQUESTS_MAX * 10 * (1 / 2 - 1 / 8);
const JOBS = { 1: [40, 40], 2: [40], 3: [40, 40, 40] };
/** With jobs of two accounts, each turn has one request. With a single job, turns have several requests. */
const TWO_OR_ONE = [{ 1: [60], 2: [60] }, { 1: [120] }] as Simulation["jobs"][];

describe("site, simulated", function () {
  this.timeout(60_000);

  it("stays within 3 % of the ideal pace over 100 requests, and is never early", () => {
    for (const seed of seeds(5)) {
      for (const jobs of TWO_OR_ONE) {
        const { starts } = simulate({ ...CALM, seed, jobs });
        const hundred = starts.slice(0, 101);
        expectGaps(hundred, CRAWL_DELAY_MS, seed);
        const took = (hundred.at(-1) ?? 0) - (hundred[0] ?? 0);
        expect(took, `seed ${seed}`).to.be.at.most(100 * CRAWL_DELAY_MS * 1.03);
      }
    }
  });

  it("grants a single job the requests of TURN_SPAN_MS in a turn, and at a slow host no more than the limit in flight", () => {
    for (const crawlDelayMs of [50, 500, 1_000, 5_000]) {
      const span = Math.max(1, TURN_SPAN_MS / crawlDelayMs);
      const several = Math.min(TURN_SPACED_REQUESTS_MAX, span);
      for (const seed of seeds(3)) {
        const simulation: Simulation = { ...CALM, seed, crawlDelayMs, jobs: { 1: [100] } };
        const quick = simulate({ ...simulation, pageMs: [5, crawlDelayMs] });
        expectServed(quick, simulation);
        expectGaps(quick.starts, crawlDelayMs, seed);
        expect(quick.grants.length, `seed ${seed}`).to.be.at.most((1.3 * 100) / several + 2);
        const slow = simulate({ ...simulation, pageMs: [20_000, 25_000] });
        expectServed(slow, simulation);
        expectGaps(slow.starts, crawlDelayMs, seed);
        expect(slow.inFlightMax, `seed ${seed}`).to.be.at.most(
          TURNS_STARTED_MAX + TURN_SPACED_REQUESTS_MAX,
        );
      }
    }
  });

  it("continues after pauses that a host requests now and then, none longer than the one before", () => {
    for (const awayEvery of [3, 4, 5]) {
      for (const seed of seeds(3)) {
        const simulation = { ...CALM, seed, jobs: { 1: [60] }, awayEvery };
        const simulated = simulate(simulation);
        expectGaps(simulated.starts, CRAWL_DELAY_MS, seed);
        expectServed(simulated, simulation);
        const { length } = simulated.starts;
        const pauses = Math.ceil(length / awayEvery) * (HOST_AWAY_MS + LOOK_LATE_MS_MAX);
        expect(simulated.tookMs, `seed ${seed}`).to.be.at.most(length * 600 + pauses);
      }
    }
  });

  it("keeps its pace if a few pages are slow, whatever the delay", () => {
    for (const crawlDelayMs of [100, 250, 500]) {
      for (const seed of seeds(3)) {
        const simulation: Simulation = {
          ...{ ...CALM, seed, crawlDelayMs, jobs: { 1: [300] } },
          ...{ slow: 0.02, slowMs: [10_000, 20_000] },
        };
        const simulated = simulate(simulation);
        expectServed(simulated, simulation);
        const gaps = simulated.starts
          .slice(1)
          .map((at, index) => at - (simulated.starts[index] ?? 0));
        expect(Math.max(...gaps), `seed ${seed}`).to.be.at.most(5_000);
      }
    }
  });

  it("is never early when the site's host dies, loses no request, and at most the outage and one slot of time", () => {
    for (const seed of seeds(3)) {
      for (const awayMs of [500, 1_000, LEASE_TTL_MS]) {
        const hostDeath = { afterRequests: 30 + (seed % 40), awayMs };
        const jobs = TWO_OR_ONE[seed % 2] ?? {};
        const simulation = { ...CALM, seed, jobs, hostDeath };
        const simulated = simulate(simulation);
        expectGaps(simulated.starts, CRAWL_DELAY_MS, seed);
        expectServed(simulated, simulation);
        const took = (simulated.starts[100] ?? 0) - (simulated.starts[0] ?? 0);
        const ideal = 100 * CRAWL_DELAY_MS;
        expect(took, `seed ${seed}`).to.be.at.most(ideal * 1.03 + awayMs + CRAWL_DELAY_MS);
        // If another actor host takes over within two delays, the outage makes the crawl at most 5 % slower.
        if (awayMs <= 1_000) expect(took, `seed ${seed}`).to.be.at.most(ideal * 1.05);
      }
    }
  });

  it("is never early, loses no slot for long and starves no job, whichever process dies, is late or repeats messages", () => {
    for (const seed of seeds(20)) {
      const jobs = seed % 2 === 0 ? JOBS : { 1: [240] };
      const simulation = { seed, jobs, deaths: 0.01, lateness: 0.03, pageMs: CALM.pageMs };
      const simulated = simulate(simulation);
      expectGaps(simulated.starts, CRAWL_DELAY_MS, seed);
      expectServed(simulated, simulation);
      const ideal = simulated.starts.length * CRAWL_DELAY_MS;
      // Each dead or late worker costs time, until the site is certain that its request can no longer leave.
      const lost = (simulated.deaths + simulated.delays) * LOST_MS_MAX;
      expect(simulated.tookMs, `seed ${seed}`).to.be.at.most(ideal * 1.03 + lost + TAIL_MS_MAX);
    }
  });

  it("keeps every delay, and pauses no longer, when the time of day is set back or forward by hours", () => {
    for (const crawlDelayMs of [100, 500, 3_000, 10_000]) {
      for (const byMs of [-3 * HOUR_MS, -2_000, 2_000, 3 * HOUR_MS]) {
        for (const seed of seeds(3)) {
          const clockSet = { afterRequests: 5 + (seed % 10), byMs };
          const jobs = seed % 2 === 0 ? { 1: [15], 2: [15] } : { 1: [30] };
          expectNoPause({ ...CALM, seed, crawlDelayMs, jobs, clockSet }, crawlDelayMs);
        }
      }
    }
  });

  it("keeps every delay, and begins it anew once, if another process serves the site after a clock was set back", () => {
    for (const crawlDelayMs of [100, 500, 3_000, 10_000]) {
      for (const byMs of [-3 * HOUR_MS, -2_000]) {
        for (const seed of seeds(3)) {
          const clockSet = { afterRequests: 5 + (seed % 10), byMs, moves: true };
          const jobs = seed % 2 === 0 ? { 1: [15], 2: [15] } : { 1: [30] };
          // The next process knows neither when the last request left, nor whether a worker may still send one.
          const pauseMs = 2 * crawlDelayMs + TURN_GO_MS_MAX + TURN_LATE_MS;
          expectNoPause({ ...CALM, seed, crawlDelayMs, jobs, clockSet }, pauseMs);
        }
      }
    }
  });

  it("keeps longer and shorter delays alike", () => {
    for (const crawlDelayMs of [100, 3_000, 10_000]) {
      for (const seed of seeds(3)) {
        const simulation = {
          ...{ seed, crawlDelayMs, jobs: seed % 2 === 0 ? { 1: [15], 2: [15] } : { 1: [60] } },
          ...{ deaths: 0.01, lateness: 0.03, pageMs: CALM.pageMs },
        };
        const simulated = simulate(simulation);
        expectGaps(simulated.starts, crawlDelayMs, seed);
        expectServed(simulated, simulation);
      }
    }
  });

  it("serves accounts by turns, then jobs, while all of them want requests", () => {
    for (const seed of seeds(5)) {
      const { grants } = simulate({ ...CALM, seed, jobs: JOBS });
      // All three accounts want requests during these grants: the only job of the second account wants 40.
      const shared = grants.slice(0, 3 * 38);
      for (let end = 3; end <= shared.length; end++) {
        expectEven(
          countBy(shared.slice(0, end), ({ account }) => account),
          seed,
        );
      }
      const third = shared.filter(({ account }) => account === shared[2]?.account);
      expectEven(
        countBy(third, ({ job }) => job),
        seed,
      );
    }
  });

  it("alternates jobs with visits that never end: redirects of other hosts' robots.txt starve no job", () => {
    for (const crawlDelayMs of [500, 3_000, 10_000]) {
      for (const visits of [1, 2, SITE_VISITS_MAX]) {
        for (const seed of seeds(2)) {
          for (const jobs of [{ 1: [15], 2: [15] }, { 1: [30] }] as Simulation["jobs"][]) {
            const simulation: Simulation = { ...CALM, seed, crawlDelayMs, jobs, visits };
            const simulated = simulate(simulation);
            const what = `seed ${seed}, ${crawlDelayMs} ms, ${visits} visits`;
            expectGaps(simulated.starts, crawlDelayMs, seed);
            expectServed(simulated, simulation);
            const made = simulated.starts.length - simulated.visitStarts;
            expect(simulated.tookMs, what).to.be.at.most((2 * made + 4) * crawlDelayMs * 1.03);
            // The visits are served too, unless a single one was between its requests.
            if (visits > 1) expect(simulated.visitStarts, what).to.be.at.least(0.4 * made);
          }
        }
      }
    }
  });

  it("leaves jobs their share of a host without a delay while visits never end", () => {
    for (const seed of seeds(3)) {
      const simulation: Simulation = {
        ...{ ...CALM, seed, crawlDelayMs: 0, jobs: { 1: [4_000] } },
        ...{ visits: SITE_VISITS_MAX, pageMs: [10, 10] },
      };
      const simulated = simulate(simulation);
      expectServed(simulated, simulation);
      // One job and all visits together have half of the host each.
      const ideal = (4_000 * 10) / (HOST_REQUESTS_IN_FLIGHT_MAX / 2);
      expect(simulated.tookMs, `seed ${seed}`).to.be.at.most(ideal * 1.2 + LAST_TURN_MS_MAX);
      expect(simulated.visitStarts, `seed ${seed}`).to.be.above(100);
    }
  });

  it("keeps HOST_REQUESTS_IN_FLIGHT_MAX requests in flight, and no more, if there is no delay", () => {
    for (const seed of seeds(5)) {
      const jobs = { 1: [8_000], 2: [4_000, 4_000] };
      const simulation = {
        ...CALM,
        seed,
        crawlDelayMs: 0,
        jobs,
        pageMs: [10, 10] as [number, number],
      };
      const simulated = simulate(simulation);
      expect(simulated.inFlightMax, `seed ${seed}`).to.equal(HOST_REQUESTS_IN_FLIGHT_MAX);
      expectServed(simulated, simulation);
      const ideal = (16_000 * 10) / HOST_REQUESTS_IN_FLIGHT_MAX;
      expect(simulated.tookMs, `seed ${seed}`).to.be.at.most(ideal * 1.1 + LAST_TURN_MS_MAX);
    }
  });

  it("finishes without a delay too when workers die or are late", () => {
    for (const seed of seeds(5)) {
      const simulation: Simulation = {
        ...{ seed, crawlDelayMs: 0, jobs: { 1: [2_000], 2: [5, 1] } },
        ...{ deaths: 0.05, lateness: 0.05, pageMs: [5, 40] },
      };
      expectServed(simulate(simulation), simulation);
    }
  });
});

/** Seeds of this run. A failure prints its seed. */
function seeds(count: number): number[] {
  const first = SeededRandom.newSeed();
  return Array.from({ length: count }, (_, index) => (first + index) >>> 0);
}

function expectGaps(starts: readonly number[], delayMs: number, seed: number): void {
  const gaps = starts.slice(1).map((start, index) => start - (starts[index] ?? 0));
  expect(Math.min(...gaps), `seed ${seed}`).to.be.at.least(delayMs);
}

/** Checks that no request is early, and that none is later than this and the time until the site looks. */
function expectNoPause(simulation: Simulation, pauseMs: number): void {
  const { seed, clockSet, crawlDelayMs = CRAWL_DELAY_MS } = simulation;
  const simulated = simulate(simulation);
  expectGaps(simulated.starts, crawlDelayMs, seed);
  expectServed(simulated, simulation);
  const gaps = simulated.starts.slice(1).map((at, index) => at - (simulated.starts[index] ?? 0));
  const what = `seed ${seed}, ${crawlDelayMs} ms, set by ${clockSet?.byMs} ms`;
  const lookMs = EARLY_LOOK_MS_MAX + LOOK_LATE_MS_MAX + TURN_LATE_MS;
  expect(Math.max(...gaps), what).to.be.at.most(pauseMs + lookMs);
}

function expectServed({ made }: Simulated, { jobs, seed }: Simulation): void {
  const wanted = Object.values(jobs).flat();
  expect([...made.values()].toSorted(), `seed ${seed}`).to.deep.equal(wanted.toSorted());
}

/**
 * Checks that the counts differ by at most 2. One may be ahead, because its job came first and was served alone until
 * the others arrived.
 */
function expectEven(counts: number[], seed: number): void {
  expect(Math.max(...counts) - Math.min(...counts), `seed ${seed}`).to.be.at.most(2);
}

const countBy = <T>(items: readonly T[], key: (item: T) => string) =>
  Object.values(Object.groupBy(items, key)).map((group) => group?.length ?? 0);
