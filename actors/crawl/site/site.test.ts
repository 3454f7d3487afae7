import { expect } from "chai";
import {
  CRAWL_DELAY_MS,
  CRAWL_DELAY_MS_MAX,
  HOST_AWAY_MS,
  HOST_AWAY_MS_MAX,
  HOST_REQUESTS_IN_FLIGHT_MAX,
  ROBOTS_TRIES_MAX,
  SITE_TELL_CHARS_MAX,
  TURN_LEAD_MS,
  TURN_MS_MAX,
  TURN_REQUESTS_MAX,
} from "../../../schemas/crawl/limits.ts";
import type { CrawlIntent, RobotsOutcome } from "../../../schemas/crawl/site.ts";
import { REPLY_KEPT_BYTES_MAX, ROW_BYTES_MAX, STATE_BYTES_MAX } from "../../../schemas/limits.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { hex, rulesOutcome, SiteDriver } from "../../../scripts/testing/site-driver.ts";
import { ROBOTS_KEPT_CHARS_MAX } from "../lib/robots/parse-robots.ts";
import { ARRIVAL_MS, SITE_VISITS_MAX, siteActor, TURN_RULE_CHECKS_MAX } from "./site.ts";
import { SITE_JOBS_MAX, SITE_JOBS_WAITING_MAX, SITE_TELLS_MAX } from "./site-jobs.ts";
import { ROBOTS_RETRY_MS, VERDICT_REASON_CHARS_MAX } from "./site-robots.ts";
import { ROBOTS_KEPT_MS, SiteState } from "./site-state.ts";

const intent: CrawlIntent = { purposes: ["search", "ai-input", "ai-train"] };
const account = hex(0xa);
const job = hex(0x10b);
const page = "https://a.example/page";
const CLOSED: RobotsOutcome = { kind: "disallow_all", because: "it answered 503" };
const OPEN: RobotsOutcome = { kind: "allow_all", because: "it answered 404" };

describe("site", function () {
  this.timeout(20_000);

  it("consult() starts one fetch for all callers, and replies when the file is known", () => {
    const site = new SiteDriver();
    const consult = () => site.tell("consult", { scheme: "https", intent });
    expect(consult()).to.deep.equal({ known: false });
    const [task] = site.sent;
    expect(task).to.include({ to: "worker", kind: "crawl-page", message: "robots" });
    expect(site.sentAs("robots")[0]).to.include({ host: "a.example", scheme: "https" });
    expect(consult()).to.deep.equal({ known: false });
    expect([site.sent, site.changed]).to.deep.equal([[], false]);
    expect(site.shown).to.deep.equal([]);
    site.fetched(rulesOutcome());
    expect(site.shown).to.deep.equal([{}]);
    expect(consult()).to.deep.equal({ known: true });
    expect(site.changed).to.equal(false);
  });

  it("consult() returns why a content signal forbids the crawl", () => {
    const site = new SiteDriver();
    site.tell("consult", { scheme: "https", intent });
    site.fetched(rulesOutcome({ contentSignal: { "ai-train": false, use: "reference" } }));
    expect(site.tell("consult", { scheme: "https", intent })).to.deep.equal({
      known: true,
      refusal: "Content-Signal says ai-train=no",
    });
    const search: CrawlIntent = { purposes: ["search"], contentUse: "reference" };
    expect(site.tell("consult", { scheme: "https", intent: search })).to.deep.equal({
      known: true,
    });
  });

  it("want() sends a job its robots.txt and then grants a turn, after the request for the file", () => {
    const site = new SiteDriver();
    want(site, 3);
    expect(site.sent.map(({ message }) => message)).to.deep.equal(["robots"]);
    const sitemaps = ["https://a.example/sitemap.xml"];
    site.fetched(rulesOutcome({ sitemaps }));
    const messages = site.sent.map(({ kind, key, message }) => [kind, key, message]);
    expect(messages).to.deep.equal([
      ["crawl-job", job, "robotsLearned"],
      ["crawl-job", job, "turnGranted"],
    ]);
    expect(site.sentAs("robotsLearned")[0]).to.deep.equal({
      host: "a.example",
      scheme: "https",
      sitemaps,
    });
    const [turn] = site.sentAs<{ turn: string; requests: number }>("turnGranted");
    expect(turn).to.include({ requests: 1 });
    expect(dueIns(site)).to.deep.equal([CRAWL_DELAY_MS]);
    const begun = begin(site, turn?.turn);
    expect(begun).to.deep.equal({
      ...{ state: "go", waitMs: CRAWL_DELAY_MS, atOnce: 1, spaced: true },
      verdicts: [{ allowed: true }],
    });
    // A repeated call gets the same start time and needs no commit.
    site.now += 100;
    expect(begin(site, turn?.turn)).to.include({ waitMs: CRAWL_DELAY_MS - 100 });
    expect(site.changed).to.equal(false);
  });

  it("begin() gives a turn to the first worker, and replies gone to another", () => {
    const site = known();
    want(site, 8);
    const [turn = ""] = turnsOf(site);
    const ask = (by: string) =>
      site.tell("begin", { turn, urls: [page], intent, by: hex(Number(by)) });
    expect(ask("1")).to.include({ state: "go" });
    expect(ask("2")).to.deep.equal({ state: "gone" });
    expect(site.changed).to.equal(false);
    expect(ask("1")).to.include({ state: "go" });
    // Another worker returns the turn as lost. The first worker may still send its request, so the next turn must
    // wait longer.
    site.tell("turnFinished", { turn, lost: true });
    expect(ask("1")).to.deep.equal({ state: "gone" });
    const next = begin(site, turnsOf(site).at(-1));
    expect(next).to.not.include({ waitMs: CRAWL_DELAY_MS });
  });

  it("want() notifies a job of a second scheme without revoking its turns", () => {
    const site = known();
    want(site, 8);
    site.tell("want", { account, job, wants: 8, tell: [{ scheme: "http", intent }] });
    expect(site.sentAs("robots")).to.have.length(1);
    expect(site.state.pace.accounts[0]?.jobs).to.deep.equal([{ job, wants: 8 }]);
    site.tell("turnFinished", { turn: turnsOf(site)[0] ?? "" });
    site.fetched(OPEN, "http");
    expect(site.sentAs("robotsLearned")).to.deep.equal([
      { host: "a.example", scheme: "http", sitemaps: [] },
    ]);
  });

  it("want() notifies a job that a robots.txt is truncated, also a job that arrives later", () => {
    const site = new SiteDriver();
    want(site, 1);
    site.fetched(rulesOutcome({ truncated: true }));
    const learned = { host: "a.example", scheme: "https", sitemaps: [], truncated: true };
    expect(site.sentAs("robotsLearned")).to.deep.equal([learned]);
    site.tell("want", { account, job: hex(9), wants: 1, tell: [{ scheme: "https", intent }] });
    expect(site.sentAs("robotsLearned")).to.deep.equal([learned]);
  });

  it("want() of 0 removes a job, and it gets no more messages", () => {
    const site = new SiteDriver();
    want(site, 3);
    site.tell("want", { account, job, wants: 0, tell: [] });
    site.fetched(rulesOutcome());
    expect(site.sent).to.deep.equal([]);
    site.tell("want", { account, job, wants: 0, tell: [] });
    expect(site.changed).to.equal(false);
  });

  it("want() twice counts once", () => {
    const site = known();
    want(site, 3);
    want(site, 2, []);
    expect(site.state.pace.accounts[0]?.jobs).to.deep.equal([{ job, wants: 2 }]);
    const before = site.state.pace.accounts;
    want(site, 2, []);
    expect(site.state.pace.accounts).to.deep.equal(before);
  });

  it("begin() judges by robots.txt, line for line, and gives a place to the next when nothing is allowed", () => {
    const site = known(rulesOutcome({ rules: ["12-/private"] }));
    want(site, 7);
    const [turn = ""] = turnsOf(site);
    const begun = begin(site, turn, ["https://a.example/private/x"]);
    expect(begun).to.deep.equal({
      ...{ state: "go", waitMs: 0, atOnce: 1 },
      verdicts: [{ allowed: false, reason: "robots.txt line 12: Disallow: /private" }],
    });
    expect(site.sentAs("turnGranted")).to.have.length(1);
    expect(begin(site, turn)).to.deep.equal({ state: "gone" });
    expect(begin(site, turnsOf(site)[0]).state).to.equal("go");
  });

  it("begin() judges by content signal, and by a file that cannot be read", () => {
    const signal = known(rulesOutcome({ contentSignal: { search: false } }));
    want(signal, 1);
    expect(begin(signal, turnsOf(signal)[0])).to.deep.include({
      verdicts: [{ allowed: false, reason: "Content-Signal says search=no" }],
    });
    const closed = known(CLOSED);
    want(closed, 1);
    expect(begin(closed, turnsOf(closed)[0])).to.deep.include({
      verdicts: [{ allowed: false, reason: "robots.txt cannot be read: it answered 503" }],
    });
    const lost = known({ kind: "disallow_all", because: "connection refused", unreachable: true });
    want(lost, 1);
    const reason = "robots.txt cannot be read: connection refused";
    expect(begin(lost, turnsOf(lost)[0])).to.deep.include({
      verdicts: [{ allowed: false, reason, unreachable: true }],
    });
  });

  it("judge() returns begin()'s verdicts and changes nothing; it returns none while a file is unknown", () => {
    const site = known(rulesOutcome({ rules: ["12-/private"] }));
    const judge = (urls: string[], judged = intent) =>
      site.tell("judge", { urls, intent: judged }).verdicts;
    const reason = "robots.txt line 12: Disallow: /private";
    expect(judge([page, "https://a.example/private/x"])).to.deep.equal([
      { allowed: true },
      { allowed: false, reason },
    ]);
    expect([site.changed, site.sent]).to.deep.equal([false, []]);
    expect(judge([page, "http://a.example/"])).to.equal(undefined);
    expect([site.changed, site.sent]).to.deep.equal([false, []]);
    expect(refusal(() => judge(["https://b.example/"])).code).to.equal("invalid_request");
    site.now += ROBOTS_KEPT_MS;
    expect(judge([page])).to.equal(undefined);
    const signal = known(rulesOutcome({ contentSignal: { search: false } }));
    expect(signal.tell("judge", { urls: [page], intent }).verdicts).to.deep.equal([
      { allowed: false, reason: "Content-Signal says search=no" },
    ]);
  });

  it("begin() refuses addresses of other hosts", () => {
    const site = known();
    want(site, 1);
    const [turn] = turnsOf(site);
    for (const url of ["https://b.example/", "https://a.example:8443/", "nothing"]) {
      expect(refusal(() => begin(site, turn, [url])).code).to.equal("invalid_request");
    }
  });

  it("begin() of addresses of a scheme that is not known fetches its file first", () => {
    const site = known();
    want(site, 2);
    const [turn = ""] = turnsOf(site);
    expect(begin(site, turn, ["http://a.example/"]).state).to.equal("wait");
    expect(site.sentAs("robots")[0]).to.include({ scheme: "http" });
    site.fetched(OPEN, "http");
    expect(begin(site, turn, ["http://a.example/"])).to.deep.include({ waitMs: CRAWL_DELAY_MS });
  });

  it("begin() refetches a file after ROBOTS_KEPT_MS, not before, and uses the old one if that fails", () => {
    const site = known(rulesOutcome({ rules: ["2-/x"] }));
    site.now += ROBOTS_KEPT_MS - 1_000;
    want(site, 2);
    const [turn = ""] = turnsOf(site);
    expect(begin(site, turn).state).to.equal("go");
    site.now += 1_000;
    expect(begin(site, turn).state).to.equal("wait");
    expect(site.sentAs("robots")).to.have.length(1);
    site.now += 1_000;
    site.fetched(CLOSED);
    const forbidden = ["https://a.example/x"];
    expect(begin(site, turn, forbidden)).to.deep.include({
      verdicts: [{ allowed: false, reason: "robots.txt line 2: Disallow: /x" }],
    });
    site.now += ROBOTS_RETRY_MS;
    expect(site.tell("consult", { scheme: "https", intent })).to.deep.equal({ known: false });
    site.now += 1_000;
    site.fetched(OPEN);
    expect(site.rows.size).to.equal(0);
  });

  it("a failed file is refetched after ROBOTS_RETRY_MS, not before", () => {
    const site = known(CLOSED);
    site.now += ROBOTS_RETRY_MS - 1;
    expect(site.tell("consult", { scheme: "https", intent })).to.deep.equal({ known: true });
    site.now += 1;
    expect(site.tell("consult", { scheme: "https", intent })).to.deep.equal({ known: false });
  });

  it("robotsFetched() twice, too late, and of another turn changes nothing", () => {
    const site = known(rulesOutcome({ rules: ["1-/"] }));
    const turn = hex(1);
    for (const other of [turn, hex(77)]) {
      site.tell("robotsFetched", { scheme: "https", turn: other, outcome: OPEN });
      site.tell("robotsFetched", { scheme: "http", turn: other, outcome: OPEN });
      expect(site.changed).to.equal(false);
    }
  });

  it("look() replaces a lost fetch", () => {
    const site = new SiteDriver();
    want(site, 1);
    const [first] = site.sentAs<{ turn: string }>("robots");
    site.now += TURN_MS_MAX - 1;
    site.tell("look", {});
    expect(site.sentAs("robots")).to.have.length(0);
    site.now += 1;
    site.tell("look", {});
    const [second] = site.sentAs<{ turn: string }>("robots");
    expect(second?.turn).to.not.equal(first?.turn);
    expect(begin(site, first?.turn)).to.deep.equal({ state: "gone" });
    site.fetched(OPEN);
    expect(site.sentAs("turnGranted")).to.have.length(1);
  });

  it("look() is scheduled for an overdue turn, and for an expired file of an unused site", () => {
    const site = known();
    const tooOldAt = site.now + ROBOTS_KEPT_MS;
    site.lookAt = undefined;
    site.now += 10_000;
    site.tell("look", {});
    expect(site.lookAt).to.equal(tooOldAt);
    want(site, 7);
    expect(site.lookAt).to.equal(site.now + 1_000);
    const [turn = ""] = turnsOf(site);
    begin(site, turn);
    site.tell("requestStarted", { turn });
    site.tell("turnFinished", { turn });
    want(site, 0, []);
    const [next = ""] = turnsOf(site);
    site.tell("turnFinished", { turn: next });
    site.lookAt = undefined;
    site.now += 5_000;
    site.tell("look", {});
    expect(site.lookAt).to.equal(tooOldAt);
  });

  it("Crawl-delay holds in place of our own, longer and shorter; of two files the slower does", () => {
    for (const crawlDelayMs of [0, 200, 2_000, 60_000]) {
      const site = known(rulesOutcome({ crawlDelayMs }));
      want(site, 1_000);
      const granted = site.sentAs<{ requests: number }>("turnGranted")[0];
      expect(dueIns(site)[0]).to.equal(crawlDelayMs > TURN_LEAD_MS ? undefined : crawlDelayMs);
      if (crawlDelayMs === 0) expect(granted?.requests).to.equal(TURN_REQUESTS_MAX);
    }
    const both = known(rulesOutcome({ crawlDelayMs: 0 }));
    both.tell("consult", { scheme: "http", intent });
    both.fetched(rulesOutcome({ crawlDelayMs: 700 }), "http");
    want(both, 1);
    // The second file was fetched just now, when the host had no delay. So the delay of 700 ms counts from that
    // request.
    expect(dueIns(both)).to.deep.equal([700 - 1 - ARRIVAL_MS]);
  });

  it("begin() at a host without delay: HOST_REQUESTS_IN_FLIGHT_MAX at once, and the next turn waits ready", () => {
    const site = known(rulesOutcome({ crawlDelayMs: 0 }));
    want(site, 1_000);
    const urls = Array.from({ length: TURN_REQUESTS_MAX }, (_, index) => `${page}${index}`);
    const states = turnsOf(site).map((turn) => begin(site, turn, urls));
    const atOnce = states.map((told) => (told.state === "go" ? told.atOnce : 0));
    expect(atOnce.reduce((sum, one) => sum + one)).to.equal(HOST_REQUESTS_IN_FLIGHT_MAX);
    const ready = turnsOf(site).filter((turn) => begin(site, turn, urls).state === "wait");
    expect(ready).to.not.have.length(0);
    const running = Object.entries(site.state.pace.turns).find(([, { atOnce: at }]) => at > 0);
    site.tell("turnFinished", { turn: running?.[0] ?? "" });
    expect(begin(site, ready[0], urls).state).to.equal("go");
  });

  it("a file with many rules makes turns short, and reasons stay short enough for the largest answer", () => {
    const rules = Array.from({ length: 5_000 }, (_, line) => `${line}-/${"x".repeat(100)}${line}`);
    const site = known(rulesOutcome({ crawlDelayMs: 0, rules }));
    want(site, 1_000);
    expect(site.sentAs("turnGranted")[0]).to.include({ requests: TURN_RULE_CHECKS_MAX / 5_000 });
    const long = `1-/${"y".repeat(16_000)}`;
    const wordy = known(rulesOutcome({ crawlDelayMs: 0, rules: [long, "2+/z"] }));
    want(wordy, 1_000);
    const bad = `https://a.example/${"y".repeat(8_000)}`.slice(0, 8_000);
    const worst = known(rulesOutcome({ crawlDelayMs: 0, rules: [`1-/${"y".repeat(7_000)}`] }));
    want(worst, 1_000);
    const urls = [page, ...Array.from({ length: TURN_REQUESTS_MAX - 1 }, () => bad)];
    const begun = begin(worst, turnsOf(worst)[0], urls);
    if (begun.state !== "go") throw new Error(begun.state);
    const [, verdict] = begun.verdicts;
    expect(verdict?.allowed === false && verdict.reason).to.have.length(VERDICT_REASON_CHARS_MAX);
    expect(Buffer.byteLength(JSON.stringify(begun))).to.be.below(REPLY_KEPT_BYTES_MAX);
  });

  it("turnFinished() pauses the host for the requested time, up to HOST_AWAY_MS_MAX, once", () => {
    const site = known();
    for (const [awayMs, until] of [
      [10_000, 10_000],
      [HOST_AWAY_MS_MAX, HOST_AWAY_MS_MAX],
      [HOST_AWAY_MS_MAX + 1, HOST_AWAY_MS_MAX],
    ] as const) {
      site.now += 2 * HOST_AWAY_MS_MAX;
      site.tell("consult", { scheme: "https", intent });
      want(site, 2, []);
      const [turn = ""] = turnsOf(site);
      begin(site, turn);
      site.tell("requestStarted", { turn });
      site.tell("turnFinished", { turn, awayMs });
      expect(site.state.pace.awayUntil).to.equal(site.now + until);
      const [next = ""] = turnsOf(site);
      expect(begin(site, next)).to.deep.equal({ state: "gone" });
      site.tell("turnFinished", { turn, awayMs: HOST_AWAY_MS_MAX });
      expect(site.changed).to.equal(false);
      want(site, 0, []);
    }
  });

  it("turnFinished() lengthens the pause of a host that names no time, until it responds otherwise", () => {
    const site = known(rulesOutcome({ crawlDelayMs: 0 }));
    want(site, 10, []);
    const answer = (turn = turnsOf(site)[0] ?? "", awayMs?: number) => {
      if (site.state.pace.turns[turn]?.startedAt === undefined) begin(site, turn);
      site.tell("turnFinished", { turn, ...(awayMs !== undefined && { awayMs }) });
      const ms = Math.max(0, site.state.pace.awayUntil - site.now);
      site.now += ms;
      site.tell("look", {});
      want(site, 10, []);
      return ms;
    };
    expect([answer(undefined, 0), answer(undefined, 0)]).to.deep.equal([5_000, 10_000]);
    expect([answer(), answer(undefined, 0)]).to.deep.equal([0, HOST_AWAY_MS]);
  });

  it("a file whose fetch is lost repeatedly fails after ROBOTS_TRIES_MAX, and is retried as any failed file", () => {
    const urls = ["https://a.example/robots.txt"];
    for (const isTold of [true, false]) {
      const site = new SiteDriver();
      want(site, 1);
      for (let lost = 1; lost <= ROBOTS_TRIES_MAX; lost++) {
        const turn = site.state.robots.https?.fetch?.turn ?? "";
        const begun = begin(site, turn, urls);
        expect(begun.state, `${isTold} ${lost}`).to.equal("go");
        site.tell("requestStarted", { turn });
        site.now += isTold ? 30_000 : TURN_MS_MAX;
        if (isTold) site.tell("turnFinished", { turn, lost: true });
        else site.tell("look", {});
        expect(site.sentAs("robots")).to.have.length(lost === ROBOTS_TRIES_MAX ? 0 : 1);
      }
      expect(site.shown).to.have.length(1);
      expect(site.state.robots.https?.policy).to.deep.equal({
        ...{ kind: "disallow_all", because: "3 fetches came to no end" },
      });
      site.now += ROBOTS_RETRY_MS;
      expect(site.tell("consult", { scheme: "https", intent })).to.deep.equal({ known: false });
      expect(site.sentAs("robots")).to.have.length(1);
    }
  });

  it("a fetch without a worker is restarted and does not count against the file; a late one has its full time", () => {
    const site = new SiteDriver();
    want(site, 1);
    for (let round = 0; round <= ROBOTS_TRIES_MAX; round++) {
      site.now += TURN_MS_MAX;
      site.tell("look", {});
      expect(site.sentAs("robots"), String(round)).to.have.length(1);
    }
    site.now += TURN_MS_MAX - 1;
    const turn = site.state.robots.https?.fetch?.turn ?? "";
    expect(begin(site, turn, ["https://a.example/robots.txt"]).state).to.equal("go");
    site.tell("requestStarted", { turn });
    site.now += TURN_MS_MAX - 1_000;
    site.tell("robotsFetched", { scheme: "https", turn, outcome: OPEN });
    expect(site.state.robots.https?.policy).to.deep.equal(OPEN);
  });

  it("the task for a file names an account that needs it, and another one after each lookup that could not start", () => {
    const accountOf = (number: number) => hex(900 + number);
    const site = new SiteDriver();
    site.tell("consult", { scheme: "https", intent, account: accountOf(0) });
    const named: (string | undefined)[] = [];
    for (let waits = 1; waits <= 4; waits++) {
      const [task] = site.sentAs<{ turn: string; account?: string }>("robots");
      named.push(task?.account);
      // Two more accounts come while the first fetch runs.
      for (const number of waits === 1 ? [1, 2] : []) {
        want(site, 1, [{ scheme: "https", intent }], hex(800 + number), accountOf(number));
      }
      const turn = task?.turn ?? "";
      begin(site, turn, ["https://a.example/robots.txt"]);
      const next = { url: "https://a.example/robots.txt", hops: 0, attempt: 1, waits };
      site.tell("robotsPaused", { scheme: "https", turn, next, waitMs: 5_000 });
      expect(site.sentAs("robots")).to.have.length(0);
      site.now += 5_000;
      site.tell("look", {});
    }
    expect(named).to.deep.equal([0, 1, 2, 0].map(accountOf));
    const old = new SiteDriver();
    old.tell("consult", { scheme: "https", intent });
    expect(old.sentAs("robots")[0]).to.not.have.property("account");
  });

  it("visit() gives a turn that alternates with the turns of jobs", () => {
    const site = known();
    want(site, 5);
    const [first = ""] = turnsOf(site);
    begin(site, first);
    for (const number of [701, 702]) {
      site.tell("visit", { turn: hex(number) });
      begin(site, hex(number), ["https://a.example/robots.txt"]);
    }
    const left: string[] = [];
    for (let request = 0; request < 4; request++) {
      const { turn = "", startAt = 0 } = site.state.pace.going ?? {};
      left.push(turn === hex(701) || turn === hex(702) ? "visit" : "job");
      site.now = startAt;
      site.tell("requestStarted", { turn });
      site.tell("turnFinished", { turn });
      want(site, 5, []);
      for (const waiting of turnsOf(site)) begin(site, waiting);
    }
    expect(left).to.deep.equal(["job", "visit", "job", "visit"]);
  });

  it("visit() gives a turn once, and SITE_VISITS_MAX at most", () => {
    const site = known();
    want(site, 5);
    begin(site, turnsOf(site)[0]);
    const elsewhere = (number: number) =>
      begin(site, hex(number), ["https://a.example/robots.txt"]);
    for (let number = 1; number <= SITE_VISITS_MAX; number++) {
      site.tell("visit", { turn: hex(700 + number) });
    }
    site.tell("visit", { turn: hex(701) });
    expect(site.changed).to.equal(false);
    site.tell("visit", { turn: hex(799) });
    expect(site.changed).to.equal(false);
    expect(elsewhere(799)).to.deep.equal({ state: "gone" });
    expect(elsewhere(701).state).to.equal("wait");
    site.tell("turnFinished", { turn: hex(702) });
    site.tell("visit", { turn: hex(799) });
    expect(elsewhere(799).state).to.equal("wait");
  });

  it("turnFinished() after robotsFetched() still pauses the host", () => {
    const site = new SiteDriver();
    want(site, 1);
    const [task] = site.sentAs<{ turn: string }>("robots");
    const turn = task?.turn ?? "";
    begin(site, turn, ["https://a.example/robots.txt"]);
    site.tell("requestStarted", { turn });
    site.tell("robotsFetched", { scheme: "https", turn, outcome: CLOSED });
    site.tell("turnFinished", { turn, awayMs: 10_000 });
    expect(site.state.pace.awayUntil).to.equal(site.now + 10_000);
  });

  it("requestStarted() and begin() of an unknown turn change nothing", () => {
    const site = known();
    expect(site.tell("requestStarted", { turn: hex(99) })).to.deep.equal({});
    expect(site.changed).to.equal(false);
    expect(begin(site, hex(99))).to.deep.equal({ state: "gone" });
    expect(site.changed).to.equal(false);
  });

  it("stores the largest robots.txt in rows, and applies every rule", () => {
    const site = new SiteDriver();
    want(site, 1);
    const count = Math.floor(ROBOTS_KEPT_CHARS_MAX / 104);
    const rules = Array.from({ length: count }, (_, line) => `${line}-/${line}/`.padEnd(100, "x"));
    site.fetched(rulesOutcome({ rules, sitemaps: ["https://a.example/s.xml"] }));
    expect(site.rows.size).to.be.within(2, 5);
    for (const row of site.rows.values()) {
      expect(Buffer.byteLength(JSON.stringify(row))).to.be.at.most(ROW_BYTES_MAX);
    }
    expect(Buffer.byteLength(JSON.stringify(site.state))).to.be.below(10_000);
    const last = rules.at(-1) ?? "";
    const url = `https://a.example${last.slice(last.indexOf("/"))}`;
    const begun = begin(site, turnsOf(site)[0], [url]);
    expect(begun.state === "go" && begun.verdicts[0]?.allowed).to.equal(false);
    site.now += ROBOTS_KEPT_MS;
    site.tell("consult", { scheme: "https", intent });
    site.now += 1_000;
    site.fetched(rulesOutcome({ rules: ["1-/"] }));
    expect(site.rows.size).to.equal(1);
  });

  it("notifies SITE_TELLS_MAX jobs at a time, with as many sitemaps as fit a message", () => {
    const site = new SiteDriver();
    for (let number = 0; number <= SITE_TELLS_MAX; number++) {
      site.tell("want", {
        account,
        job: hex(number),
        wants: 1,
        tell: [{ scheme: "https", intent }],
      });
    }
    site.fetched(rulesOutcome());
    expect(site.sentAs("robotsLearned")).to.have.length(SITE_TELLS_MAX);
    expect(site.sentAs("look")).to.have.length(1);
    site.tell("look", {});
    expect(site.sentAs("robotsLearned")).to.have.length(1);
    expect(site.sentAs("look")).to.have.length(0);

    const long = (number: number) => `https://a.example/${number}`.padEnd(1_000, "s");
    const sitemaps = Array.from({ length: SITE_TELL_CHARS_MAX / 1_000 + 1 }, (_, one) => long(one));
    const wordy = new SiteDriver();
    want(wordy, 1);
    want(wordy, 1, undefined, hex(2));
    wordy.fetched(rulesOutcome({ sitemaps }));
    const [told, more] = wordy.sentAs<{ sitemaps: string[] }>("robotsLearned");
    expect(told?.sitemaps).to.have.length(SITE_TELL_CHARS_MAX / 1_000);
    expect(more).to.equal(undefined);
    wordy.tell("look", {});
    expect(wordy.sentAs("robotsLearned")).to.have.length(1);
  });

  it("lets SITE_JOBS_MAX jobs take turns, keeps more in rows, and admits them when places are free", () => {
    const site = new SiteDriver();
    const tell = [{ scheme: "https" as const, intent }];
    for (let number = 0; number < SITE_JOBS_MAX; number++) {
      site.tell("want", { account: hex(9_000 + number), job: hex(number), wants: 2, tell });
    }
    expect(site.state.newcomers).to.have.length(SITE_JOBS_MAX);
    expect(Buffer.byteLength(JSON.stringify(site.state))).to.be.below(STATE_BYTES_MAX);
    const late = hex(SITE_JOBS_MAX);
    site.tell("want", { account, job: late, wants: 2, tell });
    expect([site.state.newcomers.length, site.state.waiting]).to.deep.equal([SITE_JOBS_MAX, 1]);
    site.tell("want", { account, job: late, wants: 7, tell: [] });
    expect(site.rows.get(`waiting.${late}`)).to.deep.equal({ account, job: late, wants: 7, tell });
    site.fetched(rulesOutcome());
    site.tell("want", { account: hex(9_000), job: hex(0), wants: 0, tell: [] });
    site.tell("look", {});
    expect([site.rows.has(`waiting.${late}`), site.state.waiting]).to.deep.equal([false, 0]);
    for (let look = 0; look < SITE_JOBS_MAX / SITE_TELLS_MAX; look++) site.tell("look", {});
    const all = site.state.pace.accounts.find((one) => one.account === account)?.jobs;
    expect(all).to.deep.equal([{ job: late, wants: 7 }]);
  });

  it("keeps SITE_JOBS_WAITING_MAX jobs in rows, and sends siteFull to one more until one leaves", () => {
    const site = new SiteDriver();
    const tell = [{ scheme: "https" as const, intent }];
    for (let number = 0; number < SITE_JOBS_MAX; number++) {
      site.tell("want", { account, job: hex(number), wants: 1, tell });
    }
    site.state = { ...site.state, waiting: SITE_JOBS_WAITING_MAX - 1 };
    site.tell("want", { account, job: hex(5_000), wants: 1, tell });
    const one = { account, job: hex(5_001), wants: 1, tell };
    site.tell("want", one);
    const told = site.sent.filter(({ message }) => message === "siteFull");
    expect(told.map(({ key, input }) => [key, input])).to.deep.equal([
      [hex(5_001), { host: "a.example" }],
    ]);
    expect(site.rows.size).to.equal(1);
    site.tell("want", { account, job: hex(5_000), wants: 0, tell: [] });
    expect(site.rows.size).to.equal(0);
    site.tell("want", one);
    expect(site.rows.size).to.equal(1);
  });

  it("look() forgets an unused site after its files have expired and its delay is over, not before", () => {
    const rules = rulesOutcome({ rules: ["1-/x"], crawlDelayMs: CRAWL_DELAY_MS_MAX });
    const site = known(rules);
    const expiresAt = site.now + ROBOTS_KEPT_MS;
    lookUntil(site, expiresAt - 1);
    want(site, 1, []);
    lookUntil(site, expiresAt - 2);
    const [turn = ""] = turnsOf(site);
    expect(begin(site, turn).state).to.equal("go");
    site.tell("requestStarted", { turn });
    site.tell("turnFinished", { turn });
    const startedAt = site.now;
    lookUntil(site, startedAt + CRAWL_DELAY_MS_MAX - 1);
    expect(site.rows.size).to.equal(1);
    lookUntil(site, startedAt + CRAWL_DELAY_MS_MAX + 10);
    expect([site.state, site.rows.size]).to.deep.equal([siteActor.initial, 0]);
    for (const message of ["look", "want", "turnFinished", "requestStarted"] as const) {
      const input = message === "want" ? { account, job, wants: 0, tell: [] } : { turn };
      site.tell(message, message === "look" ? {} : input);
      expect(site.changed, message).to.equal(false);
    }
    want(site, 1, []);
    expect(begin(site, turnsOf(site)[0]).state).to.equal("wait");
    expect(site.sentAs("robots")).to.have.length(1);
  });

  it("look() keeps a paused site and a site with waiting jobs, but forgets a site that was only visited", () => {
    const away = known(CLOSED);
    away.tell("visit", { turn: hex(7) });
    away.tell("turnFinished", { turn: hex(7), awayMs: HOST_AWAY_MS_MAX });
    const until = away.now + HOST_AWAY_MS_MAX;
    lookUntil(away, until - 1);
    expect(away.state.pace.awayUntil).to.equal(until);
    lookUntil(away, until + 1);
    expect(away.state).to.equal(siteActor.initial);
    const waited = new SiteDriver();
    want(waited, 1);
    lookUntil(waited, waited.now + 2 * TURN_MS_MAX);
    expect(waited.state.newcomers).to.have.length(1);
    const visited = new SiteDriver();
    visited.tell("visit", { turn: hex(7) });
    lookUntil(visited, visited.now + 2 * TURN_MS_MAX);
    expect(visited.state).to.equal(siteActor.initial);
  });

  it("the stored state loads again", () => {
    const site = known(rulesOutcome({ crawlDelayMs: 250, contentSignal: { search: true } }));
    want(site, 5);
    begin(site, turnsOf(site)[0]);
    expect(SiteState.parse(JSON.parse(JSON.stringify(site.state)))).to.deep.equal(site.state);
  });
});

/** A site that has just fetched its https robots.txt. */
function known(outcome: RobotsOutcome = rulesOutcome()): SiteDriver {
  const site = new SiteDriver();
  site.tell("consult", { scheme: "https", intent });
  site.tell("turnFinished", { turn: site.fetched(outcome) });
  return site;
}

/** Advances the clock and delivers the reminders. */
function lookUntil(site: SiteDriver, until: number): void {
  while (site.state.lookAt !== undefined && site.state.lookAt <= until) {
    site.now = Math.max(site.now, site.state.lookAt);
    site.tell("look", {});
  }
  site.now = until;
}

function want(
  site: SiteDriver,
  wants: number,
  tell = [{ scheme: "https" as const, intent }],
  who = job,
  of = account,
): void {
  site.tell("want", { account: of, job: who, wants, tell });
}

/** Returns the unstarted turns of jobs. */
const turnsOf = (site: SiteDriver) =>
  Object.entries(site.state.pace.turns)
    .filter(([, turn]) => turn.account !== "" && turn.startedAt === undefined)
    .map(([turn]) => turn);

/** Returns, for each unstarted turn of a job, the time until it may begin. */
const dueIns = (site: SiteDriver) =>
  turnsOf(site).map((turn) => (site.state.pace.turns[turn]?.dueAt ?? 0) - site.now);

const begin = (site: SiteDriver, turn = "", urls = [page]) =>
  site.tell("begin", { turn, urls, intent });
