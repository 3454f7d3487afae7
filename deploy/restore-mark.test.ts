import { expect } from "chai";
import { Bus } from "../actors/runtime/bus/bus.ts";
import { startNats, type TestNatsServer } from "../scripts/testing/nats-server.ts";
import { markRestore, RESTORE_MARK, RestoreHold } from "./restore-mark.ts";

const OPTIONS = { renewMs: 20, abandonedMs: 400 };

describe("mark of a restore", function () {
  this.timeout(60_000);
  let nats: TestNatsServer;
  let bus: Bus;
  beforeEach(async () => {
    nats = await startNats();
    bus = await Bus.connect({ url: nats.url, name: "test" });
    await markRestore(bus.jetstream, 1);
  });
  afterEach(async () => {
    await bus.close();
    await nats.stop();
  });

  const take = () =>
    RestoreHold.take(bus.jetstream, OPTIONS).catch((error: Error) => error.message);
  const REFUSED = "Cannot restore: a restore is under way on this bus; wait for its end";

  it("a second restore is refused while the first renews the mark", async () => {
    const hold = await RestoreHold.take(bus.jetstream, OPTIONS);
    expect(await take()).to.equal(REFUSED);
    expect(await hold.isHeld()).to.equal(true);
    hold.stop();
  });

  it("of two restores that begin at once, one gets the mark", async () => {
    const taken = await Promise.all([take(), take()]);
    expect(taken.filter((one) => one === REFUSED)).to.have.length(1);
    for (const one of taken) if (one instanceof RestoreHold) one.stop();
  });

  it("a restore takes the mark of one that was killed, which holds it no more", async () => {
    const killed = await RestoreHold.take(bus.jetstream, OPTIONS);
    killed.stop();
    const next = await RestoreHold.take(bus.jetstream, OPTIONS);
    expect(await killed.isHeld()).to.equal(false);
    expect(await next.isHeld()).to.equal(true);
    next.stop();
  });

  it("a restore that waits for another one is refused when that has ended", async () => {
    const first = await RestoreHold.take(bus.jetstream, OPTIONS);
    const second = take();
    first.stop();
    await bus.jetstream.streams.delete(RESTORE_MARK);
    expect(await second).to.match(/^Cannot restore: a restore is under way|stream not found$/);
  });
});
