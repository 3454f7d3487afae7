import { expect } from "chai";
import { Registry } from "prom-client";
import { startWorld } from "../../../scripts/testing/actor-world.ts";
import { until } from "../../../scripts/testing/until.ts";
import { systemClock as clock } from "../lib/clock.ts";
import { recordStep } from "../lib/trace.ts";
import {
  readSteps,
  STEPS_PER_REQUEST_MAX,
  STEPS_WAITING_MAX,
  StepRecorder,
} from "./request-steps.ts";

describe("steps of requests", function () {
  this.timeout(60_000);
  const { signal } = new AbortController();
  const step = (request: string, at = 1) =>
    recordStep({ run: `run-${request}`, request, way: "call", name: "a b", at, ms: 0 });

  async function dropped(registry: Registry): Promise<number> {
    const metric = await registry.getSingleMetric("trunkline_trace_steps_dropped_total")?.get();
    return metric?.values[0]?.value ?? 0;
  }

  it("are written up to a number for each request, which leaves room for others", async () => {
    await using world = await startWorld();
    const registry = new Registry();
    const recorder = new StepRecorder({ bus: world.bus, clock, registry });
    for (let count = 0; count < STEPS_PER_REQUEST_MAX; count++) step("long", count);
    expect(await dropped(registry)).to.equal(0);
    step("long");
    expect(await dropped(registry)).to.equal(1);
    step("short");
    recorder.stop();
    const found = async (id: string) => (await readSteps(world.bus, id, signal)).length;
    await until("both", async () => (await found("short")) === 1 && (await found("long")) > 0);
    expect(await found("long")).to.equal(STEPS_PER_REQUEST_MAX);
  });

  it("above the limit of waiting steps are dropped and counted, as are all steps while the bus is away", async () => {
    await using world = await startWorld();
    const registry = new Registry();
    // With this clock the recorder writes nothing before it stops, however long the bus takes to close.
    const standing = { ...clock, wait: () => new Promise<void>(() => {}) };
    const recorder = new StepRecorder({ bus: world.bus, clock: standing, registry });
    for (let count = 0; count < STEPS_WAITING_MAX; count++) step(`r${count}`);
    expect(await dropped(registry)).to.equal(0);
    step("one more");
    expect(await dropped(registry)).to.equal(1);
    await world.bus.close();
    recorder.stop();
    expect(await dropped(registry)).to.equal(STEPS_WAITING_MAX + 1);
    step("after the stop");
    expect(await dropped(registry)).to.equal(STEPS_WAITING_MAX + 1);
  });
});
