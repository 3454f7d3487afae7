import { expect } from "chai";
import {
  HOST_AWAY_MS,
  HOST_REQUESTS_IN_FLIGHT_MAX,
  TURN_LATE_MS,
  TURN_LEAD_MS,
  TURN_MS_MAX,
  TURN_OVERDUE_MS,
  TURN_REQUESTS_MAX,
} from "../../../schemas/crawl/limits.ts";
import { TASK_ACK_WAIT_MS } from "../../../schemas/limits.ts";
import { TASK_HEARTBEAT_MS } from "../../runtime/workers/task-lease.ts";
import { CRAWL_RENDER_MS_MAX } from "../lib/load-in-browser/browser-page.ts";
import { SITEMAP_FETCH_MS_MAX } from "../workers/crawl-page/fetch-sitemap.ts";
import { CRAWL_FETCH_MS_MAX } from "../workers/crawl-page/open-crawl-worker.ts";
import { TURN_STARTS_MS_MAX } from "../workers/crawl-page/walk-turn.ts";
import {
  TURN_SPACED_REQUESTS_MAX,
  TURN_SPAN_MS,
  TURNS_AHEAD_MAX,
  TURNS_STARTED_MAX,
} from "./host-capacity.ts";
import { endPause, HOST_AWAY_DEFAULT_MS_MAX, pauseHost } from "./host-pause.ts";
import { TURN_GO_MS_MAX } from "./next-turn.ts";
import {
  type Begun,
  begin,
  finish,
  type Granted,
  grant,
  grantOwn,
  lose,
  nextLookAt,
  started,
  TURN_UNREPORTED_MS,
  want,
} from "./pace.ts";
import { entryOf, IDLE_PACE, Pace } from "./pace-state.ts";

describe("pace", () => {
  it("grant() grants one turn ahead if there is a delay, and the next when that turn starts", () => {
    const site = new PacedSite(500);
    site.want("a", "job", 3);
    expect(site.grant()).to.have.length(1);
    expect(site.grant()).to.have.length(0);
    expect(site.begin("t1")).to.deep.equal(go(0));
    const [next] = site.grant();
    expect(site.pace.turns[next?.turn ?? ""]?.dueAt).to.equal(site.now + 500);
    expect(site.grant()).to.have.length(0);
  });

  it("begin() lets a turn start only when the request before it has left", () => {
    const site = new PacedSite(500);
    site.want("a", "job", 3);
    site.grant();
    site.begin("t1");
    site.grant();
    site.now += 30;
    expect(site.begin("t2")).to.deep.equal({ state: "wait", askAgainInMs: 20 });
    site.start("t1");
    site.now += 20;
    expect(site.begin("t2")).to.deep.equal(go(480));
    // A repeated call changes nothing.
    site.now += 5;
    const before = site.pace;
    expect(site.begin("t2")).to.deep.equal(go(475));
    expect(site.pace).to.equal(before);
  });

  it("begin() counts the delay from the request's real start, however late that was", () => {
    const site = new PacedSite(500);
    site.want("a", "job", 2);
    site.grant();
    site.begin("t1");
    site.grant();
    site.now += 900;
    site.start("t1");
    expect(site.begin("t2")).to.deep.equal(go(500));
  });

  it("lose() lets no other turn start while the lost worker may still send its request", () => {
    const site = new PacedSite(500);
    site.want("a", "job", 3);
    site.grant();
    site.begin("t1");
    site.grant();
    site.start("t1");
    // The request of t2 may leave in 500 ms, or up to TURN_LATE_MS after that.
    expect(site.begin("t2")).to.deep.equal(go(500));
    site.grant();
    site.pace = lose(site.pace, "t2", site.moment);
    expect(site.begin("t2")).to.deep.equal({ state: "gone" });
    expect(site.begin("t3")).to.deep.equal(go(500 + TURN_LATE_MS + 500));
  });

  it("begin() abandons an unreported request TURN_UNREPORTED_MS after its start time, not before", () => {
    const site = new PacedSite(500);
    site.want("a", "job", 3);
    site.grant();
    site.begin("t1");
    site.grant();
    site.begin("t2");
    site.now += TURN_UNREPORTED_MS - 1;
    expect(site.begin("t2").state).to.equal("wait");
    site.now += 1;
    // The request of t1 may have left at the latest possible time, so the delay counts from that time.
    expect(site.begin("t2")).to.deep.equal(go(TURN_LATE_MS + 500 - TURN_UNREPORTED_MS));
    expect(site.begin("t1").state).to.equal("wait");
  });

  it("begin() replies go at most TURN_GO_MS_MAX ahead, so that no second worker of the task can collide", () => {
    const site = new PacedSite(TURN_GO_MS_MAX + 1_000);
    site.want("a", "job", 2);
    site.grant();
    site.begin("t1");
    site.grant();
    site.start("t1");
    const asked = site.begin("t2");
    expect(asked.state).to.equal("wait");
    site.now += asked.state === "wait" ? asked.askAgainInMs : 0;
    const told = site.begin("t2");
    expect(told.state === "go" && told.waitMs).to.be.within(TURN_GO_MS_MAX - 100, TURN_GO_MS_MAX);
    expect(TURN_GO_MS_MAX + TURN_LATE_MS + TASK_HEARTBEAT_MS).to.be.at.most(TASK_ACK_WAIT_MS);
  });

  it("begin() serves a redirect of a turn before turns granted later", () => {
    const site = new PacedSite(500);
    site.want("a", "job", 10);
    site.grant();
    site.begin("t1");
    site.grant();
    site.begin("t2");
    site.start("t1");
    // The second turn is going, so the first turn's next request gets a start time behind the second turn.
    expect(site.begin("t1").state).to.equal("wait");
    expect(site.grant()).to.have.length(0);
    site.now += 500;
    site.start("t2");
    expect(site.begin("t1")).to.deep.equal(go(500));
    expect(site.grant()).to.have.length(1);
    expect(site.begin("t3").state).to.equal("wait");
  });

  it("begin() lets visits and turns of jobs start alternately, whatever the delay", () => {
    for (const delayMs of [500, TURN_GO_MS_MAX + 1_000]) {
      const site = new PacedSite(delayMs);
      site.want("a", "job", 10);
      const visits = ["v1", "v2", "v3", "v4"];
      for (const visit of visits) site.visit(visit);
      const left: string[] = [];
      for (let request = 0; request < 6; request++) {
        site.grant();
        // The visits ask first each time.
        const waiting = [...visits, ...Object.keys(site.pace.turns)].filter(
          (turn) => site.pace.turns[turn] !== undefined,
        );
        for (const turn of waiting) site.begin(turn);
        site.now = Math.max(site.now, site.pace.lastStartAt + delayMs - TURN_GO_MS_MAX);
        for (const turn of waiting) site.begin(turn);
        const { turn = "", startAt = 0 } = site.pace.going ?? {};
        site.now = startAt;
        site.start(turn);
        site.finish(turn);
        left.push(visits.includes(turn) ? "visit" : "job");
      }
      const expected = ["visit", "job", "visit", "job", "visit", "job"];
      expect(left, `${delayMs} ms`).to.deep.equal(expected);
    }
  });

  it("begin() lets the site's own file start before visits", () => {
    const site = new PacedSite(500);
    site.visit("v1");
    site.visit("v2");
    site.begin("v1");
    site.begin("v2");
    site.pace = grantOwn(site.pace, "own", site.moment);
    site.begin("own");
    site.start("v1");
    expect(site.begin("v2").state).to.equal("wait");
    expect(site.begin("own")).to.deep.equal(go(500));
  });

  it("begin() lets a visit follow a visit if the job's worker is dead", () => {
    const site = new PacedSite(TURN_GO_MS_MAX + 1_000);
    site.want("a", "job", 1);
    site.visit("v1");
    site.visit("v2");
    site.begin("v1");
    site.grant();
    site.begin("t1");
    site.start("v1");
    site.now += site.delayMs - 1;
    expect(site.begin("v2").state).to.equal("wait");
    site.now += 1;
    expect(site.begin("v2")).to.deep.equal(go(0));
  });

  it("begin() gives all visits together the share of one job, where there is no delay", () => {
    const site = new PacedSite(0);
    site.want("a", "job", 1_000);
    for (let number = 1; number <= HOST_REQUESTS_IN_FLIGHT_MAX; number++) site.visit(`v${number}`);
    const share = HOST_REQUESTS_IN_FLIGHT_MAX / 2;
    for (let number = 1; number <= share; number++) {
      expect(site.begin(`v${number}`)).to.deep.equal(go(0));
    }
    expect(site.begin(`v${share + 1}`).state).to.equal("wait");
    const [granted] = site.grant();
    expect(site.begin(granted?.turn ?? "")).to.deep.equal(go(0, share));
    site.finish("v1");
    expect(site.begin(`v${share + 1}`)).to.deep.equal(go(0));
  });

  it("begin() lets a turn of the site start first", () => {
    const site = new PacedSite(500);
    site.want("a", "job", 10);
    site.grant();
    site.begin("t1");
    site.grant();
    site.begin("t2");
    site.pace = grantOwn(site.pace, "own", site.moment);
    site.begin("own");
    site.start("t1");
    expect(site.begin("t2").state).to.equal("wait");
    expect(site.begin("own")).to.deep.equal(go(500));
  });

  it("started() twice, too late, or for an unknown turn changes nothing or only delays", () => {
    const site = new PacedSite(500);
    site.want("a", "job", 3);
    site.grant();
    site.begin("t1");
    site.grant();
    site.begin("t2");
    site.start("t1");
    const once = site.pace;
    site.now += 5;
    site.start("t1");
    site.start("t9");
    expect(site.pace).to.equal(once);
    // The site has stopped waiting for the report of t1. If a late report then says that the request left, the next
    // request is delayed.
    const late = new PacedSite(500);
    late.want("a", "job", 3);
    late.grant();
    late.begin("t1");
    late.grant();
    late.begin("t2");
    late.now += TURN_UNREPORTED_MS;
    late.begin("t2");
    late.start("t1");
    expect(late.begin("t2")).to.deep.equal(go(500));
  });

  it("started() counts from the latest possible departure, not from the report", () => {
    for (const [lateMs, waitMs] of [
      [3, 483],
      // The departure counts as at most the time of the report, even if `lateMs` says a later time.
      [90, 500],
      [undefined, 500],
    ] as const) {
      const site = new PacedSite(500);
      site.want("a", "job", 3);
      site.grant();
      site.begin("t1");
      site.grant();
      site.begin("t2");
      site.now += 20;
      site.pace = started(site.pace, "t1", { delayMs: 500, now: site.now, lateMs });
      expect(site.begin("t2")).to.deep.equal(go(waitMs));
    }
  });

  it("started() of a turn that is no longer going counts from the report", () => {
    const site = new PacedSite(500);
    site.want("a", "job", 3);
    site.grant();
    site.begin("t1");
    site.grant();
    site.begin("t2");
    site.now += TURN_UNREPORTED_MS;
    site.begin("t2");
    site.pace = started(site.pace, "t1", { delayMs: 500, now: site.now, lateMs: 1 });
    expect(site.begin("t2")).to.deep.equal(go(500));
  });

  it("started() again counts one more request that left for the same turn", () => {
    const site = new PacedSite(500);
    site.want("a", "job", 3);
    site.grant();
    site.begin("t1");
    site.grant();
    site.begin("t2");
    site.start("t1");
    site.now += 100;
    site.pace = started(site.pace, "t1", { delayMs: 500, now: site.now, again: true });
    expect(site.begin("t2")).to.deep.equal(go(500));
  });

  it("finish() of a turn that could start counts as a start; of a turn returned before its start time it does not", () => {
    const site = new PacedSite(500);
    site.want("a", "job", 9);
    site.grant();
    site.begin("t1");
    site.grant();
    site.begin("t2");
    site.now += 7;
    site.finish("t1");
    expect(site.begin("t2")).to.deep.equal(go(500));
    site.grant();
    site.begin("t3");
    site.now += 100;
    site.finish("t2");
    expect(site.begin("t3")).to.deep.equal(go(400));
    const before = site.pace;
    site.finish("t2");
    site.finish("t9");
    expect(site.pace).to.equal(before);
  });

  it("grant() serves accounts by turns, and an account's jobs by turns", () => {
    const site = new PacedSite(500);
    site.want("a", "a1", 3);
    site.want("a", "a2", 3);
    site.want("b", "b1", 3);
    expect(site.serve(9).join(" ")).to.equal("a1 b1 a2 b1 a1 b1 a2 a1 a2");
  });

  it("want() replaces a job's number, and 0 removes the job", () => {
    const site = new PacedSite(500);
    site.want("a", "a1", 3);
    site.want("a", "a1", 1);
    site.want("b", "b1", 2);
    site.want("b", "b1", 0);
    expect(site.serve(5)).to.deep.equal(["a1"]);
    const idle = site.pace;
    site.want("b", "b1", 0);
    expect(site.pace).to.equal(idle);
  });

  it("begin() replies gone for a finished or unknown turn", () => {
    const site = new PacedSite(500);
    site.want("a", "a1", 1);
    site.grant();
    site.finish("t1");
    expect(site.begin("t1")).to.deep.equal({ state: "gone" });
    expect(site.begin("t9")).to.deep.equal({ state: "gone" });
  });

  it("grant() adds a turn beside an overdue one, up to TURNS_AHEAD_MAX", () => {
    const site = new PacedSite(500);
    site.want("a", "a1", 100);
    site.grant();
    site.now += TURN_OVERDUE_MS - 1;
    expect(site.grant()).to.have.length(0);
    expect(nextLookAt(site.pace, site.moment)).to.equal(site.now + 1);
    let granted = 1;
    for (let look = 0; look < 20; look++) {
      site.now += TURN_OVERDUE_MS;
      granted += site.grant().length;
    }
    expect(granted).to.equal(TURNS_AHEAD_MAX);
    // All workers ask at once, and only one goes.
    const told = ["t1", "t2", "t3", "t4"].map((turn) => site.begin(turn).state);
    expect(told).to.deep.equal(["go", "wait", "wait", "wait"]);
  });

  it("grant() serves an account although no worker asks for the turns of another, whatever the delay", () => {
    for (const delayMs of [500, 0]) {
      const site = new PacedSite(delayMs);
      // With this number of jobs, a turn has a single request.
      for (let job = 0; job < 8; job++) site.want("stuck", `job${job}`, 1_000);
      for (let rounds = 0; rounds < 20; rounds++) {
        site.grant();
        site.now += TURN_OVERDUE_MS;
      }
      site.want("other", "mine", 10);
      let served = 0;
      for (let rounds = 0; rounds < 20; rounds++) {
        for (const { turn, account, requests } of site.grant()) {
          if (account !== "other") continue;
          served += requests;
          expect(site.begin(turn).state).to.equal("go");
          site.start(turn);
          site.finish(turn);
        }
        site.now += TURN_OVERDUE_MS;
      }
      expect(served).to.equal(10);
    }
  });

  it("grant() grants a single job the requests of TURN_SPAN_MS; with another job, each turn gets one request", () => {
    for (const delayMs of [1, 250, 500, 1_250, 1_251, 60_000]) {
      const span = Math.max(1, Math.floor(TURN_SPAN_MS / delayMs));
      expect(severalAt(delayMs).grant()[0]?.requests).to.equal(
        Math.min(span, TURN_SPACED_REQUESTS_MAX),
      );
    }
    const site = severalAt(500);
    expect(site.grant()).to.deep.include({ turn: "t1", account: "a", job: "a1", requests: 5 });
    site.serveAll("t1", 2, 5);
    expect(site.begin("t1/2")).to.deep.equal(go(500));
    site.want("b", "b1", 100);
    site.now += 500;
    site.start("t1/2");
    expect(site.begin("t1/3")).to.deep.equal({ state: "gone" });
    for (const [turn, account] of [
      ["t2", "a"],
      ["t3", "b"],
      ["t4", "a"],
    ] as const) {
      expect(site.grant()[0]).to.include({ turn, account, requests: 1 });
      site.serveAll(turn, 1);
    }
    site.want("b", "b1", 0);
    for (const entry of Object.keys(site.pace.turns)) site.finish(entry);
    expect(site.grant()[0]).to.include({ job: "a1", requests: 5 });
    // Job a1 still wants requests, but job b1 has an open turn. So a1 gets a turn of only one request.
    const two = severalAt(500);
    two.want("b", "b1", 1);
    two.grant();
    two.serveAll("t1", 1);
    two.grant();
    two.serveAll("t2", 1);
    expect(two.pace.accounts).to.have.length(1);
    expect(two.grant()[0]).to.include({ job: "a1", requests: 1 });
  });

  it("grant() grants the next turn with the last request of a turn of several, however many remain with its worker", () => {
    for (const wanted of [1, 3, 5]) {
      const site = severalAt(500);
      site.grant();
      for (let nth = 0; nth < wanted; nth++) {
        expect(site.begin(entryOf("t1", nth), wanted - nth)).to.deep.equal(go(nth === 0 ? 0 : 500));
        // A repeated call with fewer requests changes nothing.
        site.begin(entryOf("t1", nth), 1);
        expect(site.grant(), `${nth} of ${wanted}`).to.have.length(nth === wanted - 1 ? 1 : 0);
        site.now += nth === 0 ? 0 : 500;
        site.start(entryOf("t1", nth));
      }
      expect(site.begin(entryOf("t1", wanted), 1)).to.deep.equal({ state: "gone" });
      expect(site.begin("t2", 5)).to.deep.equal(go(500));
    }
  });

  it("grant() grants another turn if the worker of a turn of several requests is lost, between requests or during one", () => {
    for (const asks of [false, true]) {
      const site = severalAt(500);
      site.grant();
      site.serveAll("t1", 2, 5);
      if (asks) expect(site.begin("t1/2", 3)).to.deep.equal(go(500));
      const lostBy = 500 + (asks ? TURN_UNREPORTED_MS : TURN_OVERDUE_MS);
      expect(nextLookAt(site.pace, site.moment)).to.be.at.most(site.now + lostBy);
      site.now += lostBy - 1;
      expect(site.grant()).to.have.length(0);
      site.now += 1;
      expect(site.grant()).to.have.length(1);
      // If the lost turn was allowed to start, its request may have left. If it was not, no request has left. In both
      // cases the next turn gets a start time.
      expect(site.begin("t2", 5).state).to.equal("go");
    }
  });

  it("started() twice grants one next request, also after that has left", () => {
    const site = severalAt(500);
    site.grant();
    site.serveAll("t1", 2, 5);
    const once = site.pace;
    site.start("t1");
    site.start("t1/1");
    expect(site.pace).to.equal(once);
    expect(Object.keys(once.turns)).to.deep.equal(["t1", "t1/1", "t1/2"]);
    // A redirect of the first request gets its own start time and changes nothing else.
    expect(site.begin("t1", 1)).to.deep.equal(go(500));
    expect(site.begin("t1/2", 3).state).to.equal("wait");
    site.now += 500;
    site.pace = started(site.pace, "t1", { ...site.moment, again: true });
    expect(Object.keys(site.pace.turns)).to.have.length(3);
    expect(site.begin("t1/2", 3)).to.deep.equal(go(500));
  });

  it("finish() of a postponed turn counts as a start from its first start time", () => {
    const site = new PacedSite(500);
    site.want("a", "a1", 2);
    site.want("b", "b1", 2);
    site.grant();
    site.begin("t1");
    site.grant();
    site.start("t1");
    expect(site.begin("t2")).to.deep.equal(go(500));
    site.grant();
    site.now += 400;
    // One more request of the first turn leaves and postpones the second turn. The worker of the second turn does not
    // know that: its request leaves at the earlier start time and ends.
    site.pace = started(site.pace, "t1", { ...site.moment, again: true });
    site.now += 101;
    site.finish("t2");
    expect(site.begin("t3")).to.deep.equal(go(500));
  });

  it("grant() allows at most TURNS_STARTED_MAX unfinished turns", () => {
    const site = new PacedSite(100);
    site.want("a", "a1", 10_000);
    for (let number = 1; number <= TURNS_STARTED_MAX; number++) {
      expect(site.grant(), String(number)).to.have.length(1);
      site.now += 200;
      site.begin(`t${number}`);
      site.start(`t${number}`);
    }
    expect(site.grant()).to.have.length(0);
    site.finish("t1");
    expect(site.grant()).to.have.length(1);
  });

  it("grant() forgets a turn TURN_MS_MAX after it began", () => {
    const site = new PacedSite(0);
    site.want("a", "a1", 256);
    site.grant();
    site.begin("t1");
    site.now += TURN_MS_MAX - 1;
    site.grant();
    expect(Object.keys(site.pace.turns)).to.include("t1");
    expect(nextLookAt(site.pace, site.moment)).to.equal(site.now + 1);
    site.now += 1;
    site.grant();
    expect(site.begin("t1")).to.deep.equal({ state: "gone" });
  });

  it("grant() keeps a turn whose last request may be in flight, so that HOST_REQUESTS_IN_FLIGHT_MAX holds", () => {
    const longest = Math.max(CRAWL_FETCH_MS_MAX, CRAWL_RENDER_MS_MAX, SITEMAP_FETCH_MS_MAX);
    const site = new PacedSite(0);
    site.want("a", "a1", 5_000);
    const begun = site.grant().map(({ turn }) => site.begin(turn));
    const running = begun.map((told) => (told.state === "go" ? told.atOnce : 0));
    expect(running.reduce((sum, one) => sum + one)).to.equal(HOST_REQUESTS_IN_FLIGHT_MAX);
    // The longest possible turn: its worker starts late, its last request takes the longest time, and its end is
    // reported late.
    site.now += TURN_LATE_MS + TURN_STARTS_MS_MAX + longest + TURN_LATE_MS;
    for (const { turn } of site.grant()) expect(site.begin(turn).state).to.equal("wait");
  });

  it("grant() keeps turns back until they are due in TURN_LEAD_MS", () => {
    const site = new PacedSite(60_000);
    site.want("a", "a1", 10);
    site.grant();
    site.begin("t1");
    site.start("t1");
    expect(site.grant()).to.have.length(0);
    expect(nextLookAt(site.pace, site.moment)).to.equal(site.now + 60_000 - TURN_LEAD_MS);
    site.now += 60_000 - TURN_LEAD_MS;
    expect(site.grant()).to.have.length(1);
  });

  it("pauseHost() only lengthens the pause, and takes back turns that would wait long", () => {
    for (const delayMs of [500, 0]) {
      const site = new PacedSite(delayMs);
      site.want("a", "a1", 10);
      site.grant();
      site.pace = away(site, 1_500);
      site.pace = away(site, 1_000);
      const told = site.begin("t1");
      expect(told).to.deep.equal(delayMs ? go(1_500) : { state: "wait", askAgainInMs: 1_500 });
      site.pace = away(site, TURN_LEAD_MS);
      expect(site.begin("t1").state).to.equal("wait");
      site.pace = away(site, TURN_LEAD_MS + 1);
      expect(site.begin("t1")).to.deep.equal({ state: "gone" });
      expect(site.begin("t1")).to.deep.equal({ state: "gone" });
    }
  });

  it("pauseHost() without a named time doubles the pause up to HOST_AWAY_DEFAULT_MS_MAX, until the host responds", () => {
    const site = new PacedSite(500);
    const pauses: number[] = [];
    const pause = (awayMs: number) => {
      site.pace = away(site, awayMs);
      pauses.push(site.pace.awayUntil - site.now);
      site.now = site.pace.awayUntil;
    };
    for (let time = 0; time < 9; time++) pause(0);
    expect(pauses).to.deep.equal([
      ...[5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 320_000],
      ...[HOST_AWAY_DEFAULT_MS_MAX, HOST_AWAY_DEFAULT_MS_MAX],
    ]);
    expect(endPause(site.pace, site.now - 1)).to.equal(site.pace);
    site.pace = endPause(site.pace, site.now);
    pause(0);
    pause(1_000);
    pause(0);
    expect(pauses.slice(9)).to.deep.equal([HOST_AWAY_MS, 1_000, 4 * HOST_AWAY_MS]);
  });

  it("pauseHost() does not lengthen the pause for responses to requests from before it, unless the host names a time", () => {
    const site = new PacedSite(0);
    site.pace = away(site, 0);
    const startedAt = site.now - 1;
    const { awayUntil } = site.pace;
    site.now += 1_000;
    site.pace = pauseHost(site.pace, { awayMs: 0, startedAt, now: site.now });
    expect(site.pace).to.include({ awayUntil, busy: 1 });
    site.pace = pauseHost(site.pace, { awayMs: HOST_AWAY_MS, startedAt, now: site.now });
    expect(site.pace).to.include({ awayUntil: site.now + HOST_AWAY_MS, busy: 1 });
  });

  it("begin() shares HOST_REQUESTS_IN_FLIGHT_MAX where there is no delay, with the next turns granted", () => {
    const site = new PacedSite(0);
    site.want("a", "a1", 1_000);
    site.want("b", "b1", 1_000);
    const granted = site.grant();
    expect(granted.map(({ job, requests }) => [job, requests])).to.deep.equal([
      ["a1", TURN_REQUESTS_MAX],
      ["b1", TURN_REQUESTS_MAX],
    ]);
    const half = HOST_REQUESTS_IN_FLIGHT_MAX / 2;
    expect(site.begin("t1")).to.deep.equal(go(0, half));
    expect(site.begin("t2")).to.deep.equal(go(0, half));
    expect(site.grant()).to.have.length(2);
    expect(site.grant()).to.have.length(0);
    expect(site.begin("t3").state).to.equal("wait");
    site.finish("t1");
    expect(site.begin("t3")).to.deep.equal(go(0, half));
    expect(site.begin("t4").state).to.equal("wait");
  });

  it("begin() gives all concurrent requests to a single job, and the same to a worker that took over", () => {
    const site = new PacedSite(0);
    site.want("a", "a1", 20);
    site.grant();
    expect(site.begin("t1")).to.deep.equal(go(0, HOST_REQUESTS_IN_FLIGHT_MAX));
    expect(site.begin("t1")).to.deep.equal(go(0, HOST_REQUESTS_IN_FLIGHT_MAX));
    site.want("a", "a1", 20);
    site.grant();
    expect(site.begin("t2").state).to.equal("wait");
  });

  it("begin() returns longer waits if turns take long", () => {
    const site = new PacedSite(0);
    site.want("a", "a1", 20);
    site.grant();
    site.begin("t1");
    site.want("a", "a1", 20);
    site.grant();
    const waits = [0, 320, 100_000].map((ms) => {
      site.now += ms;
      const told = site.begin("t2");
      return told.state === "wait" && told.askAgainInMs;
    });
    expect(waits).to.deep.equal([15, 20, 1_000]);
  });

  it("begin() never exceeds HOST_REQUESTS_IN_FLIGHT_MAX, and grants no turn for unwanted requests", () => {
    const site = new PacedSite(0);
    for (let job = 0; job < 20; job++) site.want("a", `job${job}`, 1);
    const granted = site.grant();
    expect(granted.every(({ requests }) => requests === 1)).to.equal(true);
    for (const { turn } of granted) site.begin(turn);
    for (const { turn } of site.grant()) expect(site.begin(turn).state).to.equal("wait");
    const running = Object.values(site.pace.turns).filter(({ atOnce }) => atOnce > 0);
    expect(running).to.have.length(HOST_REQUESTS_IN_FLIGHT_MAX);
  });

  it("begin() revokes turns of many requests once the host requests a delay, and waits for running ones", () => {
    const site = new PacedSite(0);
    site.want("a", "a1", 1_000);
    site.grant();
    site.begin("t1");
    site.delayMs = 500;
    expect(site.begin("t2")).to.deep.equal({ state: "gone" });
    site.want("a", "a1", 5);
    const [next] = site.grant();
    expect(next?.requests).to.equal(1);
    expect(site.begin(next?.turn ?? "").state).to.equal("wait");
    site.now += 100;
    site.finish("t1");
    expect(site.begin(next?.turn ?? "")).to.deep.equal(go(500));
  });

  it("the stored state loads again", () => {
    const site = new PacedSite(500);
    site.want("a", "a1", 5);
    site.grant();
    site.begin("t1");
    site.grant();
    site.visit("v1");
    site.begin("v1");
    site.start("v1");
    expect(site.pace.isAfterVisit).to.equal(true);
    expect(Pace.parse(JSON.parse(JSON.stringify(site.pace)))).to.deep.equal(site.pace);
  });
});

const go = (waitMs: number, atOnce = 1): Begun => ({ state: "go", waitMs, atOnce });

const away = ({ pace, now }: PacedSite, awayMs: number) =>
  pauseHost(pace, { awayMs, startedAt: now, now });

/** A pace with one job and turns of several requests. */
function severalAt(delayMs: number): PacedSite {
  const site = new PacedSite(delayMs);
  site.spacedMax = TURN_REQUESTS_MAX;
  site.want("a", "a1", 10_000);
  return site;
}

class PacedSite {
  now = 1_000_000;
  pace: Pace = IDLE_PACE;
  delayMs: number;
  /** Requests of one turn with a delay: one, unless a test needs several. */
  spacedMax = 1;
  #turns = 0;

  constructor(delayMs: number) {
    this.delayMs = delayMs;
  }

  get moment() {
    return { delayMs: this.delayMs, now: this.now };
  }

  want(account: string, job: string, wants: number): void {
    this.pace = want(this.pace, account, job, wants);
  }

  visit(turn: string): void {
    this.pace = grantOwn(this.pace, turn, { ...this.moment, isVisit: true });
  }

  grant(): Granted[] {
    const { pace, granted } = grant(this.pace, {
      ...this.moment,
      requestsMax: this.delayMs > 0 ? this.spacedMax : TURN_REQUESTS_MAX,
      newId: () => {
        this.#turns += 1;
        return `t${this.#turns}`;
      },
    });
    this.pace = pace;
    return granted;
  }

  begin(turn: string, wanted = 1): Begun {
    const { pace, begun } = begin(this.pace, turn, { ...this.moment, wanted });
    this.pace = pace;
    return begun;
  }

  start(turn: string): void {
    this.pace = started(this.pace, turn, this.moment);
  }

  finish(turn: string): void {
    this.pace = finish(this.pace, turn, this.moment);
  }

  /** Makes this many requests of a turn with `wanted` requests. */
  serveAll(turn: string, requests: number, wanted = requests): void {
    for (let nth = 0; nth < requests; nth++) {
      const begun = this.begin(entryOf(turn, nth), wanted - nth);
      if (begun.state !== "go") throw new Error(`Cannot serve ${turn}/${nth}: ${begun.state}`);
      this.now += begun.waitMs;
      this.start(entryOf(turn, nth));
    }
  }

  /** Returns the served jobs in order. */
  serve(turnsMax: number): string[] {
    const jobs: string[] = [];
    for (let turn = 0; turn < turnsMax; turn++) {
      const [granted] = this.grant();
      if (!granted) break;
      jobs.push(granted.job);
      this.now += 500;
      this.begin(granted.turn);
      this.start(granted.turn);
      this.finish(granted.turn);
    }
    return jobs;
  }
}
