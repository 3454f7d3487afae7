import { expect } from "chai";
import { refusalOf } from "../../scripts/testing/refusal.ts";
import { ProcessSlots } from "./process-slots.ts";

const never = new AbortController().signal;
const limits = { processes: 3, perRepo: 2, queue: 3, queuePerRepo: 2, queueMs: 10_000 };

describe("process slots", () => {
  it("enter() lets in so many of one repository and in all, and others in their order", async () => {
    const slots = new ProcessSlots(limits);
    const first = await slots.enter("a", never);
    const second = await slots.enter("a", never);
    const order: string[] = [];
    const waiting = ["a1", "b1", "a2"].map(async (name) => {
      const leave = await slots.enter(name[0] ?? "", never);
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

  it("enter() refuses past the queue, past its part for one repository, and past its time", async () => {
    const slots = new ProcessSlots({ ...limits, processes: 1, queueMs: 20 });
    const leave = await slots.enter("a", never);
    const waiting = ["a", "a", "b"].map((repo) => refusalOf(slots.enter(repo, never)));
    for (const repo of ["a", "c"]) {
      const refused = await refusalOf(slots.enter(repo, never));
      expect(refused.code).to.equal("busy");
      expect(refused.details.retryAfterS).to.be.above(0);
    }
    for (const refused of await Promise.all(waiting)) expect(refused.code).to.equal("busy");
    expect(slots.waiting).to.equal(0);
    leave();
    (await slots.enter("a", never))();
  });

  it("enter() ends when the caller leaves, and its place goes to the next", async () => {
    const slots = new ProcessSlots({ ...limits, processes: 1 });
    const leave = await slots.enter("a", never);
    const gone = new AbortController();
    const left = slots.enter("a", gone.signal).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    const next = slots.enter("b", never);
    gone.abort("gone");
    expect(await left).to.equal("gone");
    leave();
    (await next)();
    expect(slots.running).to.equal(0);
  });
});
