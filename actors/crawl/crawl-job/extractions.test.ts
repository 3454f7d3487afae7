import { expect } from "chai";
import type { CrawlPlan } from "../../../schemas/crawl/crawl-job.ts";
import { checkJob, fetched, HOST, JobWorld, START } from "../../../scripts/testing/job-world.ts";
import { JOB_JSON_TASKS_MAX } from "./extractions.ts";
import { STEP_SEND_BYTES_MAX } from "./turns.ts";

const JSON_PLAN: Partial<CrawlPlan> = { source: "links", formats: ["html", "json"] };

describe("extractions of a crawl job", () => {
  it("JOB_JSON_TASKS_MAX tasks run at once, and the others follow one by one, each once", () => {
    const world = new JobWorld().start({ ...JSON_PLAN, limit: 100 });
    world.learn();
    const links = Array.from({ length: 40 }, (_, number) => `${START}${number}`);
    world.visit(fetched(links, { jsonSource: "text of 0" }));
    const asked: number[] = [];
    const take = () => {
      for (const { message, input } of world.take("crawl-page")) {
        if (message !== "json") continue;
        const { index, blob } = input as { index: number; blob: string };
        expect(blob).to.equal(`text of ${index}`);
        asked.push(index);
      }
      return asked.length;
    };
    expect(take()).to.equal(1);
    const turn = world.grant();
    const all = turn.requests.map((request) => (request.type === "page" ? request.index : -1));
    world.report(
      turn,
      ...all.map((index) => fetched([], { jsonSource: `text of ${index}` })(index)),
    );
    world.run("turnEnded", { host: HOST, turn: turn.turn });
    expect(take()).to.equal(JOB_JSON_TASKS_MAX);
    // No model was asked for this page yet.
    world.run("jsonExtracted", { index: 40, reason: "nobody asked" });
    expect(take()).to.equal(JOB_JSON_TASKS_MAX);
    for (let answered = 0; answered <= 40; answered += 1) {
      checkJob(world);
      expect(world.summary().status).to.equal("running");
      const index = asked[answered] ?? -1;
      for (const _ of [1, 2]) world.run("jsonExtracted", { index, reason: "none" });
      expect(take()).to.equal(Math.min(41, JOB_JSON_TASKS_MAX + answered + 1));
    }
    expect(asked).to.deep.equal([0, ...all]);
    expect(world.summary()).to.include({ status: "completed", finished: 41 });
  });

  it("every page gets its task, however long its address is", () => {
    const world = new JobWorld().start({ ...JSON_PLAN, limit: 100 });
    world.learn();
    const links = Array.from(
      { length: 60 },
      (_, number) => `${START}${number}${"x".repeat(8_000)}`,
    );
    world.visit(fetched(links, { jsonSource: "text" }));
    let asked = takeJson(world).length;
    world.run("jsonExtracted", { index: 0, reason: "none" });
    for (let turns = 0; asked < 61; turns += 1) {
      expect(turns).to.be.below(61);
      const turn = world.tryGrant();
      for (const { type, url, ...request } of turn?.requests ?? []) {
        const index = "index" in request ? request.index : -1;
        const metadata = { status: 200, url };
        if (type === "page" && turn)
          world.report(turn, fetched([], { jsonSource: "text", metadata })(index));
      }
      if (turn) world.run("turnEnded", { host: HOST, turn: turn.turn });
      // The end of a task sends the next one.
      for (let tasks = takeJson(world); tasks.length > 0; tasks = takeJson(world)) {
        expect(JSON.stringify(tasks).length).to.be.below(STEP_SEND_BYTES_MAX);
        for (const { input } of tasks) {
          world.run("jsonExtracted", { index: (input as { index: number }).index, reason: "none" });
        }
        asked += tasks.length;
      }
      checkJob(world);
    }
  });

  it("a job that was stored before the count existed continues its tasks", () => {
    const world = new JobWorld().start(JSON_PLAN);
    world.learn();
    world.visit(fetched([`${START}a`], { jsonSource: "text" }));
    world.take("crawl-page");
    const { extractions, ...before } = world.state;
    world.state = before;
    world.run("jsonExtracted", { index: 0, reason: "none" });
    expect(world.statuses()[START]).to.equal("completed");
    world.visit(fetched([], { jsonSource: "text" }));
    expect(world.take("crawl-page")).to.have.length(1);
    expect(world.state.extractions).to.include({ asked: 1 });
  });
});

const takeJson = (world: JobWorld) =>
  world.take("crawl-page").filter(({ message }) => message === "json");
