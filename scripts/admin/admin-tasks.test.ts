import { expect } from "chai";
import { LANE_TASKS_MAX } from "../../schemas/limits.ts";
import { readQueues } from "../queues/queues.ts";
import { startWorld } from "../testing/actor-world.ts";
import { trunkline } from "../testing/command-line.ts";
import { echo } from "../testing/echo.ts";
import { echoWorker } from "../testing/echo-worker.ts";
import { age } from "./age.ts";

describe("admin tasks", function () {
  this.timeout(90_000);

  it("shows what waits and runs in each lane, and since when", async () => {
    await using world = await startWorld({ tasks: [echo] });
    const started = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    const before = async () => {
      started.resolve();
      await held.promise;
    };
    await world.worker([echoWorker({ slots: { fast: 1 }, before })]);
    const said = ["a", "b", "c"].map((text) =>
      world.client.run(
        echo,
        text,
        "say",
        { text },
        { deadlineMs: 80_000, signal: new AbortController().signal },
      ),
    );
    await started.promise;
    const [heading, fast, slow] = (await trunkline(["admin", "tasks"], world.url)).stdout.split(
      "\n",
    );
    expect(heading).to.match(/^LANE +WAITING +RUNNING +OLDEST$/);
    expect(fast).to.match(/^echo\.fast +2 +1 +[\d.]+ s$/);
    expect(slow).to.match(/^echo\.slow +0 +0 +-$/);
    held.resolve();
    for (const run of said) for await (const _ of (await run).chunks);
  });

  it("says that a lane is full when one of its queues is, and not when all together hold as much", async () => {
    await using world = await startWorld({ tasks: [echo] });
    const jetstream = world.bus.jetstream.jetstream();
    const publish = (subject: string, count: number) =>
      Promise.all(Array.from({ length: count }, () => jetstream.publish(subject, "{}")));
    // In a lane that serves its keys in turn, each key has a subject and its own limit.
    const half = LANE_TASKS_MAX / 2;
    await publish("task.turns.lane.a", half);
    await publish("task.turns.lane.b", half);
    await publish("task.echo.fast", half);
    await publish("task.echo.fast", half - 1);
    const isFull = async () =>
      Object.fromEntries(
        (await readQueues(world.bus)).lanes.map((one) => [`${one.kind}.${one.lane}`, one.isFull]),
      );
    expect(await isFull()).to.deep.include({ "turns.lane": false, "echo.fast": false });
    await publish("task.turns.lane.b", half);
    await publish("task.echo.fast", 1);
    expect(await isFull()).to.deep.include({ "turns.lane": true, "echo.fast": true });
    const { stdout } = await trunkline(["admin", "tasks"], world.url);
    expect(stdout).to.match(/^turns\.lane .* full$/m);
  });

  it("says that there are no lanes where no worker kind is declared", async () => {
    await using world = await startWorld();
    const { stdout } = await trunkline(["admin", "tasks"], world.url);
    expect(stdout).to.equal("No lanes\n");
  });

  it("age() is short at any length", () => {
    const ages = [-500, 400, 9_940, 17_000, 119_000, 121_000, 7_300_000, 200_000_000];
    const at = new Date(0);
    expect(ages.map((ms) => age(at, ms))).to.deep.equal([
      "0.0 s",
      "0.4 s",
      "9.9 s",
      "17 s",
      "119 s",
      "2 min",
      "2 h",
      "2 days",
    ]);
  });
});
