import { expect } from "chai";
import type { PageOutcome } from "../../../schemas/crawl/crawl-job.ts";
import { CRAWL_TRIES_MAX } from "../../../schemas/crawl/limits.ts";
import {
  ACCOUNT,
  checkJob,
  fetched,
  HOST,
  JOB,
  JobWorld,
  START,
} from "../../../scripts/testing/job-world.ts";
import { RECORDS_SPARE_MIN } from "./state/pages.ts";

const A = `${START}a`;
const B = `${START}b`;

const unreachable = (index: number): PageOutcome => ({
  ...{ kind: "disallowed", index, reason: "its name is not known", unreachable: true },
});
const redirected =
  (to: string) =>
  (index: number): PageOutcome => ({
    ...{ kind: "redirected", index, to, status: 301, browserMs: 0 },
  });
const numbered = (count: number, prefix = START) =>
  Array.from({ length: count }, (_, number) => `${prefix}${number}`);

function walking(links: string[], plan: Parameters<JobWorld["start"]>[0] = {}): JobWorld {
  const world = new JobWorld().start({ source: "links", ...plan });
  world.learn();
  world.visit(fetched(links));
  world.settleBacklog();
  return world;
}

describe("counts and messages of a crawl", () => {
  describe("pages whose browser crashed", () => {
    const failed = { kind: "failed" as const, retry: true, blobs: [], browserMs: 1 };
    const lost = (index: number): PageOutcome => ({
      ...{ ...failed, index, reason: "the browser ended", browserLost: true },
    });

    it("are retried one by one, and each fails only after an attempt of its own", () => {
      const world = walking([A, B]);
      const both = world.grant();
      expect(both.requests.map((request) => "alone" in request)).to.deep.equal([false, false]);
      world.report(both, lost(1), lost(2));
      world.report(both, lost(1), lost(2));
      for (const url of [A, B]) {
        const { turn, requests } = world.grant();
        const index = url === A ? 1 : 2;
        expect(requests).to.deep.equal([{ type: "page", index, url, attempt: 1, alone: true }]);
        world.report({ turn, host: HOST } as never, url === A ? lost(1) : fetched()(2));
        world.run("turnEnded", { host: HOST, turn });
        checkJob(world);
      }
      for (const attempt of [2, 3]) {
        const turn = world.grant();
        expect(turn.requests).to.deep.equal([
          { type: "page", index: 1, url: A, attempt, alone: true },
        ]);
        world.report(turn, lost(1));
      }
      expect(world.summary()).to.deep.include({ status: "completed", total: 3, finished: 3 });
      const [, ended, innocent] = world.records();
      expect(ended).to.deep.include({ status: "errored", reason: "the browser ended" });
      expect(innocent).to.deep.include({ status: "completed" });
      checkJob(world);
    });

    it("fail after their attempts, whatever happens in between", () => {
      const world = walking([A]);
      const other = { ...failed, index: 1, reason: "it took too long" };
      for (let tries = 1; tries < CRAWL_TRIES_MAX; tries += 1) {
        world.visit(lost);
        world.visit(() => other);
      }
      world.visit(lost);
      expect(world.summary().status).to.equal("running");
      world.visit(lost);
      expect(world.records()[1]).to.deep.include({ status: "errored" });
      expect(world.summary().status).to.equal("completed");
    });

    it("a start URL that ends its browser adds a message", () => {
      const world = new JobWorld().start();
      world.learn();
      for (let tries = 0; tries <= CRAWL_TRIES_MAX; tries += 1) world.visit(lost);
      expect(world.summary()).to.deep.include({
        status: "errored",
        messages: ["The start URL could not be fetched: the browser ended"],
      });
    });
  });

  describe("a start URL that is not fetched", () => {
    it("at an unreachable host ends the job as errored with the reason, also behind a redirect", () => {
      for (const hops of [0, 1]) {
        const world = new JobWorld().start();
        world.learn();
        if (hops > 0) world.visit(redirected("https://gone.example/"));
        world.visit(unreachable, hops > 0 ? "gone.example" : HOST);
        expect(world.summary()).to.deep.include({
          ...{ status: "errored", total: 1, finished: 1 },
          messages: ["The start URL could not be fetched: its name is not known"],
        });
        const [record] = world.records();
        expect(record).to.deep.include({ status: "errored", reason: "its name is not known" });
        checkJob(world);
      }
    });

    it("keeps pages reported with it", () => {
      const world = new JobWorld().start();
      const turn = world.grant();
      world.report(turn, unreachable(0), fetched()(0));
      expect(world.summary().status).to.equal("errored");
      expect(world.records()).to.have.length(1);
    });

    it("that robots.txt disallows adds a message, and the job is completed", () => {
      const world = new JobWorld().start({ source: "links" });
      world.learn();
      world.visit((index) => ({
        kind: "disallowed",
        index,
        reason: "robots.txt line 2: Disallow: /",
      }));
      expect(world.summary()).to.deep.include({
        ...{ status: "completed", total: 1, finished: 1 },
        messages: ["The start URL was not fetched: robots.txt line 2: Disallow: /"],
      });
      expect(world.records()[0]?.status).to.equal("disallowed");
    });
  });

  it("another page of an unreachable host is errored, and keeps its place", () => {
    const world = walking([A, B], { limit: 2 });
    world.visit(unreachable);
    expect(world.summary()).to.deep.include({ status: "completed", total: 2, messages: [] });
    expect(world.records({ status: "errored" }).map(({ url }) => url)).to.deep.equal([A]);
  });

  describe("limit", () => {
    it("a page that is skipped later frees its place", () => {
      const world = walking([`${A}/`, A, `${B}/`, B, `${START}c/`, `${START}c`], { limit: 5 });
      for (let turn = world.tryGrant(1); turn; turn = world.tryGrant(1)) {
        const [request] = turn.requests;
        if (request?.type !== "page") break;
        const { url, index } = request;
        world.report(turn, url.endsWith("/") ? fetched()(index) : redirected(`${url}/`)(index));
        world.settleBacklog();
      }
      expect(world.summary()).to.deep.include({ status: "completed", total: 4, skipped: 3 });
      checkJob(world);
    });

    it("unmodified pages free their places, up to a bound", () => {
      const world = walking(numbered(RECORDS_SPARE_MIN + 50), { limit: 2, modifiedSince: 1 });
      let rounds = 0;
      for (; world.summary().status === "running"; rounds += 1) {
        world.visit((index) => ({ kind: "skipped", index, reason: "it was not modified" }));
        world.settleBacklog();
      }
      expect(rounds).to.equal(RECORDS_SPARE_MIN + 1);
      checkJob(world);
    });

    it("browser time of a page that was not modified is counted", () => {
      const world = walking([A]);
      world.visit((index) => ({ kind: "skipped", index, reason: "old", browserMs: 700 }));
      expect(world.summary().browserMs).to.equal(700);
    });
  });

  describe("depth", () => {
    it("a link past the depth is skipped, and its record names the depth", () => {
      const world = walking([A], { depth: 1 });
      world.visit(fetched([B, A]));
      world.settleBacklog();
      expect(world.records()[2]).to.deep.include({
        ...{ url: B, status: "skipped", reason: "it is 2 links from the start, depth is 1" },
      });
      expect(world.summary()).to.deep.include({ status: "completed", total: 2, skipped: 1 });
      const alone = walking([A], { depth: 0 });
      expect(alone.records()[1]?.reason).to.equal("it is 1 link from the start, depth is 0");
      expect(alone.summary()).to.deep.include({ status: "completed", total: 1, skipped: 1 });
      checkJob(alone);
    });

    it("a page that is found again nearer to the start is fetched", () => {
      const world = walking([A, B], { depth: 2 });
      world.visit(fetched([`${START}near`]));
      world.settleBacklog();
      const turn = world.grant();
      world.report(turn, fetched([`${START}far`])(3));
      world.settleBacklog();
      expect(world.statuses()[`${START}far`]).to.equal("skipped");
      world.report(turn, fetched([`${START}far`])(2));
      world.settleBacklog();
      expect(world.statuses()[`${START}far`]).to.equal("queued");
      expect(world.summary()).to.deep.include({ total: 5, skipped: 0 });
      checkJob(world);
      world.visit(fetched());
      expect(world.records({ status: "skipped" })).to.deep.equal([]);
      expect(world.summary()).to.deep.include({ status: "completed", total: 5, finished: 5 });
      checkJob(world);
    });

    it("a page past the depth is fetched if a page within it redirects there", () => {
      const far = `${START}far`;
      const world = walking([A, B], { depth: 1 });
      world.visit(fetched([far]));
      world.settleBacklog();
      expect(world.statuses()[far]).to.equal("skipped");
      world.visit(redirected(far));
      expect(world.statuses()).to.deep.equal({
        ...{ [START]: "completed", [A]: "completed", [B]: "skipped", [far]: "queued" },
      });
      checkJob(world);
      world.visit(fetched());
      expect(world.summary()).to.deep.include({ status: "completed", total: 3, skipped: 1 });
      checkJob(world);
    });

    it("addresses past the depth get records up to a limit, and further ones are only counted", () => {
      const world = walking(numbered(RECORDS_SPARE_MIN + 5), { depth: 0 });
      expect(world.summary()).to.deep.include({
        status: "completed",
        skipped: RECORDS_SPARE_MIN + 5,
      });
      expect(world.records()).to.have.length(RECORDS_SPARE_MIN + 1);
    });

    it("does not count nested sitemaps: their pages have the depth of the start", () => {
      const world = new JobWorld().start({ depth: 0 });
      world.learn();
      const index = `${START}sitemap.xml`;
      const nested = [{ url: `${START}1.xml` }];
      const slice = { urls: [], nested: [], nesting: 0, end: { retry: false } };
      const first = world.grant();
      world.report(first, fetched([B])(0));
      world.run("sitemapRead", { ...slice, turn: first.turn, url: index, nested });
      const { turn, requests } = world.grant();
      expect(requests.map(({ url }) => url)).to.deep.equal([`${START}1.xml`]);
      world.run("sitemapRead", { ...slice, turn, url: `${START}1.xml`, urls: [{ url: A }] });
      world.settleBacklog();
      expect(world.statuses()).to.deep.equal({
        [START]: "completed",
        [A]: "queued",
        [B]: "skipped",
      });
    });
  });

  describe("turns that broke off", () => {
    const breakOff = (world: JobWorld, requests = 256) => {
      const { turn, requests: made } = world.grant(requests);
      world.run("turnEnded", { host: HOST, turn, failed: "its worker stopped" });
      return made;
    };

    it("a broken turn with several pages counts as an attempt of none", () => {
      const world = walking([A, B]);
      expect(breakOff(world)).to.have.length(2);
      for (let times = 1; times < CRAWL_TRIES_MAX; times += 1) {
        expect(breakOff(world).map(({ url }) => url)).to.deep.equal([A]);
        expect(world.statuses()[A]).to.equal("queued");
        checkJob(world);
      }
      breakOff(world);
      expect(world.records()[1]).to.deep.include({
        ...{ status: "errored", reason: "its fetch broke off 3 times" },
      });
      world.visit(fetched());
      expect(world.summary()).to.deep.include({ status: "completed", total: 3, finished: 3 });
    });

    it("a page alone in a broken turn still has its attempts for temporary faults", () => {
      const world = walking([A]);
      breakOff(world);
      breakOff(world);
      const again = { retry: true, blobs: [], browserMs: 0, reason: "it timed out" };
      for (let times = 1; times < CRAWL_TRIES_MAX; times += 1) {
        world.visit((index) => ({ kind: "failed", index, ...again }));
        expect(world.statuses()[A]).to.equal("queued");
      }
      world.visit((index) => ({ kind: "failed", index, ...again }));
      expect(world.records()[1]?.reason).to.equal("it timed out");
    });
  });

  it("finished excludes cancelled pages, and includes all pages that a content signal forbids", () => {
    const world = walking([A, B]);
    world.visit(fetched());
    world.run("cancel", { account: ACCOUNT });
    expect(world.summary()).to.deep.include({ total: 3, finished: 2 });
    expect(world.records({ status: "cancelled" })).to.have.length(1);
    const forbidden = new JobWorld().start();
    forbidden.learn({ refusal: "Content-Signal says search=no" });
    expect(forbidden.summary()).to.deep.include({ total: 1, finished: 1 });
  });

  it("a cursor past the last record is refused", () => {
    const world = walking([A, B]);
    for (const query of [
      { cursor: "3" },
      { cursor: "99999" },
      { status: "completed", cursor: "3.0.1" },
    ] as const) {
      expect(() => world.list(query)).to.throw(
        "the cursor belongs to a listing with another status",
      );
    }
    expect(world.list({ cursor: "2" }).entries).to.deep.equal([]);
  });

  it("the end of a job removes its request, once", () => {
    const world = walking([A]);
    world.sent = [];
    world.visit(fetched());
    expect(world.take("crawl-page")).to.deep.include({
      ...{ to: "worker", kind: "crawl-page", key: ACCOUNT, lane: "purge", inTurns: true },
      ...{ message: "purge", input: { job: JOB, only: "request" } },
    });
  });
});
