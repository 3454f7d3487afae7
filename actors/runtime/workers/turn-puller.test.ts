import { expect } from "chai";
import { envelope } from "../../../schemas/contract.ts";
import { LANE_TASKS_MAX, TASK_TRIES_MAX } from "../../../schemas/limits.ts";
import { STREAMS, turnSubject } from "../../../schemas/subjects.ts";
import { readQueues } from "../../../scripts/queues/queues.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { probe } from "../../../scripts/testing/probe.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { shared, sharedWorker } from "../../../scripts/testing/shared-lane.ts";
import { until } from "../../../scripts/testing/until.ts";
import { queueTask } from "../tasks/queue-task.ts";
import type { TaskContext } from "./define-worker.ts";
import type { WorkerHost } from "./worker-host.ts";

const LIMITS = { places: 6, computing: 3, perKey: 3, reserved: 2 };

describe("TurnPuller", function () {
  this.timeout(120_000);
  let world: World;
  let worker: WorkerHost;
  let leaving: AbortController;
  let running: { key: string; text: string }[];
  let begun: string[];
  // Each test has its own world. A worker that stops hands back a task whose caller has just left, so a later test
  // could find the task in its queue.
  beforeEach(async () => {
    world = await startWorld({ tasks: [shared] });
    leaving = new AbortController();
    running = [];
    begun = [];
  });
  afterEach(async () => {
    leaving.abort();
    await worker.stop(0);
    await world[Symbol.asyncDispose]();
  });

  /**
   * Runs a task by its text. A text that begins with "hang" never ends, and one with "wait" also reports that it only
   * waits. One with "fail" fails at every try except the last.
   */
  async function order(text: string, context: TaskContext): Promise<void> {
    const { key, signal } = context;
    begun.push(`${key} ${text}`);
    if (text.startsWith("fail") && context.attempt < TASK_TRIES_MAX) throw new Error("as told");
    if (!text.startsWith("hang") && !text.startsWith("wait")) return;
    if (text.startsWith("wait")) context.setWaiting(true);
    const task = { key, text };
    running.push(task);
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    running.splice(running.indexOf(task), 1);
    signal.throwIfAborted();
  }
  const work = async (limits = LIMITS) => {
    worker = await world.worker([sharedWorker(limits, order)]);
  };
  const say = (key: string, text: string) =>
    world.client.run(shared, key, "say", { text }, { deadlineMs: 100_000, signal: leaving.signal });
  const sayMany = (key: string, text: string, count: number) => {
    const said = Array.from({ length: count }, () => say(key, text));
    for (const one of said) one.catch(() => {});
    return said;
  };
  const runningOf = (key: string) => running.filter((task) => task.key === key).length;

  it("runs a key's task at once although another key has a full queue of hanging tasks", async () => {
    await work();
    sayMany("a", "hang", LANE_TASKS_MAX);
    await until("the first hang", () => runningOf("a") === LIMITS.perKey);
    await until("the others are queued", async () => {
      return (await world.count(STREAMS.tasks)) === LANE_TASKS_MAX;
    });
    for (let task = 0; task < 5; task++) {
      const { reply } = await say("b", `small ${task}`);
      expect(reply).to.deep.equal({ text: `small ${task}` });
    }
    expect(runningOf("a")).to.equal(LIMITS.perKey);
  });

  it("refuses one task more than a key may have, says how long its queue takes, and accepts tasks of others", async () => {
    await work();
    await say("a", "first");
    await until("it has left the queue", async () => (await world.count(STREAMS.tasks)) === 0);
    sayMany("a", "hang", LANE_TASKS_MAX);
    await until("all are queued", async () => {
      return (await world.count(STREAMS.tasks)) === LANE_TASKS_MAX;
    });
    const refusal = await refusalOf(say("a", "one more"));
    expect(refusal).to.include({ code: "queue_full" });
    // The first had not waited.
    expect(refusal.details.retryAfterS).to.be.within(1, 60);
    expect((await say("b", "small")).reply).to.deep.equal({ text: "small" });
  });

  it("runs more tasks of a key beside those that only wait for the network", async () => {
    await work({ ...LIMITS, perKey: 5, reserved: 0 });
    sayMany("a", "hang", 10);
    await until("as many run as may compute", () => running.length === LIMITS.computing);
    await say("b", "round trip");
    expect(running.length).to.equal(LIMITS.computing);
    leaving.abort();
    await until("they have ended", () => running.length === 0);
    leaving = new AbortController();
    sayMany("a", "wait", 6);
    await until("as many run as a key may have", () => running.length === 5);
  });

  it("begins a task of the key beside one that only reports to an actor out of reach", async () => {
    // No host runs here. The reports take TELL_MS_MAX each, a minute together.
    const reports = Array.from({ length: 30 }, (_, report) =>
      envelope(probe, "a", "note", { text: String(report) }),
    );
    const limits = { places: 2, computing: 1, perKey: 2, reserved: 0 };
    worker = await world.worker([sharedWorker(limits, order, reports)]);
    await say("a", "reports");
    sayMany("a", "hang", 1);
    await until("the next task runs", () => running.length === 1);
    expect(await world.count(STREAMS.mail)).to.be.below(reports.length);
  });

  it("says how long a task was queued", async () => {
    await work({ places: 1, computing: 1, perKey: 1, reserved: 0 });
    const hanging = new AbortController();
    const options = { deadlineMs: 100_000, signal: hanging.signal };
    const first = world.client.run(shared, "a", "say", { text: "hang" }, options);
    first.catch(() => {});
    await until("it hangs", () => running.length === 1);
    const askedAt = performance.now();
    const second = say("a", "small");
    await until("it is queued", async () => (await world.count(STREAMS.tasks)) === 2);
    const queuedMs = performance.now() - askedAt;
    hanging.abort();
    const { queuedMs: told } = await second;
    expect(told).to.be.within(Math.floor(queuedMs) - 1, Math.ceil(performance.now() - askedAt));
  });

  it("finds tasks without a notification, and retries failed ones", async () => {
    const said = sayMany("a", "fail", 1);
    await until("it is queued", async () => (await world.count(STREAMS.tasks)) === 1);
    await work();
    await Promise.all(said);
    expect(begun).to.deep.equal(Array(TASK_TRIES_MAX).fill("a fail"));
  });

  it("runs the tasks that an older version queued for the whole lane", async () => {
    const lane = { kind: shared.kind, lane: "lane", inTurns: false };
    for (const text of ["first", "second"]) {
      const task = { id: text, from: "test", key: "old", message: "say", input: { text } };
      await queueTask(world.bus, lane, task);
    }
    await work();
    await until("both have run", () => begun.length === 2);
    expect(begun).to.deep.equal(["old first", "old second"]);
    await until("both are acknowledged", async () => (await world.count(STREAMS.tasks)) === 0);
  });

  it("serves keys that are no subject tokens, each from its own queue", async () => {
    await work();
    const keys = ["a.b", "ü", " ", "*", ">", "a..b", "k".repeat(100)];
    const texts = await Promise.all(keys.map(async (key) => (await say(key, key)).reply.text));
    expect(texts).to.deep.equal(keys);
    expect(new Set(keys.map((key) => turnSubject("shared", "lane", key))).size).to.equal(7);
  });

  it("readQueues() counts a lane's keys together", async () => {
    await work();
    sayMany("a", "hang", 5);
    sayMany("b", "hang", 5);
    const runningMax = LIMITS.computing + 1;
    const lane = await until("all are seen", async () => {
      const { lanes } = await readQueues(world.bus);
      const found = lanes.find(({ kind }) => kind === "shared");
      return found && found.waiting + found.running === 10 && found.running > 2 && found;
    });
    expect(lane.running).to.be.within(LIMITS.computing, runningMax);
    expect(lane.oldestAt).to.be.instanceOf(Date);
  });
});
