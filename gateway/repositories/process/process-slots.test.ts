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

  it("enter() gives one account half of the slots while others wait, and three quarters otherwise", async () => {
    const slots = new ProcessSlots({ ...limits, processes: 8, queue: 16 });
    const ofA = ["a1", "a2", "a3", "a4", "a5", "a6"];
    const first = await Promise.all(ofA.map((name) => slots.enter(of(name), never)));
    first.push(await slots.enter(of("b1"), never), await slots.enter(of("b2"), never));
    const order: string[] = [];
    const waiting = ["a7", "a8", "b3", "c1"].map(async (name) => {
      const leave = await slots.enter(of(name), never);
      order.push(name);
      return leave;
    });
    for (const leave of first) leave();
    const leaves = await Promise.all(waiting);
    // Account a has its whole share until the third of its six processes has left.
    expect(order).to.deep.equal(["b3", "c1", "a7", "a8"]);
    for (const leave of leaves) leave();
    expect([slots.running, slots.waiting]).to.deep.equal([0, 0]);
  });

  for (const { processes, most } of [
    { processes: 16, most: 12 },
    { processes: 8, most: 6 },
    { processes: 4, most: 3 },
    { processes: 2, most: 1 },
  ]) {
    it(`enter() lets one account take ${most} of ${processes} slots, and other accounts go on`, async () => {
      const slots = new ProcessSlots({ ...limits, processes, queue: 8, queueMs: 20 });
      const names = Array.from({ length: most }, (_, index) => `a${index}`);
      const held = await Promise.all(names.map((name) => slots.enter(of(name), never)));
      expect((await refusalOf(slots.enter(of("a-next"), never))).code).to.equal("busy");
      expect(slots.running).to.equal(most);
      // Another account passes a request of the first account that waits.
      const waiting = refusalOf(slots.enter(of("a-next"), never));
      const others = await Promise.all(
        Array.from({ length: processes - most }, (_, index) => slots.enter(of(`b${index}`), never)),
      );
      expect(slots.running).to.equal(processes);
      expect((await waiting).code).to.equal("busy");
      for (const leave of [...others, ...held]) leave();
      (await slots.enter(of("a-next"), never))();
      expect([slots.running, slots.waiting]).to.deep.equal([0, 0]);
    });
  }

  it("enter() gives one account the only slot of a small gateway", async () => {
    const slots = new ProcessSlots({ ...limits, processes: 1, queueMs: 20 });
    const leave = await slots.enter(of("a1"), never);
    expect((await refusalOf(slots.enter(of("b1"), never))).code).to.equal("busy");
    leave();
    (await slots.enter(of("b1"), never))();
  });

  it("enter() starts a waiting process of the account when its own process has left", async () => {
    const slots = new ProcessSlots({ ...limits, processes: 4 });
    const held = await Promise.all(["a1", "a2", "a3"].map((name) => slots.enter(of(name), never)));
    const next = slots.enter(of("a4"), never);
    expect([slots.running, slots.waiting]).to.deep.equal([3, 1]);
    held[0]?.();
    const leave = await next;
    expect([slots.running, slots.waiting]).to.deep.equal([3, 0]);
    for (const end of [...held, leave]) end();
    expect(slots.running).to.equal(0);
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
