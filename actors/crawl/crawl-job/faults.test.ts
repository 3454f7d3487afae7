import { expect } from "chai";
import {
  CRAWL_TRIES_MAX,
  SITE_FULL_RETRY_MS,
  SITES_FULL_MAX,
} from "../../../schemas/crawl/limits.ts";
import { checkJob, fetched, HOST, JobWorld, START } from "../../../scripts/testing/job-world.ts";
import { FAULT_RETRY_MS, JOB_FAULTS_MS_MAX } from "./faults.ts";

const fault = "the store has no room for what was fetched";

describe("internal faults in a crawl job", () => {
  const begun = () => {
    const world = new JobWorld().start({ source: "links", limit: 1_000 });
    world.learn();
    world.take("site");
    return world;
  };
  const fail = (world: JobWorld) => {
    const { turn, host } = world.grant();
    world.run("turnEnded", { host, turn, fault });
    return { turn, host };
  };
  const goOn = (world: JobWorld, afterMs = SITE_FULL_RETRY_MS) => {
    world.now += afterMs;
    world.run("askAgain", {});
  };

  it("a turn that ended by a fault is retried after FAULT_RETRY_MS, and no page is blamed", () => {
    const world = begun();
    const { turn } = fail(world);
    expect(world.take("site").map(({ input }) => input)).to.deep.include({
      ...{ account: "a".repeat(32), job: "5".repeat(32), wants: 0, tell: [] },
    });
    expect(world.reminders.get("askAgain")).to.equal(world.now + FAULT_RETRY_MS);
    const before = world.state;
    world.run("turnEnded", { host: HOST, turn, fault });
    expect(world.state).to.equal(before);
    // The site may have granted a turn before it received the withdrawal of the wanted requests. The job returns that
    // turn.
    expect(world.tryGrant()).to.equal(undefined);
    expect(world.take("site").map(({ message }) => message)).to.include("turnFinished");
    checkJob(world);
    goOn(world, FAULT_RETRY_MS);
    expect(world.take("site").at(-1)?.input).to.deep.include({ wants: 1 });
    const [request] = world.grant().requests;
    expect(request).to.include({ url: START, attempt: 1 });
  });

  it("the pause doubles each time, up to SITE_FULL_RETRY_MS", () => {
    const world = begun();
    const pauses = Array.from({ length: 6 }, () => {
      fail(world);
      const ms = (world.reminders.get("askAgain") ?? 0) - world.now;
      goOn(world, ms);
      return ms;
    });
    expect(pauses).to.deep.equal([5_000, 10_000, 20_000, 40_000, 60_000, 60_000]);
  });

  it("the job ends after JOB_FAULTS_MS_MAX of faults without a page, not before", () => {
    const world = begun();
    const start = world.now;
    while (world.now - start < JOB_FAULTS_MS_MAX) {
      fail(world);
      goOn(world);
      expect(world.summary().status).to.equal("running");
    }
    world.now = start + JOB_FAULTS_MS_MAX - 1;
    fail(world);
    goOn(world);
    expect(world.summary().status).to.equal("running");
    world.now = start + JOB_FAULTS_MS_MAX;
    fail(world);
    expect(world.summary()).to.deep.include({
      ...{ status: "errored", messages: [`No page was fetched for 10 minutes: ${fault}`] },
    });
    expect(world.reminders.has("askAgain")).to.equal(false);
    checkJob(world);
  });

  it("fewer than CRAWL_TRIES_MAX faults end no job, however far apart; a page resets the count", () => {
    const world = begun();
    for (let turns = 1; turns < CRAWL_TRIES_MAX; turns += 1) {
      world.now += JOB_FAULTS_MS_MAX;
      fail(world);
      goOn(world);
    }
    expect(world.summary().status).to.equal("running");
    world.visit(fetched([`${START}a`]));
    expect(world.state.faults).to.equal(undefined);
    world.now += JOB_FAULTS_MS_MAX;
    fail(world);
    expect(world.summary().status).to.equal("running");
  });

  it("up to half of SITES_FULL_MAX hosts are paused at once; a crawl of more hosts continues at the other hosts", () => {
    const world = new JobWorld().start({
      ...{ source: "links", limit: 1_000, options: { includeExternalLinks: true } },
    });
    world.learn();
    const hosts = Array.from({ length: SITES_FULL_MAX / 2 + 1 }, (_, n) => `h${n}.example`);
    world.visit(fetched(hosts.map((host) => `https://${host}/`)));
    world.settleBacklog();
    for (const host of hosts) {
      const { turn } = world.grant(1, host);
      world.run("turnEnded", { host, turn, fault });
    }
    const waits = (host: string) => world.tryGrant(1, host) === undefined;
    expect(hosts.map(waits)).to.deep.equal([...hosts.slice(1).map(() => true), false]);
    checkJob(world);
  });
});
