import { setImmediate as nextTurn } from "node:timers/promises";
import { expect } from "chai";
import express from "express";
import { pino } from "pino";
import { collectDefaultMetrics, Registry } from "prom-client";
import { recordStep } from "../../actors/runtime/lib/trace.ts";
import { exposeGauge, exposeMeter } from "../../actors/runtime/observe/metrics.ts";
import { STEPS_PER_REQUEST_MAX, StepRecorder } from "../../actors/runtime/observe/request-steps.ts";
import { requestMetrics } from "../../gateway/http/middleware/request-metrics.ts";
import { RequestCounts } from "../../gateway/http/request-counts.ts";
import { LANE_TASKS_MAX, SHARDS } from "../../schemas/limits.ts";
import { countWork, timeWork, watchLevel } from "../../schemas/meter.ts";
import { render } from "../../schemas/rendering/render.ts";
import { mailIn } from "../../schemas/split-streams.ts";
import { addressOf, deadSubject, STREAMS, shardOf } from "../../schemas/subjects.ts";
import { exposeQueues } from "../../scripts/queues/queue-metrics.ts";
import { startWorld, type World } from "../../scripts/testing/actor-world.ts";
import { counterActor } from "../../scripts/testing/counter.ts";
import { startHttpServer } from "../../scripts/testing/loopback-server.ts";
import { startCluster } from "../../scripts/testing/nats-server.ts";
import { Promcheck, type Scrape } from "../../scripts/testing/promcheck.ts";
import { SkippingClock } from "../../scripts/testing/skipping-clock.ts";
import { until } from "../../scripts/testing/until.ts";
import { alertRules, forSeconds } from "./alert-rules.ts";

const STEP_S = 15;
const HOUR_S = 3_600;
const rules = alertRules().map((rule) => ({ ...rule, forSeconds: forSeconds(rule) }));

/** Changes the scene before each scrape. `step` is the number of the scrape, counted from 0. */
type Act = (step: number) => unknown;

/** The metrics registry of one simulated process, and functions that create the conditions of a test. */
class Scene {
  readonly registry = new Registry();
  readonly clock = new SkippingClock({ stands: true });
  readonly #ends = [exposeMeter(this.registry)];
  /**
   * Returns the number of shards that have a host. A scene without hosts exposes neither this metric nor the number
   * of all shards.
   */
  openShards = () => SHARDS;

  constructor({ hasHosts = true } = {}) {
    if (!hasHosts) return;
    this.gauge("shards", () => SHARDS);
    this.gauge("actors_shards", () => this.openShards());
  }

  /** Exposes a metric whose value a real role would read from its own state. */
  gauge(...[name, value]: [Parameters<typeof exposeGauge>[1], () => number]): void {
    exposeGauge(this.registry, name, value);
  }

  level(...watched: Parameters<typeof watchLevel>): void {
    this.#ends.push(watchLevel(...watched));
  }

  queues({ bus }: World): void {
    const { clock, registry } = this;
    exposeQueues({ bus, clock, registry, logger: pino({ level: "silent" }) });
  }

  async record(seconds: number, act: Act = () => {}, stepS = STEP_S): Promise<Scrape[]> {
    const scrapes: Scrape[] = [];
    for (let step = 0; step * stepS <= seconds; step++) {
      await act(step);
      const text = await this.registry.metrics();
      scrapes.push({ atSeconds: step * stepS, instance: "one", text });
    }
    return scrapes;
  }

  end(): void {
    for (const end of this.#ends) end();
  }
}

/** Lets the event loop run for `ms` milliseconds. */
async function turnFor(ms: number): Promise<void> {
  const end = performance.now() + ms;
  while (performance.now() < end) await nextTurn();
}

describe("alerts", function () {
  this.timeout(600_000);
  let promcheck: Promcheck;
  let scene: Scene;
  const provoked = new Set<string>();
  before(async function () {
    promcheck = await Promcheck.buildOrSkip(this);
  });
  beforeEach(() => {
    scene = new Scene();
  });
  afterEach(() => scene.end());

  /** Expects that after the last scrape exactly these alerts fire. */
  async function expectAlerts(scrapes: readonly Scrape[], ...alerts: string[]): Promise<void> {
    const fired = await promcheck.alerts(rules, scrapes);
    expect([...new Set(fired.map(({ alert }) => alert))].sort()).to.deep.equal(
      alerts.map((alert) => `Trunkline${alert}`).sort(),
    );
    for (const alert of alerts) provoked.add(`Trunkline${alert}`);
  }

  async function inWorld(work: (world: World) => Promise<void>): Promise<void> {
    await using world = await startWorld({ definitions: [counterActor], tasks: [render] });
    scene.queues(world);
    await work(world);
  }

  const publish = (world: World, subject: string, count = 1) => {
    const stream = world.bus.jetstream.jetstream();
    return Promise.all(Array.from({ length: count }, () => stream.publish(subject, "{}")));
  };

  it("are silent for an hour in which every role does its work", () =>
    inWorld(async (world) => {
      const host = await world.host();
      await until("all shards", () => host.placement.openShards === SHARDS);
      scene.openShards = () => host.placement.openShards;
      scene.gauge("browsers", () => 1);
      // This stream is full at all times of a used installation: it drops its oldest steps of requests.
      await world.bus.jetstream.streams.update(STREAMS.traces, { max_bytes: 4_000 });
      await publish(world, "trace.1", 200);
      const { state } = await world.bus.jetstream.streams.info(STREAMS.traces);
      expect(state.bytes).to.be.within(0.9 * 4_000, 4_000);
      scene.gauge("disk_free_bytes", () => 50e9);
      scene.level("sockets", () => 100);
      const act = async () => {
        // A host that stood still for longer than its lease takes its shards again.
        await until("all shards", () => host.placement.openShards === SHARDS);
        countWork("commits_total", { outcome: "stored" }, 100);
        timeWork("commit_seconds", {}, 4);
        countWork("webhooks_received_total", { outcome: "accepted" }, 100);
        countWork("webhook_posts_total", { outcome: "delivered" }, 10);
        countWork("crawl_pages_total", { outcome: "fetched" }, 100);
        countWork("git_operations_total", { operation: "push", outcome: "done" }, 10);
        countWork("logins_total", { outcome: "wrong" });
      };
      await expectAlerts(await scene.record(HOUR_S, act));
    }));

  it("of a process that does not answer", async () => {
    const silent = [0, 1, 2, 3, 4].map((step) => ({
      ...{ atSeconds: step * STEP_S, instance: "one", text: null },
    }));
    await expectAlerts(silent, "ProcessDown", "ShardsWithoutHost");
  });

  it("of a lost bus", () =>
    inWorld(async (world) => {
      await world.nats?.kill();
      await until("the loss", () => !world.bus.connected);
      await expectAlerts(await scene.record(STEP_S), "BusDisconnected");
      await world.nats?.start();
      await until("the bus", () => world.bus.connected);
    }));

  it("of shards without a host", () =>
    inWorld(async (world) => {
      const host = await world.host();
      await until("all shards", () => host.placement.openShards === SHARDS);
      scene.openShards = () => host.placement.openShards;
      const haveHost = () => until("all shards", () => host.placement.openShards === SHARDS);
      await expectAlerts(await scene.record(30, haveHost));
      await host.stop();
      await expectAlerts(await scene.record(30), "ShardsWithoutHost");
    }));

  it("of shards without a host, where no process with the role actors is left", async () => {
    scene.end();
    scene = new Scene({ hasHosts: false });
    await expectAlerts(await scene.record(30), "ShardsWithoutHost");
  });

  it("of a dead letter, a stream that is nearly full, and a lane that is nearly full", () =>
    inWorld(async (world) => {
      await publish(world, deadSubject(addressOf("counter", "x")));
      await expectAlerts(await scene.record(0), "DeadLetters");
      const { streams } = world.bus.jetstream;
      await streams.purge(STREAMS.dead);
      await streams.update(STREAMS.packs, { max_bytes: 4_000 });
      await publish(world, "blob.git.x", 90);
      const { state } = await streams.info(STREAMS.packs);
      expect(state.bytes).to.be.within(0.9 * 4_000, 4_000);
      scene.clock.skip(STEP_S * 1_000);
      await expectAlerts(await scene.record(300), "StreamNearlyFull");
      await streams.purge(STREAMS.packs);
      await publish(world, "task.webhook-post.batch", LANE_TASKS_MAX / 2 + 1);
      scene.clock.skip(STEP_S * 1_000);
      await expectAlerts(await scene.record(60), "LaneNearlyFull");
      await streams.purge(STREAMS.tasks);
    }));

  it("of a full queue of one account, and not of the work of many accounts", () =>
    inWorld(async (world) => {
      const { streams } = world.bus.jetstream;
      for (const account of ["a", "b", "c"]) {
        await publish(world, `task.render.batch.${account}`, 0.4 * LANE_TASKS_MAX);
      }
      // No process with the role browser is left, so the metric `browsers` is missing.
      await expectAlerts(await scene.record(900), "NoBrowser");
      await publish(world, "task.render.batch.a", 0.5 * LANE_TASKS_MAX + 1);
      scene.clock.skip(STEP_S * 1_000);
      await expectAlerts(await scene.record(900), "AccountQueueNearlyFull", "NoBrowser");
      scene.gauge("browsers", () => 0);
      await streams.purge(STREAMS.tasks);
      await publish(world, "task.render.interactive");
      scene.clock.skip(61_000);
      await expectAlerts(await scene.record(60), "TasksLate", "NoBrowser");
    }));

  it("of mail that piles up", () =>
    inWorld(async (world) => {
      const subject = mailIn(0).to(shardOf("counter.x"), "counter.x");
      await publish(world, subject, 1_001);
      const more: Act = async () => {
        await publish(world, subject);
        scene.clock.skip(STEP_S * 1_000);
      };
      await expectAlerts(await scene.record(600, more), "MailPilesUp");
    }));

  it("of a copy of a stream that stays behind", async () => {
    await using cluster = await startCluster(3, "", () => {});
    await using world = await startWorld({ url: cluster.urls.join(","), replicas: 3 });
    scene.queues(world);
    await cluster.servers[2]?.kill();
    const behind = async () => {
      scene.clock.skip(STEP_S * 1_000);
      const text = await scene.registry.metrics();
      return /trunkline_stream_copies_behind\{stream="MAIL"\} 1\n/.test(text);
    };
    await until("the missing copy", behind, 60_000);
    await expectAlerts(await scene.record(120), "StreamCopyBehind");
  });

  it("of a disk that is nearly full, and of one that will be", async () => {
    let free = 499e6;
    scene.gauge("disk_free_bytes", () => free);
    await expectAlerts(await scene.record(60), "DiskNearlyFull");
    const fills: Act = (step) => {
      free = 10e9 - step * 240 * 200e3;
    };
    await expectAlerts(await scene.record(7 * HOUR_S, fills, 240), "DiskFillsWithinADay");
  });

  it("of requests that fail", async () => {
    const app = express();
    app.use(requestMetrics(scene.registry, new RequestCounts()));
    app.get("/:status", (request, response) => {
      response.sendStatus(Number(request.params.status));
    });
    await using server = await startHttpServer(app);
    const url = `http://${server.address}:${server.port}`;
    const ask: Act = () =>
      Promise.all([200, 500].map((status) => fetch(`${url}/${status}`).then((a) => a.text())));
    await expectAlerts(await scene.record(600, ask), "RequestsFail");
  });

  it("of a process with too many actors, too little processor, or too few descriptors", async () => {
    scene.gauge("actors_activations", () => 18_001);
    await expectAlerts(await scene.record(900), "ActorsNearlyFull");
    collectDefaultMetrics({ register: scene.registry });
    let shown = "";
    await until("the delay is known", async () => {
      // Node measures the event loop's delay from the second tick of 10 ms after the last scrape.
      await turnFor(40);
      const end = performance.now() + 600;
      while (performance.now() < end);
      await turnFor(40);
      shown = await scene.registry.metrics();
      return Number(/^nodejs_eventloop_lag_p99_seconds (.*)$/m.exec(shown)?.[1]) > 0.5;
    });
    const steady = (text: string, seconds: number) =>
      Array.from({ length: seconds / STEP_S + 1 }, (_, step) => ({
        ...{ atSeconds: step * STEP_S, instance: "one", text },
      }));
    const text = shown.replace(/^trunkline_(?!actors_shards).*$/gm, "");
    await expectAlerts(steady(text, 300), "EventLoopBusy");
    const [, open] = /^process_open_fds (\d+)$/m.exec(text) ?? [];
    const scarce = text
      .replace(/^(process_max_fds) .*$/m, `$1 ${open}`)
      .replace(/^nodejs_eventloop.*$/gm, "");
    await expectAlerts(steady(scarce, 300), "DescriptorsNearlyUsedUp");
  });

  it("of commits that fail or are slow, and of hosts and shards that do not stay", async () => {
    const once =
      (work: () => void): Act =>
      (step) => {
        if (step === 1) work();
      };
    const refuse = once(() => countWork("commits_total", { outcome: "refused" }));
    await expectAlerts(await scene.record(60, refuse), "CommitsFail");
    scene.end();
    scene = new Scene();
    const slow = () => timeWork("commit_seconds", {}, 1_500);
    await expectAlerts(await scene.record(600, slow), "CommitsSlow");
    scene.end();
    scene = new Scene();
    const restart = once(() => countWork("host_restarts_total", {}, 3));
    await expectAlerts(await scene.record(300, restart), "HostsRestart");
    scene.end();
    scene = new Scene();
    const takeovers = (count: number) =>
      once(() => countWork("shard_takeovers_total", { after: "death" }, count));
    await expectAlerts(await scene.record(300, takeovers(1.5 * SHARDS)));
    await expectAlerts(await scene.record(300, takeovers(3 * SHARDS)), "ShardsMove");
  });

  it("of sockets that leak or are nearly used up", async () => {
    let sockets = 0;
    scene.level("sockets", () => sockets);
    const leak: Act = (step) => {
      sockets = step * 5;
    };
    await expectAlerts(await scene.record(2 * HOUR_S, leak), "SocketsLeak");
    sockets = 7_001;
    await expectAlerts(await scene.record(300), "SocketsNearlyUsedUp");
  });

  const steadily: [string, () => void][] = [
    ["WebhooksFail", () => countWork("webhooks_received_total", { outcome: "failed" })],
    ["DeliveriesFail", () => countWork("webhook_posts_total", { outcome: "unreachable" })],
    ["CrawlPagesFail", () => countWork("crawl_pages_total", { outcome: "failed" })],
    ["LoginsGuessed", () => countWork("logins_total", { outcome: "wrong" }, 2 * STEP_S)],
    [
      "GitFails",
      () => countWork("git_operations_total", { operation: "fetch", outcome: "failed" }),
    ],
    ["AppRunsAway", () => countWork("app_processes_ended_total", { reason: "bound" })],
  ];
  for (const [alert, act] of steadily) {
    it(`of work that fails: ${alert}`, async () => {
      await expectAlerts(await scene.record(HOUR_S / 2 + 300, act), alert);
    });
  }

  it("of a busy git, and of dropped steps of requests", async () => {
    scene.level("git_processes_running", () => 8);
    scene.level("git_processes_max", () => 8);
    scene.level("git_requests_waiting", () => 33);
    await expectAlerts(await scene.record(60), "GitBusy");
    scene.end();
    scene = new Scene();
    await inWorld(async ({ bus }) => {
      const { registry, clock } = scene;
      const recorder = new StepRecorder({ bus, clock, registry });
      const step = { run: "a", request: "long", way: "call", name: "crawl", at: 0, ms: 0 } as const;
      const drop: Act = (number) => {
        if (number !== 1) return;
        for (let i = 0; i < STEPS_PER_REQUEST_MAX + 1_001; i++) recordStep(step);
      };
      await expectAlerts(await scene.record(300, drop), "StepsDropped");
      recorder.stop();
    });
  });

  it("were all provoked", () => {
    const all = rules.map(({ alert }) => alert);
    expect(all.filter((alert) => !provoked.has(alert))).to.deep.equal([]);
  });
});
