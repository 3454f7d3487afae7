import { expect } from "chai";
import { DELIVERIES_GATHER_MS, DELIVERING_AGENTS_FEW } from "../../schemas/webhook-limits.ts";
import { SkippingClock } from "../../scripts/testing/skipping-clock.ts";
import { DeliveryPace } from "./delivery-pace.ts";

describe("DeliveryPace", () => {
  const never = new AbortController().signal;
  let clock: SkippingClock;
  let pace: DeliveryPace;
  beforeEach(() => {
    clock = new SkippingClock();
    pace = new DeliveryPace(clock);
  });

  const begin = (count: number) => Array.from({ length: count }, () => pace.begin());

  it("gather() waits for nothing while fewer than DELIVERING_AGENTS_FEW are at work", async () => {
    const [one] = begin(DELIVERING_AGENTS_FEW);
    one?.[Symbol.dispose]();
    const gathered = pace.gather(never);
    expect(clock.isAwaited(DELIVERIES_GATHER_MS)).to.equal(false);
    await gathered;
  });

  it("gather() waits for DELIVERIES_GATHER_MS while as many are", async () => {
    begin(DELIVERING_AGENTS_FEW);
    const gathered = pace.gather(never);
    expect(clock.isAwaited(DELIVERIES_GATHER_MS)).to.equal(true);
    clock.skip(DELIVERIES_GATHER_MS);
    await gathered;
  });

  it("gather() ends at once where the inbox is to hear without delay", async () => {
    begin(DELIVERING_AGENTS_FEW);
    const hurried = new AbortController();
    const gathered = pace.gather(hurried.signal);
    expect(clock.isAwaited(DELIVERIES_GATHER_MS)).to.equal(true);
    hurried.abort();
    await gathered;
  });
});
