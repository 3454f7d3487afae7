import { expect } from "chai";
import { z } from "zod";
import { MESSAGE_BYTES_MAX } from "../../../schemas/limits.ts";
import { STREAMS } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { until } from "../../../scripts/testing/until.ts";
import { TtlStore } from "./ttl-store.ts";

const ANSWER_MS_MAX = 20_000;

describe("TtlStore", function () {
  this.timeout(60_000);
  const Page = z.object({ html: z.string() });
  let world: World;
  let pages: TtlStore<z.infer<typeof Page>>;

  before(async () => {
    world = await startWorld();
    // The store counts as empty after half a second without an answer. A busy machine may take longer.
    const request = world.bus.request.bind(world.bus);
    world.bus.request = (subject, payload, options) =>
      request(subject, payload, { ...options, timeoutMs: ANSWER_MS_MAX });
    pages = new TtlStore(world.bus, "page", Page);
  });
  after(() => world[Symbol.asyncDispose]());

  it("get() returns the newest value of a key with any characters, and of no other key", async () => {
    expect(await pages.get("a")).to.equal(undefined);
    for (const key of ["a", "a.b", "https://example.com/?a=b c*>é", ".", "A".repeat(200)]) {
      expect(await pages.put(key, { html: "old" }, 60)).to.equal(true);
      await pages.put(key, { html: key }, 60);
      expect(await pages.get(key)).to.deep.equal({ html: key });
    }
    expect(await new TtlStore(world.bus, "other", Page).get("a")).to.equal(undefined);
  });

  it("a value is gone after its time, without a trace", async () => {
    await pages.put("short", { html: "x" }, 4);
    expect(await pages.get("short")).to.deep.equal({ html: "x" });
    await until("it is gone", async () => (await pages.get("short")) === undefined);
    await until(
      "nothing is left",
      async () => (await world.count(STREAMS.cache, "cache.page.short")) === 0,
    );
  });

  it("put() stores a value that fits one message, and says that it does not store a larger one", async () => {
    const filling = MESSAGE_BYTES_MAX - JSON.stringify({ html: "" }).length;
    expect(await pages.put("large", { html: "x".repeat(filling) }, 60)).to.equal(true);
    expect((await pages.get("large"))?.html).to.have.length(filling);
    expect(await pages.put("larger", { html: "x".repeat(filling + 1) }, 60)).to.equal(false);
    expect(await pages.get("larger")).to.equal(undefined);
  });

  it("get() returns nothing of an older schema", async () => {
    await new TtlStore(world.bus, "page", z.object({ text: z.string() })).put(
      "b",
      { text: "" },
      60,
    );
    expect(await pages.get("b")).to.equal(undefined);
  });

  it("a full store forgets the oldest value", async () => {
    const { streams } = world.bus.jetstream;
    const { config } = await streams.info(STREAMS.cache);
    await streams.update(STREAMS.cache, { max_bytes: 1_000_000 });
    for (let index = 0; index < 30; index++) {
      await pages.put(`fill-${index}`, { html: "x".repeat(100_000) }, 60);
    }
    expect(await pages.get("fill-0")).to.equal(undefined);
    expect(await pages.get("fill-29")).to.be.an("object");
    expect((await streams.info(STREAMS.cache)).state.bytes).to.be.at.most(1_000_000);
    await streams.update(STREAMS.cache, { max_bytes: config.max_bytes });
  });

  it("without a bus values are missing, without an error; they are there again when it is back", async () => {
    await pages.put("c", { html: "x" }, 60);
    await world.nats?.kill();
    expect(await pages.get("c")).to.equal(undefined);
    expect(await pages.put("c", { html: "y" }, 60)).to.equal(false);
    await world.nats?.start();
    await until("it takes values again", () => pages.put("c", { html: "z" }, 60));
    expect(await pages.get("c")).to.deep.equal({ html: "z" });
  });
});
