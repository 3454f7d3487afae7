import { setImmediate as nextTurn } from "node:timers/promises";
import { expect } from "chai";
import { TASK_ACK_WAIT_MS } from "../../../schemas/limits.ts";
import { type BusActors, busActors } from "../../../scripts/testing/bus-actors.ts";
import { SkippingClock } from "../../../scripts/testing/skipping-clock.ts";
import { TcpProxy } from "../../../scripts/testing/tcp-proxy.ts";
import { until } from "../../../scripts/testing/until.ts";
import { Bus } from "../bus/bus.ts";
import { TASK_HEARTBEAT_MS, TASK_SURE_MS, TaskLease } from "./task-lease.ts";
import { IDLE_PULL_MS } from "./task-puller.ts";

describe("TaskLease", function () {
  this.timeout(60_000);
  let bus: BusActors;
  let proxy: TcpProxy;
  let clock: SkippingClock;
  let worker: Bus;
  let finished: AbortController;
  let said: number;

  before(async () => {
    bus = await busActors({});
    const url = new URL(bus.url);
    proxy = await TcpProxy.start(Number(url.port));
    url.port = String(proxy.port);
    worker = await Bus.connect({ url: url.href, name: "worker" });
  });
  after(async () => {
    await worker.close();
    await proxy.stop();
    await bus.stop();
  });
  beforeEach(() => {
    finished = new AbortController();
    clock = new SkippingClock({ stands: true });
    said = 0;
  });
  afterEach(() => {
    proxy.open();
    finished.abort();
  });

  function open(pulledAt = clock.monotonic()): TaskLease {
    const message = {
      working: () => {
        said += 1;
      },
    };
    const lease = new TaskLease({ bus: worker, clock, message, pulledAt });
    void lease.keep(finished.signal);
    return lease;
  }

  /** Advances the clock until the lease reports once more that the worker still runs the task. */
  async function beat(): Promise<void> {
    const before = said;
    await until("the next beat is waited for", () => clock.isAwaited(TASK_HEARTBEAT_MS));
    clock.skip(TASK_HEARTBEAT_MS);
    await until("it is said", () => said > before);
  }

  /** Waits until the lease has received the bus's answers: the bus answers this later request last. */
  async function answered(): Promise<void> {
    await worker.connection.flush();
    await nextTurn();
  }

  it("keeps a task for as long as the bus answers", async () => {
    const lease = open();
    for (let beats = 1; beats * TASK_HEARTBEAT_MS <= 3 * TASK_SURE_MS; beats++) {
      await beat();
      await answered();
      expect(lease.isSure()).to.equal(true);
      expect(said).to.equal(beats);
    }
    expect(lease.lapsed.aborted).to.equal(false);
    clock.skip(TASK_SURE_MS - 500);
    expect(lease.isSure()).to.equal(true);
  });

  it("reports at once if its task came late in a long pull", async () => {
    const lease = open(clock.monotonic() - IDLE_PULL_MS);
    expect(said).to.equal(1);
    await answered();
    clock.skip(TASK_SURE_MS - 500);
    expect(lease.isSure()).to.equal(true);
  });

  for (const how of ["stall", "cut"] as const) {
    it(`lapses if the way to the bus is ${how}, before another worker can have the task, and stays lapsed`, async () => {
      const lease = open();
      await beat();
      await answered();
      proxy[how]();
      if (how === "cut") await until("it is noticed", () => !worker.connected);
      await beat();
      expect(lease.lapsed.aborted).to.equal(false);
      expect(TASK_SURE_MS).to.be.below(TASK_ACK_WAIT_MS);
      // The time counts from the previous heartbeat, which the bus answered.
      clock.skip(TASK_SURE_MS - TASK_HEARTBEAT_MS + 1);
      await until("it has lapsed", () => lease.lapsed.aborted);
      proxy.open();
      await until("the bus is back", () => worker.connected);
      await beat();
      await answered();
      expect(lease.isSure()).to.equal(false);
    });
  }

  it("isSure() follows the clock, even if timers are late", () => {
    expect(open(clock.monotonic() - TASK_SURE_MS + 500).isSure()).to.equal(true);
    const lease = open(clock.monotonic() - TASK_SURE_MS - 1);
    expect(lease.isSure()).to.equal(false);
    expect(lease.lapsed.aborted).to.equal(true);
  });
});
