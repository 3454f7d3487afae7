import { expect } from "chai";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { downloadMsMax, TransferSlots } from "./transfer-slots.ts";

const { signal } = new AbortController();
const response = { destroyed: false };

describe("transfer slots", () => {
  it("run() gives one account half of the slots, and another account goes on", async () => {
    const slots = new TransferSlots(4);
    const first = hold(slots, "a");
    const second = hold(slots, "a");
    const refused = await refusalOf(hold(slots, "a").ended);
    expect(refused.code).to.equal("busy");
    expect(refused.message).to.contain("2 large files of this account are in transfer");
    expect(refused.details.retryAfterS).to.be.above(0);
    const others = [hold(slots, "b"), hold(slots, "b")];
    // All slots are taken now, so no account gets one.
    const full = await refusalOf(hold(slots, "c").ended);
    expect(full.message).to.contain("too many large files are in transfer");
    first.end();
    await first.ended;
    const next = hold(slots, "a");
    for (const { end, ended } of [second, next, ...others]) {
      end();
      await ended;
    }
  });

  it("run() releases the slot of a transfer that failed", async () => {
    const slots = new TransferSlots(2);
    const failed = slots.run(response, { accountId: "a", signal }, async () => {
      throw new Error("broken");
    });
    expect(await failed.catch((error: Error) => error.message)).to.equal("broken");
    const held = hold(slots, "a");
    held.end();
    await held.ended;
  });

  it("run() gives one account the only slot", async () => {
    const slots = new TransferSlots(1);
    const held = hold(slots, "a");
    expect((await refusalOf(hold(slots, "b").ended)).code).to.equal("busy");
    held.end();
    await held.ended;
  });

  it("run() aborts a transfer at its time limit, and a slot is free again", async () => {
    const slots = new TransferSlots(2);
    const endless = (given: AbortSignal) =>
      new Promise<void>((_, reject) => {
        given.addEventListener("abort", () => reject(given.reason));
      });
    const refused = await refusalOf(
      slots.run(response, { accountId: "a", signal, msMax: 5 }, endless),
    );
    expect(refused.code).to.equal("deadline_exceeded");
    const left = new AbortController();
    const leaving = slots.run(
      response,
      { accountId: "a", signal: left.signal, msMax: 60_000 },
      endless,
    );
    left.abort("left");
    expect(await leaving.catch((reason: unknown) => reason)).to.equal("left");
  });

  it("downloadMsMax() lets the largest file arrive over a line of 1 Mbit/s with half of the time to spare", () => {
    const bytes = 500_000_000;
    const needed = ((bytes * 8) / 1_000_000) * 1_000;
    expect(downloadMsMax(bytes)).to.be.within(2 * needed, 3 * 60 * 60_000);
    expect(downloadMsMax(0)).to.equal(10 * 60_000);
  });
});

/** Starts a transfer that runs until `end` is called. */
function hold(slots: TransferSlots, accountId: string) {
  const { promise, resolve: end } = Promise.withResolvers<void>();
  return { end, ended: slots.run(response, { accountId, signal }, () => promise) };
}
