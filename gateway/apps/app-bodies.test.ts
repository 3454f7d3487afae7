import { PassThrough, Readable } from "node:stream";
import { expect } from "chai";
import { APP_BODY_INLINE_BYTES_MAX } from "../../actors/apps/lib/app-bodies/body-blobs.ts";
import { systemClock } from "../../actors/runtime/lib/clock.ts";
import { BlobStore } from "../../actors/runtime/store/blob-store.ts";
import { APP_REQUEST_BYTES_MAX } from "../../schemas/apps/limits.ts";
import { BYTES_APP_SHARE, SMALL_BODY_BYTES_MAX } from "../../schemas/memory-limits.ts";
import { startWorld, type World } from "../../scripts/testing/actor-world.ts";
import { refusalOf } from "../../scripts/testing/refusal.ts";
import { AppBodies, appBudget } from "./app-bodies.ts";

const ACCOUNT = "0123456789abcdef0123456789abcdef";
const KEY = `${ACCOUNT}.hooks`;

describe("AppBodies", function () {
  this.timeout(60_000);
  let world: World;
  let blobs: BlobStore;
  before(async () => {
    world = await startWorld();
    blobs = new BlobStore(world.bus, systemClock);
  });
  after(() => world[Symbol.asyncDispose]());

  /** The bytes for one app; four times as many are for all. */
  const SHARE = 2_000_000;
  const LARGE = 100_000;
  /** `others`: the bytes that the app holds for other requests. */
  const opened = (others = 0) => {
    const budget = appBudget({ bytesMax: SHARE / BYTES_APP_SHARE });
    const held = budget.open([ACCOUNT, KEY]);
    held.take(others);
    const bodies = new AppBodies(blobs, budget);
    const take = (bytes: number, declaredBytes = 0, key = KEY) =>
      bodies.take(Readable.from(bytes > 0 ? [Buffer.alloc(bytes, "b")] : []), {
        key,
        declaredBytes,
      });
    return { budget, bodies, take };
  };

  it("counts a body and its answer until the answer is out, and gives back each byte once", async () => {
    const { budget, take } = opened();
    const { body, answered, release } = await take(100);
    expect(body).to.deep.equal({ text: "b".repeat(100) });
    expect(budget.bytes).to.equal(100);
    answered(50);
    expect(budget.bytes).to.equal(150);
    await release();
    await release();
    expect(budget.bytes).to.equal(0);
  });

  it("takes an app's share of large bodies, and refuses one byte more, also without a declared length", async () => {
    const { budget, take } = opened(SHARE - LARGE);
    const { release } = await take(LARGE);
    expect(budget.bytes).to.equal(SHARE);
    expect(await refusalOf(take(LARGE))).to.include({ code: "busy" });
    expect(await refusalOf(take(0, LARGE))).to.include({ code: "busy" });
    await release();
    expect(await refusalOf(take(LARGE + 1))).to.include({ code: "busy" });
    expect(budget.bytes).to.equal(SHARE - LARGE);
  });

  it("takes small bodies while an app holds its share, and large ones of other apps", async () => {
    const { take } = opened(SHARE);
    const taken = [await take(1), await take(SMALL_BODY_BYTES_MAX)];
    expect(await refusalOf(take(SMALL_BODY_BYTES_MAX + 1))).to.include({ code: "busy" });
    for (const other of [`${ACCOUNT}.other`, `${"b".repeat(32)}.hooks`]) {
      taken.push(await take(SHARE, SHARE, other));
    }
    // The two apps of the account hold the account's share.
    expect(await refusalOf(take(LARGE, LARGE, `${ACCOUNT}.third`))).to.include({ code: "busy" });
    for (const { release } of taken) await release();
  });

  it("never refuses an answer: the app's later requests are refused instead, also without a body", async () => {
    const { budget, take } = opened(SHARE - LARGE);
    const { answered, release } = await take(0);
    answered(LARGE + 1);
    // The app is past its share, and is refused once half of all bytes are in use.
    await (await take(0)).release();
    budget.open(["another account", "its app"]).count(SHARE);
    expect(await refusalOf(take(0))).to.include({ code: "busy" });
    await (await take(0, 0, `${ACCOUNT}.other`)).release();
    await release();
    await (await take(0)).release();
  });

  it("takes the largest body and refuses one byte more, with nothing left behind", async () => {
    const { budget, bodies, take } = opened();
    const { body, release } = await take(APP_REQUEST_BYTES_MAX);
    if (!body || !("blob" in body)) throw new Error("expected a blob");
    expect((await bodies.read(body)).length).to.equal(APP_REQUEST_BYTES_MAX);
    await release();
    for (const refused of [take(APP_REQUEST_BYTES_MAX + 1), take(0, APP_REQUEST_BYTES_MAX + 1)]) {
      expect(await refusalOf(refused)).to.include({ code: "body_too_large" });
    }
    expect(budget.bytes).to.equal(0);
  });

  it("is cancelled if the sender leaves before the end, with nothing left behind", async () => {
    const { budget, bodies } = opened();
    const body = new PassThrough();
    body.write("half");
    const taken = refusalOf(bodies.take(body, { key: KEY, declaredBytes: 0 }));
    body.destroy();
    expect(await taken).to.include({ code: "cancelled" });
    expect(budget.bytes).to.equal(0);
  });

  it("puts a body in the message up to a bound, and past it beside", async () => {
    const { take } = opened();
    const inline = await take(APP_BODY_INLINE_BYTES_MAX);
    const beside = await take(APP_BODY_INLINE_BYTES_MAX + 1);
    expect(inline.body).to.have.property("text");
    expect(beside.body).to.have.property("blob");
    await Promise.all([inline.release(), beside.release()]);
  });
});
