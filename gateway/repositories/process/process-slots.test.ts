import { expect } from "chai";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { ProcessSlots } from "./process-slots.ts";

/** "a1" is repository a1 of account a. */
const of = (name: string) => ({ id: name, accountId: name[0] ?? "" });
const never = new AbortController().signal;
const limits = { processes: 3, perRepo: 2, queue: 3, queuePerRepo: 2, queueMs: 10_000 };

describe("process slots", () => {
  it("enter() admits the maximum per repository and in all, and the others in their order", async () => {
    const slots = new ProcessSlots(limits);
    const first = await slots.enter(of("a"), never);
    const second = await slots.enter(of("a"), never);
    const order: string[] = [];
    const waiting = ["a1", "b1", "a2"].map(async (name) => {
      const leave = await slots.enter(of(name[0] ?? ""), never);
      order.push(name);
      return leave;
    });
    await waiting[1];
    expect(order).to.deep.equal(["b1"]);
    expect([slots.running, slots.waiting]).to.deep.equal([3, 2]);
    first();
    first();
    await waiting[0];
    expect([slots.running, slots.waiting]).to.deep.equal([3, 1]);
    second();
    await waiting[2];
    expect(order).to.deep.equal(["b1", "a1", "a2"]);
    for (const leave of await Promise.all(waiting)) leave();
    expect([slots.running, slots.waiting]).to.deep.equal([0, 0]);
  });

  it("enter() refuses past the queue, past one repository's share of it, and past the timeout", async () => {
    const slots = new ProcessSlots({ ...limits, processes: 1, queueMs: 20 });
    const leave = await slots.enter(of("a"), never);
    const waiting = ["a", "a", "b"].map((repo) => refusalOf(slots.enter(of(repo), never)));
    for (const repo of ["a", "c"]) {
      const refused = await refusalOf(slots.enter(of(repo), never));
      expect(refused.code).to.equal("busy");
      expect(refused.details.retryAfterS).to.be.above(0);
    }
    for (const refused of await Promise.all(waiting)) expect(refused.code).to.equal("busy");
    expect(slots.waiting).to.equal(0);
    leave();
    (await slots.enter(of("a"), never))();
  });

  it("enter() ends when the caller's signal aborts, and the next one gets the slot", async () => {
    const slots = new ProcessSlots({ ...limits, processes: 1 });
    const leave = await slots.enter(of("a"), never);
    const gone = new AbortController();
    const left = slots.enter(of("a"), gone.signal).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    const next = slots.enter(of("b"), never);
    gone.abort("gone");
    expect(await left).to.equal("gone");
    leave();
    (await next)();
    expect(slots.running).to.equal(0);
  });

  it("enter() gives one account half of the slots while others wait, and all slots otherwise", async () => {
    const slots = new ProcessSlots({ ...limits, processes: 4, queue: 8 });
    const first = await Promise.all(["a1", "a2", "a3", "a4"].map((n) => slots.enter(of(n), never)));
    const order: string[] = [];
    const waiting = ["a5", "a6", "b1", "c1"].map(async (name) => {
      const leave = await slots.enter(of(name), never);
      order.push(name);
      return leave;
    });
    for (const leave of first) leave();
    const leaves = await Promise.all(waiting);
    // Account a uses its whole share until the third of its four processes has left.
    expect(order).to.deep.equal(["b1", "c1", "a5", "a6"]);
    for (const leave of leaves) leave();
    expect([slots.running, slots.waiting]).to.deep.equal([0, 0]);
  });

  it("enter() lets one account fill half of the queue and no more", async () => {
    const slots = new ProcessSlots({ ...limits, processes: 1 });
    const leave = await slots.enter(of("a1"), never);
    const waiting = ["a1", "a2"].map((name) => slots.enter(of(name), never));
    expect((await refusalOf(slots.enter(of("a3"), never))).code).to.equal("busy");
    waiting.push(slots.enter(of("b1"), never));
    leave();
    for (const entered of waiting) (await entered)();
  });
});
