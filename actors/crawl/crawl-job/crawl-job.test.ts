import { expect } from "chai";
import type { PageOutcome } from "../../../schemas/crawl/crawl-job.ts";
import {
  CRAWL_KEPT_MS,
  CRAWL_MS_MAX,
  CRAWL_NEWS_PAGES_MAX,
  CRAWL_TRIES_MAX,
  SITE_FULL_RETRY_MS,
  SITES_FULL_MAX,
} from "../../../schemas/crawl/limits.ts";
import {
  ACCOUNT,
  checkJob,
  fetched,
  HOST,
  JOB,
  JobWorld,
  START,
} from "../../../scripts/testing/job-world.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { CrawlJobRow, CrawlJobState } from "./state/crawl-job-state.ts";

const OTHER = "b".repeat(32);
const A = `${START}a`;
const B = `${START}b`;

const disallowed = (index: number): PageOutcome => ({
  kind: "disallowed",
  index,
  reason: "robots.txt line 2",
});
const failed =
  (more: Partial<Extract<PageOutcome, { kind: "failed" }>> = {}) =>
  (index: number): PageOutcome => ({
    ...{ kind: "failed", index, reason: "it timed out", retry: true, blobs: [], browserMs: 5 },
    ...more,
  });
const redirected =
  (to: string) =>
  (index: number): PageOutcome => ({
    ...{ kind: "redirected", index, to, status: 301, browserMs: 0 },
  });

/** A job without a sitemap whose start was fetched with these links. */
function walking(links: string[], plan: Parameters<JobWorld["start"]>[0] = {}): JobWorld {
  const world = new JobWorld().start({ source: "links", ...plan });
  world.learn();
  world.visit(fetched(links));
  return world;
}

describe("crawlJob", () => {
  describe("start()", () => {
    it("start() notifies the list and the start's site, and sets the reminder", () => {
      const world = new JobWorld().start();
      expect(world.take("crawl-list")).to.deep.equal([
        {
          ...{ to: "actor", kind: "crawl-list", key: ACCOUNT, message: "started" },
          input: { id: JOB, url: START, createdAt: world.now, requestBytes: 10 },
        },
      ]);
      const [want, ...others] = world.take("site");
      expect(others).to.deep.equal([]);
      expect(want).to.deep.include({ key: HOST, message: "want" });
      const tell = [{ scheme: "https", intent: { purposes: ["search"] } }];
      expect(want?.input).to.deep.equal({ account: ACCOUNT, job: JOB, wants: 1, tell });
      expect(world.reminders.get("timeOut")).to.equal(world.now + CRAWL_MS_MAX);
      expect(world.summary()).to.deep.include({ status: "running", total: 1, finished: 0 });
    });

    it("a second start() with the same request changes nothing, and with another is refused", () => {
      const world = new JobWorld().start();
      world.sent = [];
      const before = world.state;
      world.start();
      expect(world.state).to.equal(before);
      const again = () =>
        world.run("start", {
          ...{ account: ACCOUNT, request: { name: "another", bytes: 1 } },
          plan: {
            ...{ url: START, limit: 1, depth: 0, source: "all", formats: ["html"] },
            ...{ render: false, options: {}, intent: { purposes: ["search"] } },
          },
        });
      expect(refusal(again).code).to.equal("conflict");
    });

    it("start() refuses an address that cannot be crawled", () => {
      for (const url of ["ftp://site.example/", `https://${"a".repeat(500)}/`]) {
        expect(refusal(() => new JobWorld().start({ url })).code).to.equal("invalid_request");
      }
    });

    it("start() stores the highest number of the longest patterns", () => {
      const patterns = Array.from({ length: 100 }, () => "\u0001".repeat(1_024));
      const world = new JobWorld().start({
        source: "links",
        options: {
          includePatterns: patterns.slice(0, 40),
          excludePatterns: [...patterns.slice(0, 39), "**/b"],
        },
      });
      world.learn();
      world.visit(fetched([B]));
      world.settleBacklog();
      expect(world.records()[1]?.reason).to.equal('excludePatterns has "**/b"');
    });
  });

  it("every call refuses an unknown job and another account's job", () => {
    for (const world of [new JobWorld(), new JobWorld().start()]) {
      const account = OTHER;
      expect(refusal(() => world.run("get", { account })).code).to.equal("not_found");
      expect(refusal(() => world.list({ account })).code).to.equal("not_found");
      expect(refusal(() => world.run("cancel", { account })).code).to.equal("not_found");
    }
  });

  it("messages to an unstarted job store nothing and return its turn", () => {
    const world = new JobWorld();
    expect(world.tryGrant()).to.equal(undefined);
    expect(world.take("site").map(({ message }) => message)).to.deep.equal(["turnFinished"]);
    const turn = "1".repeat(32);
    world.learn();
    world.run("turnReported", { host: HOST, turn, outcomes: [fetched()(0)] });
    world.run("sitemapRead", { turn, url: A, urls: [], nested: [], nesting: 0 });
    world.run("turnEnded", { host: HOST, turn });
    world.run("jsonExtracted", { index: 0 });
    world.run("admitMore", {});
    world.run("timeOut", {});
    world.run("expire", {});
    expect(world.state.status).to.equal("unknown");
    expect(world.rows.size + world.sent.length).to.equal(0);
  });

  describe("turns", () => {
    it("turnGranted() sends one task with the queued requests, up to the turn's limit", () => {
      const world = walking([A, B, `${START}c`]);
      const turn = world.grant(2);
      expect(turn.requests.map(({ url }) => url)).to.deep.equal([A, B]);
      expect(turn).to.deep.include({ account: ACCOUNT, job: JOB, host: HOST });
      checkJob(world);
    });

    it("siteFull() makes the job ask the site again later, however often that happens, and then continue", () => {
      const world = new JobWorld().start();
      world.take("site");
      world.run("siteFull", { host: HOST });
      world.run("siteFull", { host: HOST });
      expect(world.reminders.get("askAgain")).to.equal(world.now + SITE_FULL_RETRY_MS);
      expect(world.summary().messages).to.have.length(1);
      expect(world.summary().messages[0]).to.include(HOST);
      expect(world.take("site")).to.deep.equal([]);
      world.now += SITE_FULL_RETRY_MS;
      world.run("askAgain", {});
      const [want] = world.take("site");
      const tell = [{ scheme: "https", intent: { purposes: ["search"] } }];
      expect(want?.input).to.deep.include({ job: JOB, wants: 1, tell });
      // The site is still full; then the job is cancelled.
      world.run("siteFull", { host: HOST });
      expect(world.reminders.has("askAgain")).to.equal(true);
      world.run("cancel", { account: ACCOUNT });
      expect(world.reminders.has("askAgain")).to.equal(false);
      world.run("siteFull", { host: HOST });
      world.run("askAgain", {});
      expect(world.summary().status).to.equal("cancelled_by_user");
      checkJob(world);
    });

    it("siteFull() of SITES_FULL_MAX sites pauses them, and one more ends the job with a reason", () => {
      const world = new JobWorld().start();
      for (let site = 0; site < SITES_FULL_MAX; site++) {
        world.run("siteFull", { host: `${site}.example` });
      }
      expect(world.summary().status).to.equal("running");
      world.run("siteFull", { host: "one-more.example" });
      expect(world.summary().status).to.equal("errored");
      expect(world.summary().messages.at(-1)).to.include(`${SITES_FULL_MAX} sites`);
    });

    it("turnGranted() of a job that renders is a task for a browser", () => {
      const world = new JobWorld().start({ render: true });
      world.run("turnGranted", { host: HOST, turn: OTHER, requests: 1 });
      const [task] = world.take("crawl-page");
      expect(task).to.deep.include({ message: "renderTurn", lane: "browser", to: "worker" });
    });

    it("a second turnGranted() changes nothing, and an empty queue returns the turn", () => {
      const world = new JobWorld().start();
      world.take("site");
      const granted = { host: HOST, turn: OTHER, requests: 1 };
      world.run("turnGranted", granted);
      world.sent = [];
      world.run("turnGranted", granted);
      expect(world.sent).to.deep.equal([]);
      expect(world.tryGrant()).to.equal(undefined);
      const [back] = world.take("site");
      expect(back).to.deep.include({ key: HOST, message: "turnFinished" });
      checkJob(world);
    });

    it("turnReported() twice counts once, and an unknown turn does not count", () => {
      const world = new JobWorld().start({ source: "links" });
      const turn = world.grant();
      world.report({ ...turn, turn: OTHER }, fetched()(0));
      expect(world.summary().finished).to.equal(0);
      world.report(turn, failed()(0), fetched()(0));
      expect(world.summary()).to.deep.include({ finished: 0, browserMs: 5 });
      world.report(turn, fetched([A])(0));
      expect(world.summary()).to.deep.include({ total: 1, finished: 0 });
      checkJob(world);
    });

    it("turnEnded() requeues unreported pages ahead of the others", () => {
      const world = walking([A, B, `${START}c`, `${START}d`]);
      const turn = world.grant(3);
      world.report(turn, fetched()(2));
      world.run("turnEnded", { host: HOST, turn: turn.turn });
      world.run("turnEnded", { host: HOST, turn: turn.turn });
      checkJob(world);
      const again = world.grant();
      expect(again.requests.map(({ url }) => url)).to.deep.equal([A, `${START}c`, `${START}d`]);
      expect(again.requests.map(({ attempt }) => attempt)).to.deep.equal([1, 1, 1]);
    });

    it("turnEnded() with a failure retries each page alone, and gives up after CRAWL_TRIES_MAX", () => {
      const world = walking([A, B]);
      const first = world.grant();
      world.run("turnEnded", {
        host: HOST,
        turn: first.turn,
        failed: "workers ended while they ran it",
      });
      for (const attempt of [1, 2, 3]) {
        const turn = world.grant();
        const asked = { type: "page", index: 1, url: A, attempt, alone: true };
        expect(turn.requests).to.deep.equal([asked]);
        world.run("turnEnded", {
          host: HOST,
          turn: turn.turn,
          failed: "workers ended while they ran it",
        });
        checkJob(world);
      }
      world.visit(fetched());
      expect(world.records()[1]).to.deep.include({
        status: "errored",
        reason: "its fetch broke off 3 times",
      });
      expect(world.summary()).to.deep.include({ status: "completed", total: 3, finished: 3 });
    });

    it("a start URL that kills its workers ends the job", () => {
      const world = new JobWorld().start();
      for (let tries = 0; tries < CRAWL_TRIES_MAX; tries += 1) {
        world.run("turnEnded", { host: HOST, turn: world.grant().turn, failed: "it died" });
      }
      expect(world.summary().status).to.equal("errored");
      expect(world.summary().messages).to.deep.equal([
        "The start URL could not be fetched: its fetch broke off 3 times",
      ]);
    });

    it("the job sends want when a queue passes a threshold, not for every link", () => {
      const world = walking([], { limit: 2_000 });
      expect(world.summary().status).to.equal("completed");
      const busy = new JobWorld().start({ source: "links", limit: 2_000 });
      busy.learn();
      const links = Array.from({ length: 1_000 }, (_, number) => `${START}${number}`);
      busy.visit(fetched(links));
      busy.settleBacklog();
      const wants = busy.take("site").map(({ input }) => (input as { wants: number }).wants);
      expect(wants.length).to.be.below(6);
      expect(wants.at(-1)).to.be.above(256);
      busy.grant(64);
      expect(busy.take("site")).to.have.length.below(2);
    });
  });

  describe("outcomes", () => {
    it("fetched completes a page and queues its links", () => {
      const world = walking([A, `${A}#x`, B, "mailto:x@site.example", START]);
      expect(world.statuses()).to.deep.equal({
        [START]: "completed",
        [A]: "queued",
        [B]: "queued",
      });
      expect(world.records()[0]).to.deep.equal({
        ...{ index: 0, url: START, status: "completed" },
        metadata: { status: 200, url: START, title: "A page" },
        blobs: [{ name: `crawl.${JOB}.0.1`, bytes: 7 }],
      });
      expect(world.records()[1]?.reason).to.equal("it waits for a turn at site.example");
      checkJob(world);
    });

    it("fetched with an HTTP status from 400 is errored, keeps its body, and adds no links", () => {
      const world = walking([A]);
      world.visit(fetched([B], { metadata: { status: 404, url: A } }));
      const [, record] = world.records();
      expect(record).to.deep.include({ status: "errored", reason: "HTTP 404" });
      expect(record?.blobs).to.have.length(1);
      expect(world.summary()).to.deep.include({ status: "completed", total: 2, finished: 2 });
    });

    it("disallowed counts, and frees its place under the limit", () => {
      const world = walking([A, B], { limit: 2 });
      expect(world.records()).to.have.length(2);
      world.visit(disallowed);
      world.settleBacklog();
      expect(world.statuses()).to.include({ [A]: "disallowed", [B]: "queued" });
      expect(world.records()[1]?.reason).to.equal("robots.txt line 2");
      world.visit(fetched());
      expect(world.summary()).to.deep.include({ status: "completed", total: 3, finished: 3 });
    });

    it("skipped does not count in the totals, and frees its place", () => {
      const world = walking([A, B], { limit: 2 });
      world.visit((index) => ({ kind: "skipped", index, reason: "Last modified long ago" }));
      expect(world.summary()).to.deep.include({
        ...{ status: "running", total: 1, finished: 1, skipped: 1 },
      });
      world.settleBacklog();
      world.visit(fetched());
      expect(world.summary()).to.deep.include({
        ...{ status: "completed", total: 2, finished: 2, skipped: 1 },
      });
      expect(world.records()[1]?.reason).to.equal("Last modified long ago");
    });

    it("failed is retried up to three attempts if a retry makes sense, and then errored", () => {
      const world = walking([A]);
      world.visit(failed());
      expect(world.grant(1).requests[0]).to.deep.include({ url: A, attempt: 2 });
      const again = walking([A, B]);
      for (let tries = 0; tries < CRAWL_TRIES_MAX; tries += 1) {
        again.visit(failed());
        again.visit(failed({ retry: tries > 0 }));
        if (tries === 0) expect(again.statuses()[B]).to.equal("errored");
        if (again.summary().status !== "running") break;
      }
      expect(again.summary()).to.deep.include({ status: "completed", total: 3, finished: 3 });
      checkJob(again);
    });

    it("failed of the start URL ends the job without an HTTP response, but not with one", () => {
      const gone = new JobWorld().start();
      gone.visit(failed({ retry: false }));
      expect(gone.summary()).to.deep.include({ status: "errored", total: 1, finished: 1 });
      expect(gone.summary().messages).to.deep.equal([
        "The start URL could not be fetched: it timed out",
      ]);
      const busy = new JobWorld().start({ source: "links" });
      busy.learn();
      busy.visit(failed({ retry: false, metadata: { status: 503, url: START } }));
      expect(busy.summary()).to.deep.include({ status: "completed", finished: 1 });
      expect(busy.records()[0]).to.deep.include({ status: "errored", reason: "it timed out" });
    });

    it("out_of_time ends the job, and keeps pages reported with it", () => {
      const world = walking([A, B, `${START}c`]);
      const turn = world.grant();
      const reason = "600 of 600 seconds are used";
      world.report(turn, { kind: "out_of_time", index: 2, reason }, fetched()(1));
      expect(world.summary()).to.deep.include({
        ...{ status: "cancelled_due_to_limits", total: 4, finished: 2, messages: [reason] },
      });
      expect(world.statuses()).to.include({ [A]: "completed", [B]: "cancelled" });
      expect(world.records({ status: "cancelled" }).map(({ reason }) => reason)).to.deep.equal([
        "the account had no browser time left",
        "the account had no browser time left",
      ]);
    });
  });

  describe("redirects", () => {
    it("a redirect is another request of the same page, queued first at its target's host", () => {
      const world = walking([A, B], { options: { includeSubdomains: true } });
      world.visit(redirected("https://www.site.example/a"));
      world.visit(fetched(), "www.site.example");
      expect(world.records()[1]).to.deep.include({ url: A, status: "completed" });
      world.visit(redirected(`${START}c`));
      expect(world.grant(1).requests[0]).to.deep.include({ index: 2, url: `${START}c` });
      checkJob(world);
    });

    it("a redirect to a page of the crawl is skipped, whichever was found first", () => {
      const world = walking([A, B]);
      world.visit(redirected(B));
      expect(world.records()[1]).to.deep.include({
        ...{ status: "skipped", reason: `it redirects to ${B}, which the crawl has already` },
      });
      world.visit(redirected(`${START}c`));
      world.visit(fetched([`${START}c`]));
      expect(world.summary()).to.deep.include({ status: "completed", total: 2, skipped: 1 });
    });

    it("a redirect out of the crawl is skipped, and one to an invalid address errored", () => {
      const world = walking([A, B]);
      world.visit(redirected("https://elsewhere.example/"));
      world.visit(redirected("mailto:x@y.example"));
      const [, one, two] = world.records();
      expect(one?.status).to.equal("skipped");
      expect(one?.reason).to.contain("the host is elsewhere.example, not site.example");
      expect(two?.status).to.equal("errored");
      expect(two?.reason).to.contain("the scheme is mailto");
    });

    it("ten redirects are followed, the eleventh is not; a redirect back to the page itself is", () => {
      const world = walking([A, B]);
      world.visit(redirected(A));
      for (let hop = 2; hop <= 10; hop += 1) world.visit(redirected(`${A}${hop}`));
      expect(world.statuses()[A]).to.equal("queued");
      world.visit(redirected(`${A}11`));
      expect(world.records()[1]).to.deep.include({
        ...{ status: "errored", reason: "it redirects more than 10 times" },
      });
    });

    it("a redirect of the start URL is followed, and its target is a home of the crawl", () => {
      const world = new JobWorld().start();
      world.learn();
      world.take("site");
      world.visit(redirected("https://www.site.example/"));
      const wants = world.take("site").filter(({ key }) => key === "www.site.example");
      const tell = [{ scheme: "https", intent: { purposes: ["search"] } }];
      expect(wants[0]?.input).to.deep.include({ wants: 1, tell });
      world.learn({ host: "www.site.example" });
      const turn = world.grant(9, "www.site.example");
      expect(turn.requests.map(({ url }) => url)).to.deep.equal([
        "https://www.site.example/",
        "https://www.site.example/sitemap.xml",
      ]);
      const links = ["https://www.site.example/a", B, "https://other.example/"];
      world.report(turn, fetched(links)(0));
      expect(world.records()).to.have.length(1);
      const end = { failed: "HTTP 404", retry: false };
      const slice = { urls: [], nested: [], nesting: 0, end };
      world.run("sitemapRead", { turn: turn.turn, url: turn.requests[1]?.url ?? "", ...slice });
      const first = world.grant(1);
      world.run("sitemapRead", { turn: first.turn, url: `${START}sitemap.xml`, ...slice });
      world.settleBacklog();
      expect(world.statuses()).to.deep.equal({
        [START]: "completed",
        "https://www.site.example/a": "queued",
        [B]: "queued",
        "https://other.example/": "skipped",
      });
      checkJob(world);
    });
  });

  describe("json", () => {
    const json = () => {
      const world = new JobWorld().start({ source: "links", formats: ["html", "json"] });
      world.learn();
      world.visit(fetched([A], { jsonSource: "text" }));
      return world;
    };

    it("a page waits for its JSON, and is completed with it", () => {
      const world = json();
      const [task] = world.take("crawl-page");
      expect(task).to.deep.include({ message: "json", lane: "json" });
      expect(task?.input).to.deep.include({ account: ACCOUNT, job: JOB, index: 0, blob: "text" });
      expect(world.records()[0]).to.deep.include({
        ...{ status: "queued", reason: "its JSON is being made" },
      });
      checkJob(world);
      const blob = { name: "json", bytes: 2 };
      world.run("jsonExtracted", { index: 0, blob });
      world.run("jsonExtracted", { index: 0, reason: "too late" });
      const [record] = world.records();
      expect(record?.status).to.equal("completed");
      expect(record?.reason).to.equal(undefined);
      expect(record?.blobs[1]).to.deep.equal(blob);
      checkJob(world);
    });

    it("a page without JSON is completed too, with the reason", () => {
      const world = json();
      world.run("jsonExtracted", { index: 0, reason: "the model said nothing" });
      expect(world.records()[0]).to.deep.include({
        ...{ status: "completed", reason: "the model said nothing" },
      });
      world.run("jsonExtracted", { index: 1, reason: "nobody asked" });
      world.run("jsonExtracted", { index: 77, reason: "nobody asked" });
      expect(world.statuses()[A]).to.equal("queued");
    });

    it("a job does not end while JSON is being made", () => {
      const world = json();
      world.visit(fetched([], { jsonSource: "text" }));
      expect(world.summary().status).to.equal("running");
      world.run("jsonExtracted", { index: 0, reason: "none" });
      world.run("jsonExtracted", { index: 1, reason: "none" });
      expect(world.summary()).to.deep.include({ status: "completed", finished: 2 });
    });
  });

  describe("ends", () => {
    it("a job with only settled pages is completed; the list and sites are notified, and reminders are set", () => {
      const world = walking([A]);
      world.sent = [];
      world.visit(fetched());
      expect(world.summary()).to.deep.include({ status: "completed", endedAt: world.now });
      expect(world.take("crawl-list").map(({ message, input }) => [message, input])).to.deep.equal([
        [
          "ended",
          {
            ...{ id: JOB, status: "completed", endedAt: world.now },
            ...{ total: 2, finished: 2, skipped: 0, bytes: 0 },
          },
        ],
      ]);
      expect([...world.reminders]).to.deep.equal([["expire", world.now + CRAWL_KEPT_MS]]);
    });

    it("cancel() cancels unsettled pages before the reply, and refuses a second cancel", () => {
      const world = walking([A, B]);
      const turn = world.grant(1);
      world.sent = [];
      world.run("cancel", { account: ACCOUNT });
      expect(world.statuses()).to.deep.equal({
        ...{ [START]: "completed", [A]: "cancelled", [B]: "cancelled" },
      });
      expect(world.records()[1]?.reason).to.equal("the crawl was cancelled");
      expect(world.summary()).to.deep.include({
        ...{ status: "cancelled_by_user", total: 3, finished: 1 },
      });
      const wants = world.take("site").map(({ input }) => input);
      expect(wants).to.deep.equal([{ account: ACCOUNT, job: JOB, wants: 0, tell: [] }]);
      const { code, message } = refusal(() => world.run("cancel", { account: ACCOUNT }));
      expect([code, message]).to.deep.equal([
        ...["conflict", "Cannot cancel crawl: it has ended (cancelled_by_user)"],
      ]);
      const before = world.state;
      world.report(turn, fetched([B])(1));
      world.run("turnEnded", { host: HOST, turn: turn.turn });
      world.run("jsonExtracted", { index: 1 });
      world.run("timeOut", {});
      world.run("admitMore", {});
      world.learn();
      expect(world.state).to.equal(before);
    });

    it("a turn for an ended job is returned, and the site is notified that the job wants none", () => {
      const world = walking([A]);
      world.run("cancel", { account: ACCOUNT });
      world.sent = [];
      expect(world.tryGrant()).to.equal(undefined);
      expect(world.take("site").map(({ message }) => message)).to.deep.equal([
        ...["want", "turnFinished"],
      ]);
    });

    it("timeOut() ends a job at its timeout", () => {
      const world = walking([A]);
      world.run("timeOut", {});
      expect(world.summary().status).to.equal("cancelled_due_to_timeout");
      expect(world.summary().messages).to.have.length(1);
      expect(world.records()[1]?.reason).to.equal("the crawl took longer than it may");
    });

    it("a content signal that is learned late ends the job, and waiting pages are disallowed", () => {
      const world = new JobWorld().start();
      world.learn({ refusal: "Content-Signal says search=no" });
      expect(world.summary().status).to.equal("errored");
      expect(world.summary().messages).to.deep.equal([
        "Crawl purpose(s) completely disallowed by Content-Signal directive",
      ]);
      expect(world.records()).to.deep.equal([
        {
          ...{ index: 0, url: START, status: "disallowed", blobs: [] },
          reason: "Content-Signal says search=no",
        },
      ]);
      expect(world.records({ status: "disallowed" })).to.have.length(1);
      expect(world.records({ status: "cancelled" })).to.have.length(0);
    });

    it("get() and list() refuse an expired job even if expire() is late", () => {
      const world = walking([]);
      world.now += CRAWL_KEPT_MS - 1;
      expect(world.summary().status).to.equal("completed");
      world.now += 1;
      expect(refusal(() => world.run("get", { account: ACCOUNT })).code).to.equal("not_found");
      expect(refusal(() => world.records()).code).to.equal("not_found");
    });

    it("expire() removes everything of the job, once", () => {
      const world = walking([]);
      world.sent = [];
      world.run("expire", {});
      expect(world.sent.map(({ kind, message }) => `${kind} ${message}`)).to.deep.equal([
        ...["crawl-page purge", "crawl-list expired"],
      ]);
      expect(refusal(() => world.summary()).code).to.equal("not_found");
      expect(world.rows.size + world.reminders.size).to.equal(0);
      world.sent = [];
      world.run("expire", {});
      expect(world.sent).to.deep.equal([]);
      const running = walking([A]);
      running.run("expire", {});
      expect(running.summary().status).to.equal("running");
    });
  });

  describe("live", () => {
    it("live updates show each settled page and the job's counts", () => {
      const world = walking([A, B, "https://strange.example/"]);
      expect(world.news.at(-1)).to.deep.equal({
        ...{ status: "running", total: 3, finished: 1, skipped: 1 },
        pages: [
          { index: 0, url: START, status: "completed", httpStatus: 200 },
          { index: 3, url: "https://strange.example/", status: "skipped" },
        ],
      });
      const { length } = world.news;
      const turn = world.grant();
      expect(world.news).to.have.length(length);
      world.report(turn, disallowed(1), failed()(2));
      expect(world.news.at(-1)?.pages).to.deep.equal([{ index: 1, url: A, status: "disallowed" }]);
      world.run("cancel", { account: ACCOUNT });
      expect(world.news.at(-1)).to.deep.include({ status: "cancelled_by_user", pages: [] });
    });

    it("more pages than one message shows are only counted", () => {
      const strange = Array.from({ length: 150 }, (_, page) => `https://strange.example/${page}`);
      const world = walking(strange);
      expect(world.news.at(-1)?.skipped).to.equal(150);
      expect(world.news.at(-1)?.pages).to.have.length(CRAWL_NEWS_PAGES_MAX);
    });
  });

  it("state and rows of the first release load", () => {
    const lane = { first: 0, next: 0 };
    const state = JSON.stringify({
      ...{ status: "completed", account: ACCOUNT, request: "r", createdAt: 1, endedAt: 2 },
      ...{ messages: ["m"], refusal: "r", browserMs: 3, records: 4, admitted: 4, queued: 0 },
      ...{ inFlight: 0, settled: 5, total: 4, finished: 4, disallowed: 0, skipped: 0 },
      ...{ skippedKept: 0, homes: [{ origin: "https://a.example", learned: true }] },
      sitemaps: { known: 1, released: 1, open: [] },
      backlog: { asked: false, files: lane, sitemap: lane, links: lane },
    });
    expect(CrawlJobState.parse(JSON.parse(state)).messages).to.deep.equal(["m"]);
    const rows = [
      `{"type":"page","url":"https://a.example/","at":"https://b.example/","hops":1,"depth":0,"status":"completed","failures":1,"alone":true,"next":2,"settledAs":1,"reason":"r","metadata":{"status":200,"title":"t","url":"https://b.example/","lastModifiedAt":1,"contentType":"text/html","truncated":true,"cachedAt":2},"blobs":[{"name":"n","bytes":1}]}`,
      `{"type":"letters","letters":"qceds","settledAs":3}`,
      `{"type":"known","known":" 0123456789abc=z"}`,
      `{"type":"host","first":1,"last":2,"queued":2,"told":1}`,
      `{"type":"turn","host":"a.example","pages":[1],"sitemaps":[0]}`,
      `{"type":"sitemap","url":"https://a.example/s.xml","nesting":0,"guessed":true,"inFlight":false,"failures":0}`,
      `{"type":"backlog","depth":1,"found":[{"url":"https://a.example/","lastModifiedAt":1}]}`,
      `{"type":"patterns","patterns":["**"]}`,
      `{"type":"plan","plan":{"url":"https://a.example/","limit":1,"depth":0,"source":"all","formats":["html"],"render":true,"modifiedSince":1,"options":{"includeSubdomains":true},"intent":{"purposes":["search"],"contentUse":"full"}}}`,
    ];
    for (const row of rows)
      expect(CrawlJobRow.parse(JSON.parse(row))).to.deep.equal(JSON.parse(row));
  });
});
