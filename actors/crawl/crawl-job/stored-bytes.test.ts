import { expect } from "chai";
import {
  CRAWL_BYTES_STEP,
  CRAWL_BYTES_STEP_SHARE,
  CRAWLS_RUNNING_MAX,
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
import { id, List } from "../crawl-list/testing/list.ts";
import { CrawlJobState } from "./state/crawl-job-state.ts";

const BYTES_MAX = 1_024_000;
const STEP = 1_000;
const links = (count: number) => Array.from({ length: count }, (_, number) => `${START}${number}`);

/** A job without a sitemap, whose start page had these links and no bytes. */
function walking(count: number, plan: object = {}, bytesMax: number | undefined = BYTES_MAX) {
  const world = new JobWorld().start({ source: "links", limit: 100_000, ...plan }, { bytesMax });
  world.learn();
  world.visit(fetched(links(count)));
  world.settleBacklog();
  world.take("crawl-list");
  return world;
}
const storing = (storedBytes: number) => fetched([], { storedBytes });
const reports = (world: JobWorld) =>
  world
    .take("crawl-list")
    .map(({ message, input }) => [message, (input as { bytes: number }).bytes]);

describe("bytes of a crawl job", () => {
  it("are reported at a step of the account's limit, not before, and with the end", () => {
    expect(BYTES_MAX * CRAWL_BYTES_STEP_SHARE).to.equal(STEP);
    const world = walking(4);
    world.visit(storing(STEP - 1));
    expect(reports(world)).to.deep.equal([]);
    world.visit(storing(1));
    expect(reports(world)).to.deep.equal([["grown", STEP]]);
    world.visit(storing(STEP - 1));
    expect(reports(world)).to.deep.equal([]);
    world.visit(storing(5));
    expect(reports(world)).to.deep.equal([
      ["grown", 2 * STEP + 4],
      ["ended", 2 * STEP + 4],
    ]);
  });

  it("are those of failed attempts, of JSON and of empty records as well", () => {
    const world = walking(2, { formats: ["json"] });
    const reason = "The server answered with status 503";
    world.visit((index) => ({
      ...{ kind: "failed", index, reason, retry: true, blobs: [], browserMs: 0, storedBytes: 20 },
    }));
    world.visit(fetched([], { storedBytes: 300, jsonSource: "crawl.x.2.1" }));
    world.run("jsonExtracted", { index: 2, reason: "no answer", storedBytes: 4_000 });
    expect(reports(world)).to.deep.equal([["grown", 4_320]]);
    world.visit(fetched([]));
    expect(reports(world)).to.deep.equal([["ended", 4_320]]);
  });

  it("turnReported() and jsonExtracted() the same twice count once", () => {
    const world = walking(3, { formats: ["json"] });
    const turn = world.grant(1);
    const [request] = turn.requests;
    const index = request?.type === "page" ? request.index : -1;
    const outcome = fetched([], { storedBytes: 5_000, jsonSource: "crawl.x.1.1" })(index);
    for (let times = 0; times < 2; times++) world.report(turn, outcome, outcome);
    const answer = { index, reason: "no answer", storedBytes: 6_000 };
    for (let times = 0; times < 2; times++) world.run("jsonExtracted", answer);
    expect(reports(world)).to.deep.equal([
      ["grown", 5_000],
      ["grown", 11_000],
    ]);
  });

  it("count once for pages that were being stored when the job ended, and change nothing else", () => {
    const world = walking(3);
    const turn = world.grant(3);
    world.run("cancel", { account: ACCOUNT });
    expect(reports(world)).to.deep.equal([["ended", 0]]);
    world.sent = [];
    const before = { ...world.state, stored: undefined };
    const records = world.records();
    world.report(turn, fetched([])(1));
    expect(reports(world)).to.deep.equal([]);
    for (let times = 0; times < 2; times++) world.report(turn, storing(7)(2));
    expect(reports(world)).to.deep.equal([["grown", 7]]);
    expect({ ...world.state, stored: undefined }).to.deep.equal(before);
    expect(world.records()).to.deep.equal(records);
    expect(world.sent).to.deep.equal([]);
  });

  it("a report about a forgotten job changes nothing", () => {
    const world = new JobWorld();
    const { state } = world;
    world.run("turnReported", { turn: id(1), host: HOST, outcomes: [storing(7)(0)] });
    expect(world.state).to.equal(state);
    expect(world.sent).to.deep.equal([]);
  });

  it("accountFull() ends the job with its reason and keeps what it has fetched, once", () => {
    const world = walking(2);
    world.visit(storing(7));
    const reason = "The crawl was stopped: the account's crawls store too much";
    for (let times = 0; times < 2; times++) world.run("accountFull", { reason });
    expect(world.summary()).to.deep.include({
      ...{ status: "cancelled_due_to_limits", total: 3, finished: 2, messages: [reason] },
    });
    const records = world.records().map(({ status, reason }) => [status, reason]);
    expect(records).to.deep.equal([
      ["completed", undefined],
      ["completed", undefined],
      ["cancelled", "the account's crawls stored as much as they may"],
    ]);
    expect(reports(world)).to.deep.equal([["ended", 7]]);
    checkJob(world);
  });

  it("a job of an older version counts from now on, and so does one without a limit", () => {
    const noLimit = walking(2, {}, 0);
    const old = walking(2);
    const { stored, ...before } = old.state;
    old.state = CrawlJobState.parse(JSON.parse(JSON.stringify(before)));
    for (const world of [noLimit, old]) {
      world.visit(storing(CRAWL_BYTES_STEP - 1));
      expect(reports(world)).to.deep.equal([]);
      world.visit(storing(1));
      expect(reports(world)[0]).to.deep.equal(["grown", CRAWL_BYTES_STEP]);
    }
  });

  it("outcomes of older workers count as no bytes", () => {
    const world = walking(1);
    world.visit(fetched([]));
    expect(reports(world)).to.deep.equal([["ended", 0]]);
  });

  it("running jobs together pass the account's limit by one step and one report each", () => {
    const reportBytes = 400;
    const list = new List();
    const jobs = new Map(
      Array.from({ length: CRAWLS_RUNNING_MAX }, (_, number) => {
        list.run("admit", { bytesMax: BYTES_MAX });
        list.run("started", { id: id(number), url: START });
        return [id(number), walking(40)] as const;
      }),
    );
    // Each job stores pages of the same size, one after the other, until the list ends it.
    let stored = 0;
    for (let isRunning = true; isRunning; ) {
      isRunning = false;
      for (const [job, world] of jobs) {
        if (world.state.status !== "running") continue;
        isRunning = true;
        world.visit(storing(reportBytes));
        stored += reportBytes;
        deliver(job, world);
      }
    }
    expect(stored).to.equal(list.state.bytes);
    const past = stored - BYTES_MAX;
    expect(past).to.be.within(1, CRAWLS_RUNNING_MAX * (STEP + reportBytes));
    expect(past / BYTES_MAX).to.be.below(0.15);
    expect(refusal(() => list.run("admit", { bytesMax: BYTES_MAX })).code).to.equal("storage_full");

    /** Delivers the mail between a job and the list. All jobs of this test have the key JOB. */
    function deliver(job: string, world: JobWorld) {
      for (const { message, input } of world.take("crawl-list")) {
        const { id: key, ...more } = input as { id: string; bytes: number };
        expect(key).to.equal(JOB);
        if (message === "grown") list.run("grown", { id: job, ...more });
        else list.run("ended", { id: job, status: "cancelled_due_to_limits", ...more });
      }
      for (const { key, message, input } of list.take()) {
        if (message === "hostsShared") continue;
        expect(key).to.equal(job);
        world.run("accountFull", input as { reason: string });
        deliver(job, world);
      }
    }
  });
});
