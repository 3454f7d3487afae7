import { expect } from "chai";
import pino from "pino";
import { STREAMS } from "../schemas/subjects.ts";
import { AccountBound, SIZES_KNOWN_MS } from "./account-bound.ts";
import { startWorld, type World } from "./testing/actor-world.ts";
import { SkippingClock } from "./testing/skipping-clock.ts";
import { until } from "./testing/until.ts";

const MB = 1_000_000;

describe("AccountBound", function () {
  this.timeout(60_000);
  let world: World;
  const clock = new SkippingClock({ stands: true });
  before(async () => {
    world = await startWorld({ layout: { agentStreams: 2 } });
  });
  after(() => world[Symbol.asyncDispose]());

  const resize = async (stream: string, bytes: number) => {
    const { config } = await world.bus.jetstream.streams.info(stream);
    await world.bus.jetstream.streams.update(stream, { ...config, max_bytes: bytes });
  };
  const boundOf = (setting: number) => {
    const { bus } = world;
    const logger = pino({ level: "silent" });
    return AccountBound.start({ bus, clock, logger, store: STREAMS.agents, setting });
  };

  it("is the setting, and at most a quarter of the smallest stream", async () => {
    await resize("AGENTS", 200 * MB);
    await resize("AGENTS-1", 100 * MB);
    expect((await boundOf(10 * MB)).bytes).to.equal(10 * MB);
    expect((await boundOf(25 * MB)).bytes).to.equal(25 * MB);
    expect((await boundOf(25 * MB + 1)).bytes).to.equal(25 * MB);
    expect((await boundOf(1_000 * MB)).bytes).to.equal(25 * MB);
  });

  it("is no limit if the setting says so, and the setting alone for a stream without a limit", async () => {
    expect((await boundOf(0)).bytes).to.equal(0);
    await resize("AGENTS", -1);
    await resize("AGENTS-1", -1);
    expect((await boundOf(1_000 * MB)).bytes).to.equal(1_000 * MB);
  });

  it("grows with the streams, without a restart", async () => {
    await resize("AGENTS", 200 * MB);
    await resize("AGENTS-1", 200 * MB);
    const bound = await boundOf(1_000 * MB);
    await resize("AGENTS", 400 * MB);
    await resize("AGENTS-1", 400 * MB);
    expect(bound.bytes).to.equal(50 * MB);
    clock.skip(SIZES_KNOWN_MS + 1);
    await until("the sizes are read again", () => bound.bytes === 100 * MB);
  });
});
