import { expect } from "chai";
import { LANE_TASKS_MAX, TASK_RUN_MS_MAX, WORKER_ABSENT_MS } from "../../../schemas/limits.ts";
import { STREAMS } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { shared, sharedWorker } from "../../../scripts/testing/shared-lane.ts";
import { SkippingClock } from "../../../scripts/testing/skipping-clock.ts";
import { until } from "../../../scripts/testing/until.ts";
import { WORKER_CHECK_MS } from "./worker-presence.ts";

const PLACES = { places: 3, computing: 3, perKey: 3, reserved: 0 };

describe("a caller of a lane without a worker", function () {
  this.timeout(60_000);
  let world: World;
  let leaving: AbortController;
  let clock: SkippingClock;
  beforeEach(async () => {
    clock = new SkippingClock({ stands: true });
    world = await startWorld({ tasks: [shared] });
    leaving = new AbortController();
  });
  afterEach(async () => {
    leaving.abort();
    await world[Symbol.asyncDispose]();
  });

  const caller = async () => {
    const client = await world.newClient({ clock });
    // The deadline is far later than the times that this test skips, so only the missing worker can end a call.
    const limits = { deadlineMs: TASK_RUN_MS_MAX, signal: leaving.signal };
    return (key: string, text: string) => client.run(shared, key, "say", { text }, limits);
  };

  /** Skips time once a caller waits for its next check. */
  const skip = async (ms: number) => {
    await until("the next check is waited for", () => clock.isAwaited(WORKER_CHECK_MS));
    clock.skip(ms);
  };

  it("is refused although a thousand tasks wait, and told when to come back", async () => {
    const say = await caller();
    const waiting = Array.from({ length: LANE_TASKS_MAX }, () => refusalOf(say("a", "waits")));
    let isSettled = false;
    const all = Promise.all([...waiting, refusalOf(say("b", "waits"))]).finally(() => {
      isSettled = true;
    });
    await until("all are refused", () => {
      if (clock.isAwaited(WORKER_CHECK_MS)) clock.skip(WORKER_CHECK_MS);
      return isSettled;
    });
    const refusals = await all;
    const told = new Set(refusals.map(({ code, details }) => `${code} ${details.retryAfterS}`));
    expect([...told]).to.deep.equal([`unavailable ${WORKER_ABSENT_MS / 1_000}`]);
    await until("the tasks are removed", async () => (await world.count(STREAMS.tasks)) === 0);
  });

  it("is served if a worker comes in time, and waits for it as long as it is busy", async () => {
    const say = await caller();
    const first = say("a", "first");
    await until("it is queued", async () => (await world.count(STREAMS.tasks)) === 1);
    const { promise: freed, resolve: free } = Promise.withResolvers<void>();
    let busy = 0;
    await world.worker([
      sharedWorker(PLACES, async (text) => {
        if (text !== "blocks") return;
        busy += 1;
        await freed;
      }),
    ]);
    expect((await first).reply).to.deep.equal({ text: "first" });
    const blocking = Array.from({ length: PLACES.places }, () => say("a", "blocks"));
    await until("the worker is busy", () => busy === PLACES.places);
    const last = say("a", "last");
    // Twice the time after which an absent worker counts as absent.
    for (let times = 0; times < 2; times++) await skip(WORKER_ABSENT_MS);
    await until("the last check has ended", () => clock.isAwaited(WORKER_CHECK_MS));
    free();
    expect((await last).reply).to.deep.equal({ text: "last" });
    await Promise.all(blocking);
  });
});
