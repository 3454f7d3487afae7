import { expect } from "chai";
import { pino } from "pino";
import { Registry } from "prom-client";
import { mailIn } from "../../schemas/split-streams.ts";
import { addressOf, deadSubject, STREAMS, shardOf } from "../../schemas/subjects.ts";
import { startWorld, type World } from "../testing/actor-world.ts";
import { counter, counterActor } from "../testing/counter.ts";
import { echo } from "../testing/echo.ts";
import type { TestNatsServer } from "../testing/nats-server.ts";
import { stopProcess } from "../testing/process-children.ts";
import { SkippingClock } from "../testing/skipping-clock.ts";
import { until } from "../testing/until.ts";
import { exposeQueues, QUEUE_FIGURES_KEPT_MS, QUEUE_FIGURES_MS_MAX } from "./queue-metrics.ts";

const address = addressOf("counter", "x");
/** Streams that refuse writes at a number of bytes. The others have no such limit, or drop their oldest messages. */
const REFUSING: ReadonlySet<string> = new Set([
  ...[STREAMS.packs, STREAMS.crawl, STREAMS.apps, STREAMS.agents, STREAMS.renderJobs],
  STREAMS.kept,
]);

describe("exposeQueues()", function () {
  this.timeout(60_000);
  let world: World;
  let registry: Registry;
  let clock: SkippingClock;
  beforeEach(async () => {
    world = await startWorld({ definitions: [counterActor], tasks: [echo] });
    registry = new Registry();
    // A stopped clock: cached figures get older only when the test advances the clock, and timeouts never expire.
    clock = new SkippingClock({ stands: true });
    exposeQueues({ bus: world.bus, clock, logger: pino({ level: "fatal" }), registry });
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const figures = async () =>
    Object.fromEntries(
      (await registry.metrics())
        .split("\n")
        .filter((line) => line.startsWith("trunkline_"))
        .map((line) => line.split(" "))
        .map(([name = "", value]) => [name.slice("trunkline_".length), Number(value)]),
    );
  const sizes = async () => {
    const infos = await Array.fromAsync(world.bus.jetstream.streams.list());
    return Object.fromEntries(
      infos.flatMap(({ config: { name, max_bytes }, state: { bytes } }) => [
        [`stream_bytes{stream="${name}"}`, bytes],
        ...(REFUSING.has(name) ? [[`stream_bytes_max{stream="${name}"}`, max_bytes]] : []),
      ]),
    );
  };
  const publish = (subject: string, payload = "{}") =>
    world.bus.jetstream.jetstream().publish(subject, payload);

  it("shows lanes, mail and dead letters, also while they are empty", async () => {
    expect(await figures()).to.deep.equal({
      bus_connected: 1,
      mail_waiting: 0,
      dead_letters: 0,
      ...Object.fromEntries(
        [...Object.values(STREAMS), world.subjects.stream, world.subjects.journalStream].map(
          (stream) => [`stream_copies_behind{stream="${stream}"}`, 0],
        ),
      ),
      ...(await sizes()),
      'tasks_waiting{kind="echo",lane="fast"}': 0,
      'tasks_waiting{kind="echo",lane="slow"}': 0,
      'tasks_running{kind="echo",lane="fast"}': 0,
      'tasks_running{kind="echo",lane="slow"}': 0,
      'tasks_in_fullest_queue{kind="echo",lane="fast"}': 0,
      'tasks_in_fullest_queue{kind="echo",lane="slow"}': 0,
      'tasks_oldest_seconds{kind="echo",lane="fast"}': 0,
      'tasks_oldest_seconds{kind="echo",lane="slow"}': 0,
    });
  });

  it("counts waiting mail, and not the marks beside it", async () => {
    const host = await world.host();
    await world.client.call(counter, "from", "give", { to: "x", by: 1 });
    // Mail that is not published yet does not count as waiting either, so the test first waits for its effect.
    await until(
      "the mail had its effect",
      async () => (await world.client.call(counter, "x", "get", {})).count === 1,
    );
    await until("it is removed", async () => (await world.mailWaiting()) === 0);
    await host.stop();
    expect(await world.count("MAIL")).to.equal(1); // The mark.
    for (let i = 0; i < 3; i++) await publish(mailIn(0).to(shardOf(address), address));
    for (let i = 0; i < 2; i++) await publish("task.echo.slow");
    await publish(deadSubject(address));
    clock.skip(1_000);
    const shown = await figures();
    expect(shown).to.include({ mail_waiting: 3, dead_letters: 1 });
    expect(shown).to.include({ 'tasks_waiting{kind="echo",lane="slow"}': 2 });
    expect(shown['tasks_oldest_seconds{kind="echo",lane="slow"}']).to.be.within(1, 50);
  });

  it("shows the fullest queue of a lane that has a queue for each key", async () => {
    for (const key of ["a", "b", "b"]) await publish(`task.shared.lane.${key}`);
    expect(await figures()).to.include({
      'tasks_waiting{kind="shared",lane="lane"}': 3,
      'tasks_in_fullest_queue{kind="shared",lane="lane"}': 2,
    });
  });

  it("asks the bus once, however many clients ask for metrics, until the figures are old", async () => {
    let asked = 0;
    const counting = world.bus.connection.subscribe("$JS.API.CONSUMER.LIST.TASKS", {
      callback: () => {
        asked += 1;
      },
    });
    await Promise.all([figures(), figures()]);
    await publish("task.echo.fast");
    expect(await figures()).to.include({ 'tasks_waiting{kind="echo",lane="fast"}': 0 });
    expect(asked).to.equal(1);
    clock.skip(QUEUE_FIGURES_KEPT_MS);
    expect(await figures()).to.include({ 'tasks_waiting{kind="echo",lane="fast"}': 1 });
    expect(asked).to.equal(2);
    counting.unsubscribe();
  });

  it("omits the figures if the bus does not answer in time, and says when the bus is gone", async () => {
    const { pid } = world.nats as TestNatsServer;
    await stopProcess(pid);
    const shown = figures();
    await until("the bus is asked", () => clock.isAwaited(QUEUE_FIGURES_MS_MAX));
    clock.skip(QUEUE_FIGURES_MS_MAX);
    expect(await shown).to.deep.equal({ bus_connected: 1 });
    process.kill(pid, "SIGCONT");
    await world.nats?.kill();
    await until("the connection is lost", () => !world.bus.connected);
    clock.skip(QUEUE_FIGURES_KEPT_MS);
    expect(await figures()).to.deep.equal({ bus_connected: 0 });
    await world.nats?.start();
    await until("the connection is back", () => world.bus.connected);
    clock.skip(QUEUE_FIGURES_KEPT_MS);
    expect(await figures()).to.include({ bus_connected: 1, dead_letters: 0 });
  });
});
