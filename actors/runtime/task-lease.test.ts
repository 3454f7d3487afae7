import { expect } from "chai";
import { TASK_ACK_WAIT_MS, TASK_HEARTBEAT_MS, TASK_SURE_MS } from "../../schemas/limits.ts";
import { type BusActors, busActors } from "../../scripts/testing/bus-actors.ts";
import { TcpProxy } from "../../scripts/testing/tcp-proxy.ts";
import { until } from "../../scripts/testing/until.ts";
import { Bus } from "./bus.ts";
import { type Clock, systemClock } from "./clock.ts";
import { TaskLease } from "./task-lease.ts";

/** Time goes so many times faster. */
const FAST = 10;
const clock: Clock = {
  ...systemClock,
  monotonic: () => systemClock.monotonic() * FAST,
  wait: (ms, signal) => systemClock.wait(ms / FAST, signal),
};

describe("TaskLease", () => {
  let bus: BusActors;
  let proxy: TcpProxy;
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

  it("keeps a task for as long as the bus answers", async () => {
    const lease = open();
    await clock.wait(3 * TASK_SURE_MS);
    expect(lease.isSure()).to.equal(true);
    expect(lease.lapsed.aborted).to.equal(false);
    expect(said).to.be.within(5, Math.floor((3 * TASK_SURE_MS) / TASK_HEARTBEAT_MS));
  });

  for (const how of ["stall", "cut"] as const) {
    it(`lapses where the way to the bus is ${how}, before the task can be another's, and stays so`, async () => {
      const lease = open();
      await until("the bus has answered", () => said > 0);
      proxy[how]();
      const silentSince = clock.monotonic();
      await until("it has lapsed", () => lease.lapsed.aborted);
      expect(clock.monotonic() - silentSince).to.be.below(TASK_ACK_WAIT_MS);
      proxy.open();
      const before = said;
      await until("it is worked at all the same", () => said > before);
      expect(lease.isSure()).to.equal(false);
    });
  }

  it("isSure() goes by the clock, whatever timers have not come to", () => {
    expect(open(clock.monotonic() - TASK_SURE_MS + 500).isSure()).to.equal(true);
    const lease = open(clock.monotonic() - TASK_SURE_MS - 1);
    expect(lease.isSure()).to.equal(false);
    expect(lease.lapsed.aborted).to.equal(true);
  });
});
