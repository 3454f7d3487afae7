import { expect } from "chai";
import { Semaphore } from "./semaphore.ts";

const { signal } = new AbortController();

describe("Semaphore", () => {
  it("run() starts as many as there are places, and the others in order, also after a failure", async () => {
    const semaphore = new Semaphore(2);
    const started: number[] = [];
    const gates = Array.from({ length: 5 }, () => Promise.withResolvers<void>());
    const runs = gates.map(({ promise }, index) =>
      semaphore
        .run(async () => {
          started.push(index);
          await promise;
        })
        .catch(() => {}),
    );
    await Promise.resolve();
    expect(started).to.deep.equal([0, 1]);
    expect(semaphore).to.include({ free: 0, waiting: 3 });
    gates[1]?.reject(new Error("as asked"));
    await runs[1];
    expect(started).to.deep.equal([0, 1, 2]);
    for (const { resolve } of gates) resolve();
    await Promise.all(runs);
    expect(started).to.deep.equal([0, 1, 2, 3, 4]);
    expect(semaphore).to.include({ free: 2, waiting: 0 });
  });

  it("take() waits in order, and a place that is returned twice counts once", async () => {
    const semaphore = new Semaphore(1);
    const first = await semaphore.take(signal);
    const order: number[] = [];
    const later = [1, 2].map((number) =>
      semaphore.take(signal).then((giveBack) => {
        order.push(number);
        return giveBack;
      }),
    );
    first();
    first();
    (await later[0])?.();
    (await later[1])?.();
    expect(order).to.deep.equal([1, 2]);
    expect(semaphore.free).to.equal(1);
  });

  it("take() rejects when its caller's signal aborts", async () => {
    const semaphore = new Semaphore(1);
    const giveBack = await semaphore.take(signal);
    const controller = new AbortController();
    const gone = new Error("gone");
    const waiting = semaphore.take(controller.signal).catch((error: unknown) => error);
    controller.abort(gone);
    expect(await waiting).to.equal(gone);
    giveBack();
    expect(semaphore.free).to.equal(1);
    expect(await semaphore.take(controller.signal).catch((error: unknown) => error)).to.equal(gone);
  });
});
