import { setTimeout as wait } from "node:timers/promises";
import { expect } from "chai";
import {
  type DataLayout,
  FIRST_LAYOUT,
  LAYOUT_SETTINGS,
  type WantedLayout,
} from "../schemas/data-layout.ts";
import { JETSTREAM_ANSWER_MS } from "../schemas/limits.ts";
import { streamNames } from "../schemas/split-streams.ts";
import { stateBucket, stateSubjects } from "../schemas/subjects.ts";
import { startWorld, type World } from "../scripts/testing/actor-world.ts";
import { awaitData } from "./await-data.ts";
import { dataFormatOf, findLayout, readLayout, refuseNewerData } from "./data-format.ts";
import { openData } from "./open-data.ts";

describe("data layout", function () {
  this.timeout(300_000);
  let world: World;
  beforeEach(async () => {
    world = await startWorld();
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const open = (wanted: WantedLayout) =>
    openData(world.bus.jetstream, {
      ...{ version: "0.1.0", replicas: 1, tasks: [], wanted: wanted },
    });
  const awaited = (wanted: WantedLayout) =>
    awaitData(world.bus.jetstream, {
      ...{ version: "0.1.0", readsState: false, wanted: wanted },
      ...{ signal: AbortSignal.timeout(120_000), missing: () => {} },
    });
  const refusalOf = (opening: Promise<unknown>) =>
    opening.then(
      () => "open",
      (error: Error) => error.message,
    );

  for (const shards of [8, 64, 512, 4_096]) {
    it(`openData() stores ${shards} shards at the first start, and finds them later`, async () => {
      const layout = { ...FIRST_LAYOUT, shards };
      expect(await open({ shards })).to.deep.equal(layout);
      expect(await open({})).to.deep.equal(layout);
      expect(await open({ shards })).to.deep.equal(layout);
      expect(await awaited({})).to.deep.equal(layout);
    });
  }

  it("awaitData() goes on waiting for the layout after the bus stood still", async () => {
    const { nats, bus } = world;
    if (!nats) throw new Error("The world has no server of its own");
    const asked = Promise.withResolvers<void>();
    bus.connection.subscribe("$JS.API.DIRECT.GET.>", { callback: () => asked.resolve() });
    await bus.connection.flush();
    const waiting = awaited({});
    waiting.catch(() => {}); // It is awaited below.
    await asked.promise;
    process.kill(nats.pid, "SIGSTOP");
    await wait(JETSTREAM_ANSWER_MS + 1_000);
    process.kill(nats.pid, "SIGCONT");
    const layout = { ...FIRST_LAYOUT, shards: 8 };
    expect(await open({ shards: 8 })).to.deep.equal(layout);
    expect(await waiting).to.deep.equal(layout);
  });

  it("openData() and awaitData() refuse other numbers than the stored ones", async () => {
    await open({ shards: 512, stateStreams: 2 });
    const shards =
      'TRUNKLINE_SHARDS: expected 512, as the first start stored it for the life of the data, found "64"; leave it unset';
    expect(await refusalOf(open({ shards: 64 }))).to.equal(shards);
    expect(await refusalOf(awaited({ shards: 64 }))).to.equal(shards);
    const streams =
      'TRUNKLINE_STATE_STREAMS: expected 2, as the first start stored it for the life of the data, found "1"; leave it unset';
    expect(await refusalOf(open({ stateStreams: 1 }))).to.equal(streams);
    expect(await refusalOf(awaited({ stateStreams: 1 }))).to.equal(streams);
    for (const found of [
      await readLayout(world.bus.jetstream),
      await findLayout(world.bus.jetstream),
    ])
      expect(found).to.include({ shards: 512, stateStreams: 2 });
  });

  it("openData() declares each state stream and its journal", async () => {
    expect(await open({ stateStreams: 4 })).to.deep.equal({ ...FIRST_LAYOUT, stateStreams: 4 });
    const { stream, journalStream } = stateSubjects(stateBucket(3));
    for (const name of [stream, journalStream]) await world.bus.jetstream.streams.info(name);
  });

  for (const part of [
    "mailStreams",
    "taskStreams",
    "agentStreams",
    "packStreams",
  ] as const satisfies (keyof DataLayout)[]) {
    it(`openData() splits a store into ${part} and refuses another number`, async () => {
      const layout = { ...FIRST_LAYOUT, [part]: 4 };
      expect(await open({ [part]: 4 })).to.deep.equal(layout);
      expect(await open({})).to.deep.equal(layout);
      expect(await awaited({ [part]: 4 })).to.deep.equal(layout);
      const names = await Array.fromAsync(world.bus.jetstream.streams.names());
      expect(names).to.have.members(streamNames(layout));
      expect(names.length).to.equal(streamNames(FIRST_LAYOUT).length + 3);
      const refusal = `${LAYOUT_SETTINGS[part]}: expected 4, as the first start stored it for the life of the data, found "2"; leave it unset`;
      expect(await refusalOf(open({ [part]: 2 }))).to.equal(refusal);
      expect(await refusalOf(awaited({ [part]: 2 }))).to.equal(refusal);
      const older = refuseNewerData(world.bus.jetstream, { version: "0.1.0", format: 2 });
      expect(await refusalOf(older)).to.match(/wrote it in format 3/);
    });
  }

  it("openData() of two first starts with different numbers: one is refused", async () => {
    const [one, other] = await Promise.all([
      refusalOf(open({ shards: 8 })),
      refusalOf(open({ shards: 16 })),
    ]);
    expect([one, other].filter((text) => text === "open")).to.have.length(1);
    const stored = one === "open" ? 8 : 16;
    expect(await open({})).to.deep.equal({ ...FIRST_LAYOUT, shards: stored });
  });

  it("openData() finds 64 shards and one state stream in data of the first release", async () => {
    const { epoch } = stateSubjects(stateBucket(0));
    await world.bus.jetstream.jetstream().publish(epoch(7), "{}");
    expect(await refusalOf(open({ shards: 512 }))).to.match(/^TRUNKLINE_SHARDS: expected 64,/);
    expect(await open({})).to.deep.equal(FIRST_LAYOUT);
  });

  it("code that counts on 64 shards refuses other data", async () => {
    await open({ shards: 64 });
    expect(await dataFormatOf(world.bus.jetstream)).to.equal(1);
    await using other = await startWorld();
    const { jetstream } = other.bus;
    await openData(jetstream, {
      ...{ version: "0.2.0", replicas: 1, tasks: [], wanted: { shards: 128 } },
    });
    const older = refuseNewerData(jetstream, { version: "0.1.0", format: 1 });
    expect(await refusalOf(older)).to.match(/wrote it in format 2, and this version 0.1.0 reads/);
  });
});
