import { expect } from "chai";
import type { PageOutcome } from "../../../schemas/crawl/crawl-job.ts";
import type { Turn, TurnRequest } from "../../../schemas/crawl/crawl-page.ts";
import { REPORT_PAGES_MAX } from "../../../schemas/crawl/limits.ts";
import { ACCOUNT, checkJob, fetched, JobWorld, START } from "../../../scripts/testing/job-world.ts";
import { SeededRandom } from "../../../scripts/testing/seeded-random.ts";

const RUNS = 60;

/**
 * A site, workers and readers around one job. Messages arrive in any order, twice, or too late, and some turns are
 * lost.
 */
class RandomCrawl {
  readonly world = new JobWorld();
  readonly #random: SeededRandom;
  /** The number of wanted requests that each site knows, by host. */
  readonly #wanted = new Map<string, number>();
  readonly #turns = new Map<Turn, Set<TurnRequest>>();
  /** Robots.txt files that the job has not received yet. */
  readonly #untold: { host: string; scheme: "http" | "https" }[] = [];
  readonly #extracting: number[] = [];
  #asked = 0;
  #past: (() => void)[] = [];
  readonly fetches = new Map<string, number>();
  readonly walked: number[] = [];
  #cursor: string | undefined;

  constructor(random: SeededRandom) {
    this.#random = random;
    const pick = <T>(...choices: T[]) => random.pick(choices);
    this.world.start({
      limit: pick(1, 5, 30, 100, 1_000),
      depth: pick(0, 2, 100_000, 100_000),
      source: pick("all", "links", "sitemaps"),
      formats: pick(["html"], ["html", "json"]),
      options: pick({}, { includeExternalLinks: true }, { excludePatterns: ["**/1*"] }),
    });
    this.#collect();
  }

  /** Runs until nothing is in flight. Returns the number of messages. */
  run(): number {
    for (let steps = 1; ; steps += 1) {
      expect(steps).to.be.below(20_000);
      const moves = this.#moves();
      if (moves.length === 0) return steps;
      this.#random.pick(moves)();
      if (this.#random.chance(0.1) && this.#past.length > 0) this.#random.pick(this.#past)();
      this.#collect();
      checkJob(this.world);
      if (this.#random.chance(0.3)) this.walk(3);
    }
  }

  /** Continues a listing of completed records. */
  walk(count: number): boolean {
    const { entries, more } = this.world.list({
      ...{ status: "completed", count },
      ...(this.#cursor && { cursor: this.#cursor }),
    });
    this.walked.push(...entries.map(({ entry }) => entry.index));
    this.#cursor = entries.at(-1)?.cursor ?? this.#cursor;
    return more;
  }

  #moves(): (() => void)[] {
    const moves: (() => void)[] = [];
    for (const host of this.#wanted.keys()) moves.push(() => this.#grant(host));
    for (const turn of this.#turns.keys()) moves.push(() => this.#work(turn));
    for (const [at] of this.#untold.entries()) moves.push(() => this.#tell(at));
    for (const [at] of this.#extracting.entries()) moves.push(() => this.#extract(at));
    if (this.#asked > 0) {
      moves.push(() => {
        this.#asked -= 1;
        this.world.run("admitMore", {});
      });
    }
    return moves;
  }

  #collect(): void {
    for (const { message, key, input } of this.world.take("site")) {
      if (message !== "want") continue;
      const { wants, tell } = input as { wants: number; tell: { scheme: "http" | "https" }[] };
      if (wants === 0) this.#wanted.delete(key);
      else this.#wanted.set(key, wants);
      for (const { scheme } of tell) this.#untold.push({ host: key, scheme });
    }
    for (const { input } of this.world.take("crawl-page")) {
      if ("requests" in (input as object)) {
        const turn = input as Turn;
        this.#turns.set(turn, new Set(turn.requests));
      } else this.#extracting.push((input as { index: number }).index);
    }
    this.#asked += this.world.take("crawl-job").length;
  }

  #grant(host: string): void {
    const wanted = this.#wanted.get(host) ?? 0;
    const requests = Math.min(wanted, this.#random.pick([1, 3, 256]));
    if (wanted > requests) this.#wanted.set(host, wanted - requests);
    else this.#wanted.delete(host);
    const turn = this.#random
      .integer(0, 2 ** 31)
      .toString(16)
      .padStart(32, "e");
    this.world.run("turnGranted", { host, turn, requests });
  }

  /** Reports some requests of a turn, or ends the turn while some are unreported. */
  #work(turn: Turn): void {
    const left = this.#turns.get(turn) ?? new Set();
    if (this.#random.chance(0.15) || left.size === 0) {
      this.#turns.delete(turn);
      const failed = this.#random.chance(0.1) ? { failed: "the worker died" } : {};
      this.#twice(() =>
        this.world.run("turnEnded", { host: turn.host, turn: turn.turn, ...failed }),
      );
      return;
    }
    const some = [...left].filter(() => this.#random.chance(0.6)).slice(0, REPORT_PAGES_MAX);
    for (const request of some) left.delete(request);
    const outcomes: PageOutcome[] = [];
    for (const request of some) {
      if (request.type === "page") outcomes.push(this.#outcome(request.index, request.url));
      else this.#read(turn, request.url, request.nesting);
    }
    const { host } = turn;
    this.#twice(() => this.world.run("turnReported", { host, turn: turn.turn, outcomes }));
  }

  /** Links share few addresses, so that most are found repeatedly. */
  #url(): string {
    const host = this.#random.pick(["site.example", "site.example", "a.example", "b.example"]);
    const scheme = this.#random.chance(0.9) ? "https" : "http";
    return `${scheme}://${host}/${this.#random.integer(0, 150)}`;
  }

  #urls(): string[] {
    return Array.from({ length: this.#random.integer(0, 12) }, () => this.#url());
  }

  #outcome(index: number, url: string): PageOutcome {
    const draw = this.#random.integer(0, 99);
    const common = { index, browserMs: 1 };
    if (draw < 8) return { ...common, kind: "redirected", to: this.#url(), status: 302 };
    if (draw < 14) return { kind: "disallowed", index, reason: "robots.txt" };
    if (draw < 20) return { kind: "skipped", index, reason: "old" };
    if (draw < 30) {
      const metadata = this.#random.chance(0.9) ? { metadata: { status: 503, url } } : {};
      const retry = this.#random.chance(0.7);
      const lost = retry && this.#random.chance(0.3) && { browserLost: true as const };
      const failed = { ...metadata, ...lost, reason: "it failed", retry, blobs: [] };
      return { ...common, kind: "failed", ...failed };
    }
    this.fetches.set(url, (this.fetches.get(url) ?? 0) + 1);
    if (this.#random.chance(0.002)) return { kind: "out_of_time", index, reason: "no time" };
    const status = this.#random.chance(0.9) ? 200 : 404;
    return fetched(this.#urls(), { metadata: { status, url }, jsonSource: "text" })(index);
  }

  #read(turn: Turn, url: string, nesting: number): void {
    const failed = this.#random.chance(0.3)
      ? { failed: "it broke", retry: this.#random.chance(0.5) }
      : { retry: false };
    for (const end of [undefined, failed]) {
      const urls = this.#urls().map((one) => ({ url: one }));
      const nested = this.#random.chance(0.3) ? [{ url: `${this.#url()}.xml` }] : [];
      const slice = { turn: turn.turn, url, urls, nested, nesting, ...(end && { end }) };
      this.#twice(() => this.world.run("sitemapRead", slice));
    }
  }

  #tell(at: number): void {
    const [learned] = this.#untold.splice(at, 1);
    if (!learned) return;
    const sitemaps = this.#random.chance(0.5) ? [`${START}map.xml`] : [];
    const refusal = this.#random.chance(0.03) ? { refusal: "ai-train=no" } : {};
    this.#twice(() => this.world.run("robotsLearned", { ...learned, sitemaps, ...refusal }));
  }

  #extract(at: number): void {
    const [index = 0] = this.#extracting.splice(at, 1);
    const outcome = this.#random.chance(0.5)
      ? { blob: { name: "json", bytes: 1 } }
      : { reason: "no model" };
    this.#twice(() => this.world.run("jsonExtracted", { index, ...outcome }));
  }

  /** Runs a message, sometimes repeats it at once, and keeps it for a late repetition. */
  #twice(message: () => void): void {
    message();
    if (this.#random.chance(0.2)) message();
    this.#past = [...this.#past.slice(-20), message];
  }
}

describe("crawlJob under random messages", () => {
  const first = Number(process.env.SEED ?? SeededRandom.newSeed());
  for (let run = 0; run < RUNS; run += 1) {
    const seed = first + run;
    it(`a crawl ends with every record settled exactly once (seed ${seed})`, () => {
      const random = new SeededRandom(seed);
      const crawl = new RandomCrawl(random);
      crawl.run();
      const { world } = crawl;
      const summary = world.summary();
      expect(summary.status).to.not.equal("running");
      const records = world.records();
      expect(records.map(({ index }) => index)).to.deep.equal(records.map((_, index) => index));
      const count = (wanted: string) => records.filter(({ status }) => status === wanted).length;
      expect(count("queued")).to.equal(0);
      expect(summary.finished).to.equal(summary.total - count("cancelled"));
      expect(count("skipped")).to.be.at.most(summary.skipped);
      expect(records.length - count("skipped")).to.equal(summary.total);
      for (const { status, reason } of records) {
        if (status !== "completed") expect(reason, status).to.be.a("string");
      }
      while (crawl.walk(7)) expect(crawl.walked.length).to.be.below(10_000);
      const completed = records.filter(({ status }) => status === "completed");
      expect(crawl.walked.toSorted((one, other) => one - other)).to.deep.equal(
        completed.map(({ index }) => index),
      );
      for (const status of [
        "completed",
        "errored",
        "disallowed",
        "skipped",
        "cancelled",
      ] as const) {
        const listed = world.records({ status, count: 7 }).map(({ index }) => index);
        const expected = records.filter((record) => record.status === status);
        expect(listed, status).to.deep.equal(expected.map(({ index }) => index));
      }
      if (summary.status === "completed") {
        expect(Math.max(0, ...crawl.fetches.values()), "no page twice").to.be.at.most(1);
      }
      expect(() => world.run("cancel", { account: ACCOUNT })).to.throw(/has ended/);
    });
  }
});
