import { PassThrough, Readable } from "node:stream";
import { expect } from "chai";
import { APP_BODY_INLINE_BYTES_MAX } from "../../actors/apps/lib/app-bodies/body-blobs.ts";
import { systemClock } from "../../actors/runtime/lib/clock.ts";
import { BlobStore } from "../../actors/runtime/store/blob-store.ts";
import { APP_REQUEST_BYTES_MAX } from "../../schemas/apps/limits.ts";
import { BODIES_BYTES_MAX } from "../../schemas/limits.ts";
import { startWorld, type World } from "../../scripts/testing/actor-world.ts";
import { refusalOf } from "../../scripts/testing/refusal.ts";
import { AppBodies } from "./app-bodies.ts";

const KEY = "0123456789abcdef0123456789abcdef.hooks";

describe("AppBodies", function () {
  this.timeout(60_000);
  let world: World;
  let blobs: BlobStore;
  before(async () => {
    world = await startWorld();
    blobs = new BlobStore(world.bus, systemClock);
  });
  after(() => world[Symbol.asyncDispose]());

  const opened = (held = 0) => {
    const budget = { bytes: held };
    const bodies = new AppBodies(blobs, budget);
    const take = (bytes: number, declaredBytes = 0) =>
      bodies.take(Readable.from(bytes > 0 ? [Buffer.alloc(bytes, "b")] : []), {
        key: KEY,
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

  it("takes as many bytes as one gateway may hold, and refuses one more, also without a declared length", async () => {
    const { budget, take } = opened(BODIES_BYTES_MAX - 100);
    const { release } = await take(100);
    expect(budget.bytes).to.equal(BODIES_BYTES_MAX);
    expect(await refusalOf(take(1))).to.include({ code: "busy" });
    expect(await refusalOf(take(0, 1))).to.include({ code: "busy" });
    await release();
    expect(await refusalOf(take(101))).to.include({ code: "busy" });
    expect(budget.bytes).to.equal(BODIES_BYTES_MAX - 100);
  });

  it("never refuses an answer: those that come later are refused instead, also without a body", async () => {
    const { take } = opened(BODIES_BYTES_MAX - 100);
    const { answered, release } = await take(0);
    answered(101);
    expect(await refusalOf(take(0))).to.include({ code: "busy" });
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
