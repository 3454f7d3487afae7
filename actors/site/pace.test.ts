import { expect } from "chai";
import {
  HOST_REQUESTS_IN_FLIGHT_MAX,
  TURN_LEAD_MS,
  TURN_MS_MAX,
  TURN_OVERDUE_MS,
  TURN_REQUESTS_MAX,
  TURNS_AHEAD_MAX,
} from "../../schemas/crawl-limits.ts";
import { SeededRandom } from "../../scripts/testing/seeded-random.ts";
import {
  begin,
  finish,
  type Granted,
  grant,
  IDLE_PACE,
  nextLookAt,
  stayAway,
  want,
} from "./pace.ts";

describe("pace", () => {
  it("grant() gives one turn ahead where there is a delay, and the next when that begins", () => {
    const site = new SimulatedSite(500);
    site.want("a", "job", 3);
    expect(site.grant()).to.have.length(1);
    expect(site.grant()).to.have.length(0);
    expect(site.begin("t1")).to.equal(0);
    expect(site.grant().map(({ dueInMs }) => dueInMs)).to.deep.equal([500]);
    site.now += 480;
    expect(site.begin("t2")).to.equal(20);
    site.grant();
    expect(site.begin("t3")).to.equal(520);
    expect(site.grant()).to.have.length(0);
  });

  it("grant() serves accounts by turns, and an account's jobs by turns", () => {
    const site = new SimulatedSite(500);
    site.want("a", "a1", 3);
    site.want("a", "a2", 3);
    site.want("b", "b1", 3);
    expect(site.serve(9).join(" ")).to.equal("a1 b1 a2 b1 a1 b1 a2 a1 a2");
  });

  it("want() replaces what a job wanted, and 0 takes it off the list", () => {
    const site = new SimulatedSite(500);
    site.want("a", "a1", 3);
    site.want("a", "a1", 1);
    site.want("b", "b1", 2);
    site.want("b", "b1", 0);
    expect(site.serve(5)).to.deep.equal(["a1"]);
  });

  it("begin() knows nothing of a turn that was finished or never granted", () => {
    const site = new SimulatedSite(500);
    site.want("a", "a1", 1);
    site.grant();
    site.pace = finish(site.pace, "t1");
    expect(site.begin("t1")).to.equal(undefined);
    expect(site.begin("t9")).to.equal(undefined);
  });

  it("grant() shares HOST_REQUESTS_IN_FLIGHT_MAX among who waits where there is no delay", () => {
    const site = new SimulatedSite(0);
    site.want("a", "a1", 1_000);
    site.want("b", "b1", 1_000);
    const granted = site.grant();
    expect(granted.map(({ job, atOnce }) => [job, atOnce])).to.deep.equal([
      ["a1", HOST_REQUESTS_IN_FLIGHT_MAX / 2],
      ["b1", HOST_REQUESTS_IN_FLIGHT_MAX / 2],
    ]);
    expect(granted[0]?.requests).to.equal(TURN_REQUESTS_MAX);
    expect(site.grant()).to.have.length(0);
    site.pace = finish(site.pace, "t1");
    expect(site.grant()).to.have.length(1);
  });

  it("grant() never has more requests in flight than that, nor a turn for requests nobody wants", () => {
    const site = new SimulatedSite(0);
    for (let job = 0; job < 20; job++) site.want("a", `job${job}`, 1);
    const granted = site.grant();
    expect(granted).to.have.length(HOST_REQUESTS_IN_FLIGHT_MAX);
    expect(granted.every(({ requests, atOnce }) => requests === 1 && atOnce === 1)).to.equal(true);
  });

  it("grant() gives a turn beside one that is overdue, up to TURNS_AHEAD_MAX", () => {
    const site = new SimulatedSite(500);
    site.want("a", "a1", 100);
    site.grant();
    site.now += TURN_OVERDUE_MS - 1;
    expect(site.grant()).to.have.length(0);
    expect(nextLookAt(site.pace, 500)).to.be.at.most(site.now + 1);
    let granted = 1;
    for (let look = 0; look < 20; look++) {
      site.now += TURN_OVERDUE_MS;
      granted += site.grant().length;
    }
    expect(granted).to.equal(TURNS_AHEAD_MAX);
    // All of them come alive at once, and are still as far from each other.
    const waits = ["t1", "t2", "t3", "t4"].map((turn) => site.begin(turn));
    expect(waits).to.deep.equal([0, 500, 1_000, 1_500]);
  });

  it("grant() forgets a turn TURN_MS_MAX after it began", () => {
    const site = new SimulatedSite(0);
    site.want("a", "a1", 1_000);
    site.grant();
    site.begin("t1");
    site.now += TURN_MS_MAX - 1;
    expect(site.grant()).to.have.length(0);
    site.now += 1;
    expect(site.grant()).to.have.length(1);
    expect(site.begin("t1")).to.equal(undefined);
  });

  it("grant() keeps turns back until they are due in TURN_LEAD_MS", () => {
    const site = new SimulatedSite(60_000);
    site.want("a", "a1", 10);
    site.grant();
    site.begin("t1");
    expect(site.grant()).to.have.length(0);
    expect(nextLookAt(site.pace, 60_000)).to.equal(site.now + 60_000 - TURN_LEAD_MS);
    site.now += 60_000 - TURN_LEAD_MS;
    expect(site.grant()).to.have.length(1);
  });

  it("stayAway() holds the next start back, and only ever longer", () => {
    const site = new SimulatedSite(500);
    site.want("a", "a1", 10);
    site.grant();
    site.pace = stayAway(site.pace, site.now + 3_000);
    site.pace = stayAway(site.pace, site.now + 1_000);
    expect(site.begin("t1")).to.equal(3_000);
  });

  it("starts are never early and at most 5 % late over 100 requests, whatever workers do and whoever dies", () => {
    for (let seed = 1; seed <= 50; seed++) {
      const { starts, ideal } = simulate(seed);
      const gaps = starts.slice(1).map((start, index) => start - (starts[index] ?? 0));
      expect(Math.min(...gaps), `seed ${seed}`).to.be.at.least(500);
      const took = (starts.at(-1) ?? 0) - (starts[0] ?? 0);
      expect(took, `seed ${seed}`).to.be.at.most(ideal * 1.05);
    }
  });
});

/** 100 requests of three jobs over a site: tasks take 5 to 200 ms to reach a worker; two of the workers die on the way. */
function simulate(seed: number): { starts: number[]; ideal: number } {
  const random = new SeededRandom(seed);
  const site = new SimulatedSite(500);
  site.want("a", "a1", 60);
  site.want("a", "a2", 60);
  site.want("b", "b1", 60);
  const starts: number[] = [];
  const dead = new Set([`t${random.integer(10, 39)}`, `t${random.integer(50, 79)}`]);
  const arriving: { turn: string; at: number }[] = [];
  while (starts.length < 100) {
    for (const { turn, dueInMs } of site.grant()) {
      if (dead.has(turn)) continue;
      // A worker gets ready a little before the turn is due; what comes late begins late.
      arriving.push({
        turn,
        at: Math.max(site.now + random.integer(5, 200), site.now + dueInMs - 10),
      });
    }
    for (const arrived of arriving.filter(({ at }) => at <= site.now)) {
      arriving.splice(arriving.indexOf(arrived), 1);
      const waitMs = site.begin(arrived.turn);
      if (waitMs !== undefined) {
        starts.push(site.now + waitMs);
        site.pace = finish(site.pace, arrived.turn);
      }
    }
    site.now += 1;
  }
  return { starts: starts.toSorted((one, other) => one - other), ideal: 99 * 500 };
}

class SimulatedSite {
  now = 1_000_000;
  pace: ReturnType<typeof want> = IDLE_PACE;
  readonly #delayMs: number;
  #turns = 0;

  constructor(delayMs: number) {
    this.#delayMs = delayMs;
  }

  want(account: string, job: string, wants: number): void {
    this.pace = want(this.pace, account, job, wants);
  }

  grant(): Granted[] {
    const { pace, granted } = grant(this.pace, {
      delayMs: this.#delayMs,
      now: this.now,
      newId: () => {
        this.#turns += 1;
        return `t${this.#turns}`;
      },
    });
    this.pace = pace;
    return granted;
  }

  begin(turn: string): number | undefined {
    const begun = begin(this.pace, turn, { delayMs: this.#delayMs, now: this.now });
    if (begun) this.pace = begun.pace;
    return begun?.waitMs;
  }

  /** The jobs that are served, one after the other. */
  serve(turnsMax: number): string[] {
    const jobs: string[] = [];
    for (let turn = 0; turn < turnsMax; turn++) {
      const [granted] = this.grant();
      if (!granted) break;
      jobs.push(granted.job);
      this.now += 500;
      this.begin(granted.turn);
      this.pace = finish(this.pace, granted.turn);
    }
    return jobs;
  }
}
