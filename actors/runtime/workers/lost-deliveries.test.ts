import { expect } from "chai";
import pino from "pino";
import { TASK_LOSSES_MAX } from "../../../schemas/limits.ts";
import { STREAMS, taskConsumer, taskSubject } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { echo } from "../../../scripts/testing/echo.ts";
import { type EchoOrders, echoWorker } from "../../../scripts/testing/echo-worker.ts";
import { probe, probeActor } from "../../../scripts/testing/probe.ts";
import { TcpProxy } from "../../../scripts/testing/tcp-proxy.ts";
import { until } from "../../../scripts/testing/until.ts";
import { Bus } from "../bus/bus.ts";
import { systemClock } from "../lib/clock.ts";
import { ServiceCounts } from "../observe/service-counts.ts";
import type { PulledMessage } from "./pulled-message.ts";
import { TaskPuller } from "./task-puller.ts";
import { WorkerHost } from "./worker-host.ts";

const LOSSES = 4;

describe("deliveries of a task that no worker ended", function () {
  this.timeout(120_000);
  let world: World;
  let proxy: TcpProxy;
  /** A connection through the proxy. */
  let bus: Bus;
  let lines: string[];
  const logger = pino({}, { write: (line) => void lines.push(line) });
  beforeEach(async () => {
    lines = [];
    world = await startWorld({ definitions: [probeActor], tasks: [echo] });
    proxy = await TcpProxy.start(Number(new URL(world.url).port));
    bus = await Bus.connect({ url: world.nats?.urlAt(proxy.port) ?? "", name: "worker" });
  });
  afterEach(async () => {
    proxy.open();
    await bus.close();
    await proxy.stop();
    await world[Symbol.asyncDispose]();
  });

  it("count as no try when a pull is answered after it was given up", async () => {
    const stopping = new AbortController();
    const consumer = taskConsumer("echo", "fast");
    const stream = STREAMS.tasks;
    const parts = { bus, clock: systemClock, logger, stream, consumer, stopping: stopping.signal };
    const info = () => world.bus.jetstream.consumers.info(STREAMS.tasks, consumer);
    const task = { id: "one", from: "x", key: "key", message: "say", input: { text: "a" } };
    const queue = world.bus.jetstream.jetstream();
    // The task waits before the request comes, because the request might expire before the task.
    await queue.publish(taskSubject("echo", "fast"), JSON.stringify(task));
    proxy.stallAnswers();
    const first = new TaskPuller(parts).take();
    await until("it is delivered", async () => (await info()).num_ack_pending > 0);
    await until("the pull is given up while its answer is on its way", () =>
      lines.some((line) => line.includes("tasks not pulled")),
    );
    proxy.open();
    const pulled = await first;
    expect(triesOf(pulled?.message)).to.equal(1);
    pulled?.message.ack();
    stopping.abort();
  });

  it("count as no try when the bus was lost during the run", async () => {
    const attempts: number[] = [];
    const worker = await work({
      async before(_, { attempt }) {
        attempts.push(attempt);
        if (attempts.length > LOSSES) return;
        await lose();
        throw new Error("the bus was away");
      },
    });
    await world.host();
    await world.client.call(probe, "lost", "ask", { texts: ["a"], failing: 0 });
    await until("it is done", async () => {
      const { log } = await world.client.call(probe, "lost", "get", {});
      return log.length > 0 && log;
    });
    expect(attempts).to.deep.equal(Array(LOSSES + 1).fill(1));
    await worker.stop(0);
  });

  it("count as tries after TASK_LOSSES_MAX losses, because the task may cause them", async () => {
    const attempts: number[] = [];
    const worker = await work({
      async before(_, { attempt }) {
        attempts.push(attempt);
        if (attempt > 1) return;
        await lose();
        throw new Error("the bus was away");
      },
    });
    await world.host();
    const losses = TASK_LOSSES_MAX - 1;
    const input = { text: "a", failing: 0 };
    const task = { id: "two", from: "x", key: "often", message: "tell", input, losses };
    const queue = world.bus.jetstream.jetstream();
    await queue.publish(taskSubject("echo", "slow"), JSON.stringify(task));
    await until("it is done", () => attempts.includes(2));
    expect(attempts).to.deep.equal([1, 1, 2]);
    await worker.stop(0);
  });

  it("end a call of a handler with the task, also where the handler gave a signal", async () => {
    const outcome = Promise.withResolvers<unknown>();
    const never = new AbortController().signal;
    const asked = Promise.withResolvers<void>();
    const worker = await work({
      async before(_, { call }) {
        // No host answers.
        const answer = call(probe, "nowhere", "get", {}, { signal: never, deadlineMs: 100_000 });
        asked.resolve();
        outcome.resolve(await answer.catch((error: unknown) => error));
      },
    });
    const input = { text: "a", failing: 0 };
    const task = { id: "three", from: "x", key: "calls", message: "tell", input };
    await world.bus.jetstream
      .jetstream()
      .publish(taskSubject("echo", "slow"), JSON.stringify(task));
    await asked.promise;
    await worker.stop(0);
    expect(await outcome.promise).to.be.instanceOf(Error);
  });

  async function work(orders: EchoOrders): Promise<WorkerHost> {
    const parts = { bus, clock: systemClock, logger, counts: new ServiceCounts(new Map()) };
    const worker = new WorkerHost({ ...parts, definitions: [echoWorker(orders)] });
    worker.start();
    return worker;
  }

  /** Cuts the worker's connection, and waits until it is there again. */
  async function lose(): Promise<void> {
    const back = Promise.withResolvers<void>();
    const remove = bus.onReconnect(back.resolve);
    proxy.cut();
    await until("the bus is lost", () => bus.isAway);
    proxy.open();
    await back.promise;
    remove();
  }

  function triesOf(message: PulledMessage | undefined): number | undefined {
    if (message === undefined) return undefined;
    const { triesBefore = 0 } = JSON.parse(message.string()) as { triesBefore?: number };
    return triesBefore + message.info.deliveryCount;
  }
});
