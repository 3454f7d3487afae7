import { expect } from "chai";
import { pino } from "pino";
import { STORE_DISK_SHARE } from "../schemas/store-limits.ts";
import { storeSizes } from "../schemas/store-sizes.ts";
import { STREAMS } from "../schemas/subjects.ts";
import { crawlBytesOn, storeSizesOn } from "./account-limits.ts";
import { configFromEnvironment } from "./config.ts";
import { startWorld, type World } from "./testing/actor-world.ts";

const GIB = 1024 ** 3;
const MB = 1_000_000;
const UNSET = { storeBytes: undefined, storeSizes: {} };

describe("storeSizesOn()", function () {
  this.timeout(60_000);
  let world: World;
  before(async () => {
    world = await startWorld();
    await world.bus.jetstream.jetstream().publish("blob.crawl.a.=.head", new Uint8Array(900_000));
  });
  after(() => world[Symbol.asyncDispose]());

  it("divides a share of the disk that is free or stores streams", async () => {
    const { storage } = await world.bus.jetstream.getAccountInfo();
    expect(storage).to.be.above(900_000);
    const sizes = await storeSizesOn(world.bus, UNSET, { freeBytes: 100 * GIB });
    expect(sizes).to.deep.equal(storeSizes(Math.floor((100 * GIB + storage) * STORE_DISK_SHARE)));
    const grown = await storeSizesOn(world.bus, UNSET, { freeBytes: 200 * GIB });
    expect(grown.packs).to.be.above(1.9 * sizes.packs);
  });

  it("still accepts the settings of stored data when other files fill the disk", async () => {
    const set = { storeBytes: undefined, storeSizes: { packs: 60 * GIB } };
    const sizes = await storeSizesOn(world.bus, set, { freeBytes: GIB });
    expect(sizes.packs).to.equal(60 * GIB);
    // At the first start nothing is stored.
    const { jetstream } = world.bus;
    const getAccountInfo = async () => ({ ...(await jetstream.getAccountInfo()), storage: 0 });
    const first = { jetstream: Object.assign(Object.create(jetstream), { getAccountInfo }) };
    const refused = await storeSizesOn(first, set, { freeBytes: GIB }).catch(String);
    expect(refused).to.match(/^Error: TRUNKLINE_PACKS_BYTES: expected at most/);
  });

  it("divides the bytes of the setting, with or without a disk", async () => {
    const set = { storeBytes: 50 * GIB, storeSizes: { agents: 20 * GIB } };
    for (const disk of [undefined, { freeBytes: 100 * GIB }]) {
      const sizes = await storeSizesOn(world.bus, set, disk);
      expect(sizes).to.deep.equal(storeSizes(50 * GIB, { agents: 20 * GIB }));
    }
    expect(await storeSizesOn(world.bus, UNSET, undefined)).to.deep.equal(storeSizes());
  });
});

describe("crawlBytesOn()", function () {
  this.timeout(60_000);
  let world: World;
  before(async () => {
    world = await startWorld();
  });
  after(() => world[Symbol.asyncDispose]());

  const bytesOf = async (setting?: string) => {
    const environment = setting === undefined ? {} : { TRUNKLINE_CRAWL_BYTES_PER_ACCOUNT: setting };
    const config = configFromEnvironment(environment);
    const bytes = await crawlBytesOn({ bus: world.bus, logger: pino({ level: "silent" }), config });
    return bytes();
  };
  const resize = (bytes: number) =>
    world.bus.jetstream.streams.update(STREAMS.crawl, { max_bytes: bytes });

  it("is a quarter of the stream, a smaller setting, or no limit for 0", async () => {
    await resize(400 * MB);
    expect(await bytesOf()).to.equal(100 * MB);
    expect(await bytesOf(String(100 * MB + 1))).to.equal(100 * MB);
    expect(await bytesOf(String(99 * MB))).to.equal(99 * MB);
    expect(await bytesOf("0")).to.equal(0);
  });

  it("is the setting, or no limit, where the stream has no size", async () => {
    await resize(-1);
    expect(await bytesOf(String(99 * MB))).to.equal(99 * MB);
    expect(await bytesOf()).to.equal(0);
  });
});
