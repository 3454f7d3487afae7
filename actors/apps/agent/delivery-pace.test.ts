import { expect } from "chai";
import { DELIVERIES_TOGETHER_MAX } from "../../../schemas/apps/limits.ts";
import { SkippingClock } from "../../../scripts/testing/skipping-clock.ts";
import {
  DELIVERIES_GATHER_LOAD,
  DELIVERIES_GATHER_MS,
  DELIVERY_LOAD_MS,
  DeliveryPace,
} from "./delivery-pace.ts";

describe("DeliveryPace", () => {
  const never = new AbortController().signal;
  let clock: SkippingClock;
  let load: number;
  let pace: DeliveryPace;
  beforeEach(() => {
    clock = new SkippingClock({ stands: true });
    load = DELIVERIES_GATHER_LOAD;
    pace = new DeliveryPace(clock, () => load);
    clock.skip(DELIVERY_LOAD_MS);
  });

  it("gather() waits for nothing while the host has time", async () => {
    load = DELIVERIES_GATHER_LOAD - 0.01;
    const gathered = pace.gather(0, never);
    expect(clock.isAwaited(DELIVERIES_GATHER_MS)).to.equal(false);
    await gathered;
  });

  it("gather() waits for DELIVERIES_GATHER_MS while it has no delivery", async () => {
    const gathered = pace.gather(DELIVERIES_TOGETHER_MAX - 1, never);
    expect(clock.isAwaited(DELIVERIES_GATHER_MS)).to.equal(true);
    clock.skip(DELIVERIES_GATHER_MS);
    await gathered;
  });

  it("gather() does not wait if as many are ready as go together", async () => {
    const gathered = pace.gather(DELIVERIES_TOGETHER_MAX, never);
    expect(clock.isAwaited(DELIVERIES_GATHER_MS)).to.equal(false);
    await gathered;
  });

  it("gather() ends at once if the inbox is to be notified without delay", async () => {
    const hurried = new AbortController();
    const gathered = pace.gather(0, hurried.signal);
    expect(clock.isAwaited(DELIVERIES_GATHER_MS)).to.equal(true);
    hurried.abort();
    await gathered;
  });

  it("gather() knows the load of DELIVERY_LOAD_MS ago, and no older one", async () => {
    const hurried = AbortSignal.abort();
    await pace.gather(0, hurried);
    load = 0;
    clock.skip(DELIVERY_LOAD_MS - 1);
    void pace.gather(0, never);
    expect(clock.isAwaited(DELIVERIES_GATHER_MS)).to.equal(true);
    clock.skip(1);
    await pace.gather(0, never);
  });

  it("measures this thread if nothing else does", async () => {
    const own = new DeliveryPace(clock);
    const until = performance.now() + 50;
    while (performance.now() < until);
    clock.skip(DELIVERY_LOAD_MS);
    const gathered = own.gather(0, never);
    expect(clock.isAwaited(DELIVERIES_GATHER_MS)).to.equal(true);
    clock.skip(DELIVERIES_GATHER_MS);
    await gathered;
  });
});
