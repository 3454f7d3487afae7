import { setImmediate as turn } from "node:timers/promises";
import { expect } from "chai";
import { type FairLimits, FairSemaphore } from "./fair-semaphore.ts";

const never = new AbortController().signal;

/** Work that wants places. "a1" is work of the owner a. */
class TestWork {
  readonly semaphore: FairSemaphore;
  readonly started: string[] = [];
  readonly #leave = new Map<string, () => void>();

  constructor(limits: FairLimits) {
    this.semaphore = new FairSemaphore(limits);
  }

  async begin(...names: string[]): Promise<void> {
    for (const name of names) {
      void this.semaphore.take(name.slice(0, 1), never).then((leave) => {
        this.started.push(name);
        this.#leave.set(name, leave);
      });
    }
    await turn();
  }

  async end(...names: string[]): Promise<void> {
    for (const name of names) {
      this.#leave.get(name)?.();
      await turn();
    }
  }
}

describe("FairSemaphore", () => {
  it("one owner has all but the reserved places, which are for owners without a place", async () => {
    const work = new TestWork({ places: 3, reserved: 1 });
    await work.begin("a1", "a2", "a3", "a4");
    expect(work.started).to.deep.equal(["a1", "a2"]);
    await work.begin("b1", "b2");
    expect(work.started).to.deep.equal(["a1", "a2", "b1"]);
    await work.end("a1");
    expect(work.started, "one place is free, and both owners have one").to.have.length(3);
    await work.end("b1");
    expect(work.started).to.deep.equal(["a1", "a2", "b1", "b2"]);
    await work.end("b2");
    expect(work.started).to.deep.equal(["a1", "a2", "b1", "b2", "a3"]);
  });

  it("a free place goes to the owner with the fewest, not to the one that has waited longest", async () => {
    const work = new TestWork({ places: 4 });
    await work.begin("a1", "a2", "a3", "a4", "a5", "a6", "b1", "b2", "b3");
    await work.end("a1", "a2");
    expect(work.started.slice(4)).to.deep.equal(["b1", "b2"]);
    // Both have two places now.
    await work.end("b1");
    expect(work.started.at(-1)).to.equal("b3");
    await work.end("a3");
    expect(work.started.at(-1)).to.equal("a5");
  });

  it("of owners with equally many places, the one served longest ago is next", async () => {
    const work = new TestWork({ places: 1 });
    await work.begin("a1", "b1", "c1", "a2", "b2", "c2");
    await work.end("a1", "b1", "c1", "a2", "b2");
    expect(work.started).to.deep.equal(["a1", "b1", "c1", "a2", "b2", "c2"]);
  });

  it("work that is aborted while it waits takes no place", async () => {
    const semaphore = new FairSemaphore({ places: 1 });
    const leave = await semaphore.take("a", never);
    const gone = new AbortController();
    const left = semaphore.take("b", gone.signal).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    const next = semaphore.of("c").take(never);
    gone.abort("gone");
    expect(await left).to.equal("gone");
    const late = await semaphore.take("b", gone.signal).catch((reason: unknown) => reason);
    expect(late).to.equal("gone");
    leave();
    (await next)();
    (await semaphore.take("a", never))();
    expect(semaphore.free).to.equal(1);
  });

  it("a place that is given back twice counts once", async () => {
    const semaphore = new FairSemaphore({ places: 2 });
    const leave = await semaphore.take("a", never);
    leave();
    leave();
    expect(semaphore.free).to.equal(2);
  });
});
