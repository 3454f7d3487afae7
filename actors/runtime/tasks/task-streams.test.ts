import { expect } from "chai";
import { laneOf, splitNames } from "../../../schemas/split-streams.ts";
import { STREAMS } from "../../../schemas/subjects.ts";
import { readQueues } from "../../../scripts/queues/queues.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { echo } from "../../../scripts/testing/echo.ts";
import { echoWorker } from "../../../scripts/testing/echo-worker.ts";
import { shared, sharedWorker } from "../../../scripts/testing/shared-lane.ts";
import { until } from "../../../scripts/testing/until.ts";

const LANES = [
  { kind: "echo", lane: "fast" },
  { kind: "echo", lane: "slow" },
  { kind: "shared", lane: "lane" },
];

describe("several streams of tasks", function () {
  this.timeout(60_000);
  let world: World;
  before(async () => {
    world = await startWorld({ tasks: [echo, shared], layout: { taskStreams: 16 } });
  });
  after(() => world[Symbol.asyncDispose]());

  const streamOf = (lane: { kind: string; lane: string }) => laneOf(world.bus.layout, lane).stream;
  const leaving = new AbortController();
  const options = { deadlineMs: 50_000, signal: leaving.signal };
  const runAll = () => [
    world.client.run(echo, "a", "say", { text: "a" }, options),
    world.client.run(echo, "b", "drawl", { text: "b" }, options),
    world.client.run(shared, "c.d", "say", { text: "c" }, options),
  ];
  const counted = async () => {
    const { lanes } = await readQueues(world.bus);
    return lanes.map(({ kind, lane, waiting, oldestAt }) => ({
      ...{ kind, lane, waiting, isKnown: oldestAt !== undefined },
    }));
  };

  it("hold each lane in one of them: tasks wait there, are counted, and go when their callers leave", async () => {
    expect(new Set(LANES.map(streamOf)).size).to.be.above(1);
    const running = runAll();
    for (const one of running) one.catch(() => {});
    for (const lane of LANES) {
      await until("it is queued", async () => (await world.count(streamOf(lane))) > 0);
    }
    expect(await counted()).to.deep.equal(
      LANES.map((lane) => ({ ...lane, waiting: 1, isKnown: true })),
    );
    leaving.abort();
    for (const stream of splitNames(world.bus.layout, STREAMS.tasks)) {
      await until("no task is left", async () => (await world.count(stream)) === 0);
    }
  });

  it("give each worker the tasks of its lanes, also in turns", async () => {
    const turns = { places: 2, computing: 2, perKey: 2, reserved: 0 };
    await world.worker([echoWorker(), sharedWorker(turns, async () => {})]);
    const signal = new AbortController().signal;
    const [said, drawled, inTurn] = await Promise.all([
      world.client.run(echo, "a", "say", { text: "a" }, { ...options, signal }),
      world.client.run(echo, "b", "drawl", { text: "b" }, { ...options, signal }),
      world.client.run(shared, "c.d", "say", { text: "c" }, { ...options, signal }),
    ]);
    expect([said, drawled, inTurn].map(({ reply }) => reply.text)).to.deep.equal(["a", "b", "c"]);
  });
});
