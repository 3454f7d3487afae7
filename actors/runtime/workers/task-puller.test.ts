import { millis } from "@nats-io/transport-node";
import { expect } from "chai";
import pino from "pino";
import { STREAMS, taskSubject } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { echo } from "../../../scripts/testing/echo.ts";
import { standStill } from "../../../scripts/testing/stand-still.ts";
import { until } from "../../../scripts/testing/until.ts";
import { systemClock } from "../lib/clock.ts";
import { pullTasks } from "./pull-tasks.ts";
import { IDLE_PULL_MS, LANE_PULL_TASKS_MAX, TASK_PULL_MS, TaskPuller } from "./task-puller.ts";

/** One task more than one pull requests. */
const MANY = LANE_PULL_TASKS_MAX + 1;

describe("TaskPuller", function () {
  this.timeout(60_000);
  let world: World;
  let stopping: AbortController;
  let puller: TaskPuller;
  /** How many tasks each request asked for. */
  let asked: number[];
  /** How long each request may last. */
  let waits: number[];
  let taken: ReturnType<TaskPuller["take"]>[];
  before(async () => {
    world = await startWorld({ tasks: [echo] });
    world.bus.connection.subscribe("$JS.API.CONSUMER.MSG.NEXT.>", {
      callback: (_, msg) => {
        const { batch, expires } = msg.json<{ batch: number; expires: number }>();
        asked.push(batch);
        waits.push(millis(expires));
      },
    });
  });
  after(() => world[Symbol.asyncDispose]());
  beforeEach(() => {
    asked = [];
    waits = [];
    taken = [];
    stopping = new AbortController();
    puller = new TaskPuller({
      bus: world.bus,
      clock: systemClock,
      logger: pino({ enabled: false }),
      stream: STREAMS.tasks,
      consumer: "echo-fast",
      stopping: stopping.signal,
    });
  });
  afterEach(async () => {
    stopping.abort();
    await Promise.all(taken);
    await world.bus.jetstream.streams.purge(STREAMS.tasks);
  });

  const queue = (text: string) =>
    world.bus.jetstream.jetstream().publish(taskSubject("echo", "fast"), text);
  const wereAsked = (times: number) =>
    until(
      `the bus received ${times} requests`,
      () => asked.length >= times && asked.slice(0, times),
    );
  const take = (slots: number) => {
    taken.push(...Array.from({ length: slots }, () => puller.take()));
  };
  const textsTaken = () =>
    Promise.all(
      taken.map(async (task) => {
        const { message } = (await task) ?? {};
        message?.ack();
        return message?.string();
      }),
    );

  it("take() asks for one task where one slot is idle", async () => {
    take(1);
    expect(await wereAsked(1)).to.deep.equal([1]);
    await queue("a");
    expect(await textsTaken()).to.deep.equal(["a"]);
  });

  it("take() asks once for all idle slots, for LANE_PULL_TASKS_MAX tasks at most", async () => {
    take(20 * MANY);
    expect(await wereAsked(2)).to.deep.equal([LANE_PULL_TASKS_MAX, LANE_PULL_TASKS_MAX]);
  });

  it("take() hands out tasks in order, and asks less often than they arrive", async () => {
    const texts = Array.from({ length: 3 * MANY }, (_, index) => `task ${index}`);
    take(texts.length);
    for (const text of texts) await queue(text);
    expect(await textsTaken()).to.deep.equal(texts);
    expect(asked.length).to.be.below(texts.length);
  });

  it("take() asks again when nothing came within TASK_PULL_MS", async () => {
    const startedAt = performance.now();
    take(1);
    await wereAsked(2);
    expect(performance.now() - startedAt).to.be.above(0.9 * TASK_PULL_MS);
    await queue("late");
    expect(await textsTaken()).to.deep.equal(["late"]);
  });

  it("take() asks for longer when nothing came, and soon again after a task", async () => {
    take(1);
    await wereAsked(3);
    expect(waits.slice(0, 3)).to.deep.equal([TASK_PULL_MS, IDLE_PULL_MS, IDLE_PULL_MS]);
    await queue("late");
    expect(await textsTaken()).to.deep.equal(["late"]);
    const before = asked.length;
    take(1);
    await wereAsked(before + 1);
    expect(waits[before]).to.equal(TASK_PULL_MS);
  });

  it("take() ends at a stop, before a long request would expire", async () => {
    take(1);
    await wereAsked(2);
    expect(waits[1]).to.equal(IDLE_PULL_MS);
    const stoodStill = standStill();
    let isOver = false;
    const short = pullTasks({
      ...{ bus: world.bus, clock: systemClock, stream: STREAMS.tasks, consumer: "echo-fast" },
      ...{ count: 1, expiresMs: TASK_PULL_MS, giveUpMs: 30_000, take: () => {} },
    }).then(() => {
      isOver = true;
    });
    stopping.abort();
    expect(await textsTaken()).to.deep.equal([undefined]);
    // While the process stands still, the short request expires, too.
    if (stoodStill() === 0) expect(isOver).to.equal(false);
    await short;
    expect(isOver).to.equal(true);
  });

  it("take() goes on after the connection was lost during a long request", async () => {
    take(1);
    await wereAsked(2);
    await world.bus.connection.reconnect();
    await wereAsked(3);
    await queue("after");
    expect(await textsTaken()).to.deep.equal(["after"]);
  });

  it("take() goes on after the consumer was missing", async () => {
    const { consumers } = world.bus.jetstream;
    const { config } = await consumers.info(STREAMS.tasks, "echo-fast");
    await consumers.delete(STREAMS.tasks, "echo-fast");
    take(1);
    await wereAsked(2);
    await consumers.add(STREAMS.tasks, config);
    await queue("after");
    expect(await textsTaken()).to.deep.equal(["after"]);
  });

  it("take() hands out tasks of requests before the stop, and none after it", async () => {
    take(1);
    // The request leaves in a microtask. The task follows it in the same turn, so the request cannot expire before.
    await Promise.resolve();
    const queued = queue("on its way");
    stopping.abort();
    take(1);
    await queued;
    expect(await textsTaken()).to.deep.equal(["on its way", undefined]);
    take(1);
    expect(await textsTaken()).to.deep.equal(["on its way", undefined, undefined]);
    expect(asked).to.deep.equal([1]);
  });
});
