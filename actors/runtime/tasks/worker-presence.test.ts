import { expect } from "chai";
import { LANE_TASKS_MAX, WORKER_ABSENT_MS } from "../../../schemas/limits.ts";
import { STREAMS } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { shared, sharedWorker } from "../../../scripts/testing/shared-lane.ts";
import { until } from "../../../scripts/testing/until.ts";
import { type Clock, systemClock } from "../lib/clock.ts";

/** How much faster than the machine's clock the clock of the clients is. */
const SPEED = 100;
const fast: Clock = {
  now: () => systemClock.now(),
  monotonic: () => SPEED * systemClock.monotonic(),
  wait: (ms, signal) => systemClock.wait(ms / SPEED, signal),
};
const PLACES = { places: 3, computing: 3, perKey: 3, reserved: 0 };

describe("a caller of a lane without a worker", function () {
  this.timeout(60_000);
  let world: World;
  let leaving: AbortController;
  beforeEach(async () => {
    world = await startWorld({ tasks: [shared] });
    leaving = new AbortController();
  });
  afterEach(async () => {
    leaving.abort();
    await world[Symbol.asyncDispose]();
  });

  const caller = async () => {
    const client = await world.newClient({ clock: fast });
    // The deadline is the longest one, so only the missing worker can end a call in the time of this test.
    const limits = { deadlineMs: SPEED * 600_000, signal: leaving.signal };
    return (key: string, text: string) => client.run(shared, key, "say", { text }, limits);
  };

  it("is refused although a thousand tasks wait, and told when to come back", async () => {
    const say = await caller();
    const waiting = Array.from({ length: LANE_TASKS_MAX }, () => refusalOf(say("a", "waits")));
    const refusals = await Promise.all([...waiting, refusalOf(say("b", "waits"))]);
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
    await fast.wait(2 * WORKER_ABSENT_MS);
    free();
    expect((await last).reply).to.deep.equal({ text: "last" });
    await Promise.all(blocking);
  });
});
