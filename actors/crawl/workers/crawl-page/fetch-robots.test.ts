import { expect } from "chai";
import {
  ROBOTS_AWAY_MS_MAX,
  ROBOTS_LOOKUP_WAIT_MS,
  ROBOTS_TRIES_MAX,
} from "../../../../schemas/crawl/limits.ts";
import type { CrawlIntent } from "../../../../schemas/crawl/site.ts";
import { rulesOutcome, SiteDriver } from "../../../../scripts/testing/site-driver.ts";
import { SkippingClock } from "../../../../scripts/testing/skipping-clock.ts";
import { WebSite } from "../../../../scripts/testing/web-site.ts";
import { createAddressPolicy } from "../../../egress/address-policy.ts";
import { createEgressGuard, type EgressGuard } from "../../../egress/egress-guard.ts";
import { LookupSlots, lookupsOfOwnerMax } from "../../../egress/lookup-slots.ts";
import { FairSemaphore } from "../../../runtime/lib/fair-semaphore.ts";
import { ROBOTS_WAIT_MS_MAX } from "../../site/pace.ts";
import { ROBOTS_RETRY_MS } from "../../site/site-robots.ts";
import {
  fetchRobots,
  ROBOTS_FETCH_MS_MAX,
  ROBOTS_STARTS_MS_MAX,
  type RobotsContext,
  type RobotsTask,
} from "./fetch-robots.ts";

/** Time that may pass until a response arrives. */
const SOON_MS = 6_000;
const intent: CrawlIntent = { purposes: ["search"] };
const loopback = createAddressPolicy({ allow: ["127.0.0.0/8"] });
const LOOKUPS_MAX = 24;
const moved = (to: string) => (_: unknown, response: import("node:http").ServerResponse) =>
  response.writeHead(301, { Location: to }).end();

describe("fetchRobots", function () {
  this.timeout(60_000);

  for (const delayMs of [6_000, ROBOTS_WAIT_MS_MAX - 1_000, ROBOTS_WAIT_MS_MAX + 1_000, 600_000]) {
    it(`learns a file that redirects on a host with ${delayMs} ms between requests, none early`, async () => {
      await using world = await RobotsWorld.start(delayMs);
      world.web.page("/robots.txt", moved("/robots2.txt"));
      world.web.page("/robots2.txt", moved("/robots3.txt"));
      world.web.page("/robots3.txt", "User-agent: *\nDisallow: /x\n");
      await world.learn();
      expect(world.site.state.robots.http?.policy).to.include({ kind: "rules", rules: 1 });
      expect(world.web.paths).to.deep.equal(["/robots.txt", "/robots2.txt", "/robots3.txt"]);
      world.expectGaps(delayMs);
    });

    it(`makes its attempts at a host with ${delayMs} ms between requests, and no more`, async () => {
      await using world = await RobotsWorld.start(delayMs);
      world.web.page("/robots.txt", (_, response) => response.writeHead(500).end());
      await world.learn();
      expect(world.site.state.robots.http?.policy).to.deep.equal({
        ...{ kind: "disallow_all", because: "it answered 500" },
      });
      expect(world.web.paths).to.have.length(3);
      world.expectGaps(delayMs);
    });
  }

  it("follows a redirect to a host that is being crawled with a delay", async () => {
    await using world = await RobotsWorld.start(500);
    await using other = await WebSite.start("127.0.0.7");
    const { host } = new URL(other.url);
    const site = world.known(host, 10_000);
    site.now = Math.floor(world.clock.now());
    site.tell("visit", { turn: "a".repeat(32) });
    const turn = "a".repeat(32);
    site.tell("begin", { turn, urls: [`${other.url}/robots.txt`], intent });
    site.tell("requestStarted", { turn });
    site.tell("turnFinished", { turn });
    world.web.page("/robots.txt", moved(`${other.url}/robots.txt`));
    other.page("/robots.txt", "User-agent: *\nDisallow: /x\n");
    await world.learn();
    expect(world.site.state.robots.http?.policy).to.include({ kind: "rules", rules: 1 });
    expect(other.paths).to.deep.equal(["/robots.txt"]);
  });

  it("waits ROBOTS_FETCH_MS_MAX for a response and no longer", async () => {
    for (const [waitedMs, policy] of [
      [ROBOTS_FETCH_MS_MAX - SOON_MS, { kind: "rules" }],
      [
        ROBOTS_FETCH_MS_MAX,
        { kind: "disallow_all", because: `it took longer than ${ROBOTS_FETCH_MS_MAX} ms` },
      ],
    ] as const) {
      await using world = await RobotsWorld.start(500);
      world.web.page("/robots.txt", (_, response) => {
        world.clock.skip(waitedMs);
        if (waitedMs < ROBOTS_FETCH_MS_MAX) response.end("User-agent: *\nDisallow: /x\n");
      });
      await world.learn();
      expect(world.site.state.robots.http?.policy).to.include(policy);
    }
  });

  it("starts no request after ROBOTS_STARTS_MS_MAX: another turn continues", async () => {
    await using world = await RobotsWorld.start(500);
    world.fetchMs = 2 * ROBOTS_STARTS_MS_MAX;
    world.web.page("/robots.txt", (_, response) => {
      world.clock.skip(ROBOTS_STARTS_MS_MAX);
      moved("/robots2.txt")(_, response);
    });
    world.web.page("/robots2.txt", "User-agent: *\nDisallow: /x\n");
    await world.learn();
    expect(world.tasks.map(({ from }) => from?.url)).to.deep.equal([
      undefined,
      `${world.web.url}/robots2.txt`,
    ]);
    expect(world.site.state.robots.http?.policy).to.include({ kind: "rules" });
  });

  for (const status of [429, 503]) {
    it(`waits for the pause requested by a host that answers ${status}, and then reads the file`, async () => {
      await using world = await RobotsWorld.start(500);
      const answeredAt: number[] = [];
      world.web.page("/robots.txt", (_, response) => {
        answeredAt.push(world.clock.now());
        if (answeredAt.length < ROBOTS_TRIES_MAX) {
          response.writeHead(status, { "Retry-After": "90" }).end();
        } else response.end("User-agent: *\nDisallow: /x\n");
      });
      await world.learn();
      expect(world.site.state.robots.http?.policy).to.include({ kind: "rules", rules: 1 });
      const gaps = answeredAt.slice(1).map((at, index) => at - (answeredAt[index] ?? 0));
      expect(gaps).to.have.length(ROBOTS_TRIES_MAX - 1);
      expect(Math.min(...gaps)).to.be.at.least(90_000 - 20);
    });

    it(`treats a host that answers ${status} as closed after ROBOTS_TRIES_MAX, or if its pause is too long`, async () => {
      for (const [seconds, tries] of [
        [ROBOTS_AWAY_MS_MAX / 1_000, ROBOTS_TRIES_MAX],
        [ROBOTS_AWAY_MS_MAX / 1_000 + 1, 1],
      ] as const) {
        await using world = await RobotsWorld.start(500);
        world.web.page("/robots.txt", (_, response) =>
          response.writeHead(status, { "Retry-After": `${seconds}` }).end(),
        );
        await world.learn();
        expect(world.web.paths).to.have.length(tries);
        const { robots, pace } = world.site.state;
        expect(robots.http?.policy).to.deep.equal({
          ...{ kind: "disallow_all", because: `it answered ${status}` },
        });
        expect((robots.http?.expiresAt ?? 0) - world.site.now).to.be.at.most(ROBOTS_RETRY_MS);
        expect(pace.awayUntil - world.site.now).to.be.within(1, seconds * 1_000);
      }
    });
  }

  it("pauses the host that requests it, which can be a redirect's target, and then tries again", async () => {
    await using world = await RobotsWorld.start(500);
    await using other = await WebSite.start("127.0.0.7");
    world.web.page("/robots.txt", moved(`${other.url}/robots.txt`));
    let asked = 0;
    other.page("/robots.txt", (_, response) => {
      asked += 1;
      if (asked === 1) response.writeHead(503, { "Retry-After": "120" }).end();
      else response.end("User-agent: *\nDisallow: /x\n");
    });
    const target = world.known(new URL(other.url).host, 500);
    await world.learn();
    expect(asked).to.equal(2);
    expect(world.site.state.robots.http?.policy).to.include({ kind: "rules", rules: 1 });
    expect(target.state.pace.awayUntil).to.be.greaterThan(0);
    expect(world.site.state.pace.awayUntil).to.equal(0);
    expect(world.web.paths).to.have.length(2);
  });

  it("reports a host without a response as unreachable, but not one whose redirect leads to such a host", async () => {
    await using world = await RobotsWorld.start(500);
    world.web.page("/robots.txt", moved("http://127.0.0.8:1/robots.txt"));
    await world.learn();
    expect(world.site.state.robots.http?.policy).to.not.have.property("unreachable");
    expect(world.site.state.robots.http?.policy).to.include({ kind: "disallow_all" });
    await using gone = await RobotsWorld.start(500);
    gone.web.page("/robots.txt", (request) => request.socket.destroy());
    await gone.learn();
    expect(gone.site.state.robots.http?.policy).to.include({ unreachable: true });
  });

  it("uses up no attempt while lookups of other crawls hold all slots, and waits longer each time", async () => {
    const slots = new LookupSlots(LOOKUPS_MAX);
    const held = Array.from({ length: LOOKUPS_MAX }, () => slots.tryTake({}));
    await using world = await RobotsWorld.start(500, FINE);
    world.guard = guardWith(slots);
    world.web.page("/robots.txt", "User-agent: *\nDisallow: /x\n");
    const turns = ROBOTS_TRIES_MAX + 2;
    const startedAt: number[] = [];
    world.onTask = () => {
      if (startedAt.push(world.clock.now()) === turns) for (const release of held) release?.();
    };
    await world.learn();
    expect(world.site.state.robots.http?.policy).to.include({ kind: "rules", rules: 1 });
    expect(world.web.paths).to.deep.equal(["/robots.txt"]);
    const progress = world.tasks.map(({ from }) => [from?.attempt, from?.waits]);
    const paused = Array.from({ length: turns - 1 }, (_, index) => [1, index + 1]);
    expect(progress).to.deep.equal([[undefined, undefined], ...paused]);
    const gaps = startedAt.slice(1).map((at, index) => at - (startedAt[index] ?? 0));
    for (const [index, gap] of gaps.entries()) {
      expect(gap).to.be.at.least(ROBOTS_LOOKUP_WAIT_MS * 2 ** index);
    }
  });

  it("fetches the files of one account while another account's names do not resolve", async () => {
    await using world = await RobotsWorld.start(500, FINE);
    world.guard = guardWith(new LookupSlots(LOOKUPS_MAX));
    world.web.page("/robots.txt", "User-agent: *\nDisallow: /x\n");
    const ends: string[] = [];
    for (let number = 0; number < 12; number++) {
      const silent = world.siteOf(`${number}.silent.test`);
      silent.tell("consult", { scheme: "http", intent, account: "a".repeat(32) });
      const [task] = silent.sentAs<RobotsTask>("robots");
      if (task === undefined) throw new Error("No fetch began");
      const sent = await world.fetch(task);
      ends.push(sent.find(({ message }) => message.startsWith("robots"))?.message ?? "");
    }
    const most = lookupsOfOwnerMax(LOOKUPS_MAX);
    expect(ends).to.deep.equal([
      ...Array(most).fill("robotsFetched"),
      ...Array(12 - most).fill("robotsPaused"),
    ]);
    await world.learn("b".repeat(32));
    expect(world.tasks).to.have.length(1);
    expect(world.site.state.robots.http?.policy).to.include({ kind: "rules", rules: 1 });
  });
});

/** A guard that resolves the name FINE to the address of the world's server, and no other name. */
const FINE = "fine.test";
const guardWith = (slots: LookupSlots) =>
  createEgressGuard({
    ...{ policy: loopback, slots, resolveMs: 50 },
    lookup: (name) => (name === FINE ? Promise.resolve(["127.0.0.6"]) : new Promise(() => {})),
  });

/**
 * A test world: site actors in memory set the start times, real servers receive the requests, and the clock skips
 * waits.
 */
class RobotsWorld {
  readonly web: WebSite;
  /** The host of the site: the server's address, or a name in its place. */
  readonly host: string;
  readonly clock = new SkippingClock();
  guard: EgressGuard = createEgressGuard({ policy: loopback });
  /** Called before each turn of the fetch. */
  onTask: () => void = () => {};
  /** Replaces the default timeout. */
  fetchMs: number | undefined;
  readonly tasks: RobotsTask[] = [];
  readonly #sites = new Map<string, SiteDriver>();
  /**
   * `#goesAt` is the start time in the latest reply `go`. `#requests` holds the arrival time of each request with its
   * start time.
   */
  #goesAt = 0;
  readonly #requests: { goesAt: number; at: number }[] = [];

  /**
   * Creates a world whose site knows the robots.txt of https, with this delay. The tests fetch the robots.txt of
   * http.
   */
  static async start(delayMs: number, name?: string): Promise<RobotsWorld> {
    const world = new RobotsWorld(await WebSite.start("127.0.0.6"), name);
    world.known(world.host, delayMs);
    return world;
  }

  constructor(web: WebSite, name?: string) {
    this.web = web;
    const { host, port } = new URL(web.url);
    this.host = name === undefined ? host : `${name}:${port}`;
    web.server.on("request", () => {
      this.#requests.push({ goesAt: this.#goesAt, at: this.clock.now() });
    });
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.web[Symbol.asyncDispose]();
  }

  get site(): SiteDriver {
    return this.siteOf(this.host);
  }

  known(host: string, crawlDelayMs: number): SiteDriver {
    const site = new SiteDriver({ host, now: Math.floor(this.clock.now()) - 3_600_000 });
    this.#sites.set(host, site);
    site.tell("consult", { scheme: "https", intent });
    site.tell("turnFinished", { turn: site.fetched(rulesOutcome({ crawlDelayMs })) });
    return site;
  }

  /** Fetches the file in as many turns as it needs. */
  async learn(account?: string): Promise<void> {
    const { site, clock } = this;
    site.now = Math.floor(clock.now());
    site.tell("consult", { scheme: "http", intent, account });
    for (let round = 0; site.state.robots.http?.wanted; round++) {
      if (round === 50) throw new Error("It is never learned");
      const [task] = site.sentAs<RobotsTask>("robots");
      if (task === undefined) {
        clock.skip(Math.max(0, (site.state.lookAt ?? 0) - clock.now()) + 1);
        site.now = Math.floor(clock.now());
        site.tell("look", {});
        continue;
      }
      this.tasks.push(task);
      this.onTask();
      const sent = await this.fetch(task);
      let more: typeof site.sent = [];
      site.now = Math.floor(clock.now());
      for (const { message, input } of sent) {
        site.tell(message as "look", input as never);
        more = [...more, ...site.sent];
      }
      site.sent = more;
    }
  }

  fetch(task: RobotsTask) {
    const { guard, clock, fetchMs } = this;
    const parts = {
      ...{ guard, clock, places: new FairSemaphore({ places: 1 }) },
      ...(fetchMs !== undefined && { fetchMs }),
    };
    return fetchRobots(parts, task, this.#context());
  }

  expectGaps(delayMs: number): void {
    const gaps = this.#requests
      .slice(1)
      .map(({ at }, index) => at - (this.#requests[index]?.goesAt ?? 0));
    // Gaps are measured from a request's start time to the next arrival: a busy machine may receive a request late,
    // and then the gap between two arrivals would be too short.
    expect(Math.min(...gaps)).to.be.at.least(delayMs - 20);
  }

  #context(): RobotsContext {
    const call = async (_: unknown, host: string, message: string, input: object) => {
      const site = this.siteOf(host);
      site.now = Math.floor(this.clock.now());
      const reply = site.tell(message as "begin", input as never);
      const waitMs = reply?.state === "wait" ? reply.askAgainInMs : 0;
      const ms = reply?.state === "go" ? reply.waitMs : waitMs;
      if (reply?.state === "go") this.#goesAt = this.clock.now() + ms;
      // Skips once the caller waits.
      if (ms > 0) setTimeout(() => this.clock.skip(ms + 1), 2);
      return reply;
    };
    const send: RobotsContext["send"] = async (envelopes) => {
      for (const { key, message, input } of envelopes)
        await call(undefined, key, message, input as object);
    };
    return { signal: new AbortController().signal, call: call as never, send };
  }

  siteOf(host: string): SiteDriver {
    const site =
      this.#sites.get(host) ?? new SiteDriver({ host, now: Math.floor(this.clock.now()) });
    this.#sites.set(host, site);
    return site;
  }
}
