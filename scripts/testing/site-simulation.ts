/**
 * Simulates a site with workers that are late, die and repeat their requests. The simulated clock jumps from event to
 * event.
 */
import { CRAWL_DELAY_MS, TURN_LATE_MS, TURN_MS_MAX } from "../../schemas/crawl/limits.ts";
import { TASK_ACK_WAIT_MS } from "../../schemas/limits.ts";
import { SeededRandom } from "./seeded-random.ts";
import { hex, rulesOutcome, SiteDriver } from "./site-driver.ts";

export interface Simulation {
  seed: number;
  /** The Crawl-delay of robots.txt. If undefined, the default delay applies. */
  crawlDelayMs?: number;
  /** For each account, the number of requests of each of its jobs. */
  jobs: Record<string, number[]>;
  /** Probability that a worker dies, at each point where it can die. */
  deaths: number;
  /** Probability that a worker or a message is delayed by up to 3 s. */
  lateness: number;
  pageMs: [number, number];
  /** Probability that a page takes `slowMs` instead of `pageMs`. */
  slow?: number;
  slowMs?: [number, number];
  /** Number of visits that are always open: requests for a robots.txt that other hosts redirect to this host. */
  visits?: number;
  /** The server answers every `awayEvery`-th request with 429. */
  awayEvery?: number;
  /**
   * The host of the site actor dies after `afterRequests` requests. The site actor is then unreachable for `awayMs`.
   */
  hostDeath?: { afterRequests: number; awayMs: number };
  /**
   * After some requests, the time of day is set forward by `byMs`, or back if that is negative. With `moves`, the site
   * moves to another host process at the same time, which cannot notice that the time of day was set.
   */
  clockSet?: { afterRequests: number; byMs: number; moves?: boolean };
}

/** A host delivers pending reminders within this time after the time of day was set back. */
export const EARLY_LOOK_MS_MAX = 4_000;

export interface Simulated {
  /** The times at which requests were sent, in order, and the number of those that were visits. */
  starts: number[];
  visitStarts: number;
  /** The account, the job and the number of requests of each granted turn. */
  grants: { account: string; job: string; requests: number }[];
  deaths: number;
  /** Number of late messages and workers. */
  delays: number;
  inFlightMax: number;
  /** Requests made, by job. */
  made: Map<string, number>;
  tookMs: number;
}

/** Ids of visits are above the ids of jobs and of turns. */
const VISIT_IDS = 1_000_000_000;
const ASKING = { purposes: ["search" as const] };

interface Job {
  account: string;
  job: string;
  queued: number;
}

export function simulate(simulation: Simulation): Simulated {
  return new SimulatedWorld(simulation).run();
}

class SimulatedWorld {
  readonly #random: SeededRandom;
  readonly #simulation: Simulation;
  readonly #site = new SiteDriver({ now: 1_000_000_000 });
  readonly #jobs = new Map<string, Job>();
  readonly #events: { at: number; order: number; run: () => void }[] = [];
  readonly #result: Simulated;
  #order = 0;
  #inFlight = 0;
  /** Turns that end early because the web server's response asked for a pause. */
  readonly #left = new Set<string>();
  #lookAt = Number.POSITIVE_INFINITY;
  /** Time until which the site actor is unreachable. */
  #backAt = 0;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
    this.#random = new SeededRandom(simulation.seed);
    const made = new Map<string, number>();
    this.#result = {
      starts: [],
      visitStarts: 0,
      grants: [],
      deaths: 0,
      delays: 0,
      inFlightMax: 0,
      made,
      tookMs: 0,
    };
  }

  run(): Simulated {
    const { crawlDelayMs } = this.#simulation;
    const site = this.#site;
    site.process = "a process";
    site.tell("consult", { scheme: "https", intent: ASKING });
    const turn = site.fetched(rulesOutcome(crawlDelayMs === undefined ? {} : { crawlDelayMs }));
    site.tell("turnFinished", { turn });
    site.now += 60_000;
    const startedAt = site.now;
    Object.entries(this.#simulation.jobs).forEach(([account, jobs], number) => {
      jobs.forEach((queued, index) => {
        const job = hex(1_000 * (number + 1) + index);
        this.#jobs.set(job, { account: hex(Number(account)), job, queued });
        this.#want(job, true);
      });
    });
    for (let number = 0; number < (this.#simulation.visits ?? 0); number++) this.#visit();
    const giveUpAt = startedAt + 3_600_000;
    while (!this.#isDone) {
      this.#events.sort((one, other) => one.at - other.at || one.order - other.order);
      const event = this.#events.shift();
      if (!event || event.at > giveUpAt) break;
      site.now = Math.max(site.now, event.at);
      event.run();
    }
    this.#result.tookMs = site.now - startedAt;
    this.#result.starts.sort((one, other) => one - other);
    return this.#result;
  }

  get #isDone(): boolean {
    const wanted = Object.values(this.#simulation.jobs).flat();
    const made = [...this.#result.made.values()].reduce((sum, one) => sum + one, 0);
    return made >= wanted.reduce((sum, one) => sum + one, 0);
  }

  #after(ms: number, run: () => void): void {
    this.#events.push({ at: this.#site.now + ms, order: this.#order++, run });
  }

  /** Runs `run` after `ms`, but not while the site actor is unreachable, because messages wait for it. */
  #reach(ms: number, run: () => void): void {
    this.#after(ms, () => {
      const awayMs = this.#backAt - this.#site.now;
      if (awayMs > 0) this.#reach(awayMs + this.#random.integer(1, 4), run);
      else run();
    });
  }

  /** Returns the transit time of a message in ms, up to 3 s if the message is late. */
  #transit(): number {
    return this.#delay(100) || this.#random.integer(1, 4);
  }

  #delay(leastMs: number): number {
    if (!this.#random.chance(this.#simulation.lateness)) return 0;
    this.#result.delays += 1;
    return this.#random.integer(leastMs, 3_000);
  }

  /** Delivers a message to the site, and schedules the resulting grants and reminders. */
  #tell<T>(tell: (site: SiteDriver) => T): T {
    const reply = tell(this.#site);
    for (const { key, message, input } of this.#site.sent) {
      if (message !== "turnGranted") continue;
      const { turn, requests } = input as { turn: string; requests: number };
      const account = this.#jobs.get(key)?.account ?? "";
      this.#result.grants.push({ account, job: key, requests });
      this.#after(this.#random.integer(5, 30), () => this.#granted(key, turn, requests));
    }
    const { lookAt } = this.#site;
    if (lookAt !== undefined && lookAt < this.#lookAt) {
      this.#lookAt = lookAt;
      this.#lookWhenDue(lookAt);
    }
    return reply;
  }

  /** Delivers the reminder when it is due by the time of day. The bus delivers it up to a second late. */
  #lookWhenDue(lookAt: number): void {
    const waitMs = Math.max(0, lookAt - this.#site.now - this.#site.aheadMs);
    this.#after(waitMs + this.#random.integer(1, 1_000), () => {
      if (this.#lookAt !== lookAt) return;
      if (lookAt > this.#site.now + this.#site.aheadMs) this.#lookWhenDue(lookAt);
      else this.#look();
    });
  }

  #look(): void {
    this.#lookAt = Number.POSITIVE_INFINITY;
    this.#site.lookAt = undefined;
    this.#reach(0, () => this.#tell((site) => site.tell("look", {})));
  }

  /** Sets the time of day, at a random moment before the next request. */
  #setClock({ byMs, moves = false }: NonNullable<Simulation["clockSet"]>): void {
    const { crawlDelayMs = CRAWL_DELAY_MS } = this.#simulation;
    this.#after(this.#random.integer(0, crawlDelayMs), () => {
      this.#site.aheadMs += byMs;
      if (moves) this.#site.process = "another process";
      const lookAt = this.#lookAt;
      if (lookAt === Number.POSITIVE_INFINITY) return;
      if (byMs > 0) this.#lookWhenDue(lookAt);
      else {
        this.#after(this.#random.integer(1, EARLY_LOOK_MS_MAX), () => {
          if (this.#lookAt === lookAt) this.#look();
        });
      }
    });
  }

  #want(job: string, first = false): void {
    const { account, queued } = this.#jobs.get(job) as Job;
    const tell = first ? [{ scheme: "https" as const, intent: ASKING }] : [];
    const once = () =>
      this.#reach(0, () =>
        this.#tell((site) => site.tell("want", { account, job, wants: queued, tell })),
      );
    once();
    if (this.#random.chance(this.#simulation.lateness)) once();
  }

  #granted(job: string, turn: string, requests: number): void {
    const known = this.#jobs.get(job) as Job;
    const taken = Math.min(requests, known.queued);
    known.queued -= taken;
    if (taken === 0)
      this.#reach(0, () => this.#tell((site) => site.tell("turnFinished", { turn })));
    else {
      const work = { job, turn, nth: 0, requests: taken, attempt: 1 };
      this.#after(this.#random.integer(2, 100), () => this.#work(work));
    }
  }

  /**
   * Decides whether the worker dies at this point. Its task then goes to another worker, or its requests go back to
   * the job. When the first worker has begun the turn, another worker cannot use that turn.
   */
  #dies(work: Work): boolean {
    if (!this.#random.chance(this.#simulation.deaths)) return false;
    this.#result.deaths += 1;
    this.#after(TASK_ACK_WAIT_MS, () => {
      const { job, turn, nth, requests, attempt } = work;
      if (nth > 0) {
        this.#reach(0, () => this.#tell((site) => site.tell("turnFinished", { turn, lost: true })));
        this.#giveBack(job, requests);
      } else if (attempt < 3) this.#work({ ...work, attempt: attempt + 1 });
      else this.#giveBack(job, requests);
    });
    return true;
  }

  #giveBack(job: string, requests: number): void {
    const known = this.#jobs.get(job) as Job;
    known.queued += requests;
    this.#want(job);
  }

  /**
   * Makes the requests that are left in a turn: all of them if there is no delay between requests, otherwise only the
   * next one.
   */
  #work(work: Work): void {
    if (this.#dies(work)) return;
    const { job, turn, nth, requests } = work;
    const askedAt = this.#site.now;
    this.#reach(this.#transit(), () => {
      const asked = nth === 0 ? requests : 1;
      const urls = Array.from({ length: asked }, (_, one) => `https://a.example/${one}`);
      const begun = this.#tell((site) => site.tell("begin", { turn, nth, urls, intent: ASKING }));
      this.#after(this.#transit(), () => {
        if (begun.state === "gone") this.#giveBack(job, requests);
        else if (begun.state === "wait") {
          this.#after(begun.askAgainInMs, () => this.#work(work));
        } else {
          if (this.#dies(work)) return;
          const sleep = begun.waitMs + (this.#random.chance(0.5) ? 1 : 0);
          const stall = this.#delay(1);
          this.#after(sleep + stall, () => {
            const late = this.#site.now > askedAt + begun.waitMs + TURN_LATE_MS;
            if (late) this.#work(work);
            else {
              const lateMs = this.#site.now - askedAt - begun.waitMs;
              if (begun.spaced) this.#requestOne(work, lateMs);
              else this.#requestAll(work, begun.atOnce);
            }
          });
        }
      });
    });
  }

  #requestOne(work: Work, lateMs: number): void {
    const { job, turn, nth, requests } = work;
    this.#result.starts.push(this.#site.now);
    const { hostDeath, clockSet } = this.#simulation;
    if (clockSet && this.#result.starts.length === clockSet.afterRequests) this.#setClock(clockSet);
    if (this.#result.starts.length === hostDeath?.afterRequests) {
      this.#backAt = this.#site.now + hostDeath.awayMs;
    }
    if (this.#dies(work)) return;
    const { slow = 0, slowMs, awayEvery = Number.POSITIVE_INFINITY } = this.#simulation;
    const pageMs = slowMs && this.#random.chance(slow) ? slowMs : this.#simulation.pageMs;
    const isLast = requests === 1;
    this.#countInFlight(1);
    const isAway = this.#result.starts.length % awayEvery === 0;
    this.#after(this.#random.integer(...pageMs), () => {
      this.#inFlight -= 1;
      if (isAway) this.#left.add(turn);
      else this.#madeOf(job, 1);
      const away = isAway ? { awayMs: 0 } : {};
      this.#finish(turn, { nth, ...away });
      if (isAway) this.#giveBack(job, 1);
    });
    this.#reach(this.#transit(), () => {
      this.#tell((site) => site.tell("requestStarted", { turn, nth, lateMs }));
      const next = { job, turn, nth: nth + 1, requests: requests - 1, attempt: 1 };
      // The worker continues when the site actor has received this message.
      if (!isLast) this.#after(this.#transit(), () => this.#goOn(next));
    });
  }

  #goOn(work: Work): void {
    if (this.#left.has(work.turn)) {
      this.#finish(work.turn);
      this.#giveBack(work.job, work.requests);
    } else this.#work(work);
  }

  #requestAll(work: Work, atOnce: number): void {
    const { job, turn, requests } = work;
    this.#countInFlight(atOnce);
    const dead = this.#dies(work);
    const rounds = Math.ceil(requests / atOnce);
    const pageMs = this.#random.integer(...this.#simulation.pageMs);
    this.#after(Math.min(dead ? 0 : rounds * pageMs, TURN_MS_MAX - 10_000), () => {
      this.#inFlight -= atOnce;
      if (dead) return;
      this.#madeOf(job, requests);
      this.#finish(turn);
    });
  }

  /** Opens a visit, and the next one when its request has been answered. */
  #visit(): void {
    const turn = hex(VISIT_IDS + this.#order);
    this.#reach(this.#transit(), () => {
      this.#tell((site) => site.tell("visit", { turn }));
      this.#after(this.#transit(), () => this.#beginVisit(turn));
    });
  }

  #beginVisit(turn: string): void {
    const askedAt = this.#site.now;
    const urls = ["https://a.example/robots.txt"];
    this.#reach(this.#transit(), () => {
      const begun = this.#tell((site) => site.tell("begin", { turn, urls, intent: ASKING }));
      this.#after(this.#transit(), () => {
        if (begun.state === "gone") this.#visit();
        else if (begun.state === "wait") {
          this.#after(begun.askAgainInMs, () => this.#beginVisit(turn));
        } else this.#after(begun.waitMs, () => this.#requestVisit(turn, askedAt + begun.waitMs));
      });
    });
  }

  #requestVisit(turn: string, startAt: number): void {
    const lateMs = this.#site.now - startAt;
    if (lateMs > TURN_LATE_MS) {
      this.#beginVisit(turn);
      return;
    }
    this.#result.starts.push(this.#site.now);
    this.#result.visitStarts += 1;
    this.#countInFlight(1);
    this.#reach(this.#transit(), () => {
      this.#tell((site) => site.tell("requestStarted", { turn, lateMs }));
    });
    this.#after(this.#random.integer(...this.#simulation.pageMs), () => {
      this.#inFlight -= 1;
      this.#finish(turn);
      this.#visit();
    });
  }

  #countInFlight(more: number): void {
    this.#inFlight += more;
    this.#result.inFlightMax = Math.max(this.#result.inFlightMax, this.#inFlight);
  }

  #madeOf(job: string, requests: number): void {
    const { made } = this.#result;
    made.set(job, (made.get(job) ?? 0) + requests);
  }

  #finish(turn: string, which: { nth?: number; awayMs?: number } = {}): void {
    const finish = () => this.#tell((site) => site.tell("turnFinished", { turn, ...which }));
    this.#reach(this.#transit(), finish);
    if (this.#random.chance(this.#simulation.lateness)) this.#reach(this.#transit(), finish);
  }
}

/** The remaining requests of a turn at a worker. */
interface Work {
  job: string;
  turn: string;
  /** Number of the turn's next request, counted from 0. */
  nth: number;
  /** Number of remaining requests, including the next one. */
  requests: number;
  attempt: number;
}
