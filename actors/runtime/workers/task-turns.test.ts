import { expect } from "chai";
import { TaskTurns, TURN_QUANTUM_MS } from "./task-turns.ts";

const LIMITS = { places: 8, computing: 4, perKey: 3, reserved: 2 };

describe("TaskTurns", () => {
  /** Begins tasks of keys whose queues never become empty, until no task may begin. Returns the keys. */
  function fill(turns: TaskTurns, keys: readonly string[]): string[] {
    const begun: string[] = [];
    for (;;) {
      for (const key of keys) turns.queued(key);
      const key = turns.begin();
      if (key === undefined) return begun;
      begun.push(key);
    }
  }

  it("begin() serves keys one after the other", () => {
    const turns = new TaskTurns({ places: 6, computing: 6, perKey: 6, reserved: 0 });
    expect(fill(turns, ["a", "b", "c"])).to.deep.equal(["a", "b", "c", "a", "b", "c"]);
  });

  it("begin() gives each key the same time, however long its tasks are", () => {
    const turns = new TaskTurns({ places: 1, computing: 1, perKey: 1, reserved: 0 });
    const used = { short: 0, long: 0 };
    for (let task = 0; task < 1_000; task++) {
      turns.queued("long");
      turns.queued("short");
      const key = turns.begin() as keyof typeof used;
      const ms = key === "long" ? 30_000 : 100;
      used[key] += ms;
      // More tasks of the key already wait before this task ends.
      turns.queued(key);
      turns.end(key, ms);
    }
    expect(Math.abs(used.long - used.short)).to.be.at.most(30_000 + TURN_QUANTUM_MS);
  });

  it("begin() stops at the limit of a key, and of keys that compute", () => {
    const turns = new TaskTurns(LIMITS);
    expect(fill(turns, ["a"])).to.deep.equal(["a", "a", "a"]);
    expect(fill(turns, ["a", "b"])).to.deep.equal(["b"]);
    for (const key of ["a", "a", "a", "b"]) turns.setWaiting(key, true);
    // Waiting tasks do not count as computing, so b may begin more tasks, up to its limit and the reserve.
    expect(fill(turns, ["a", "b"])).to.deep.equal(["b", "b"]);
  });

  it("begin() lets half as many more tasks of a key run while others send their results", () => {
    const turns = new TaskTurns({ places: 12, computing: 4, perKey: 4, reserved: 4 });
    expect(fill(turns, ["a"])).to.have.lengthOf(4);
    turns.setAnswering("a", true);
    expect(fill(turns, ["a"])).to.deep.equal(["a"]);
    for (let task = 0; task < 4; task++) turns.setAnswering("a", true);
    // However many tasks send results to slow readers, other keys keep their places.
    expect(fill(turns, ["a"])).to.deep.equal(["a"]);
    expect(fill(turns, ["a", "b"])).to.deep.equal(["b", "b"]);
    turns.setAnswering("a", false);
    turns.end("a", 10);
    expect(fill(turns, ["a"])).to.deep.equal(["a"]);
  });

  it("begin() keeps the reserve for keys without a running task, up to the last place", () => {
    const turns = new TaskTurns(LIMITS);
    for (const key of fill(turns, ["a"])) turns.setWaiting(key, true);
    for (const key of fill(turns, ["b"])) turns.setWaiting(key, true);
    expect(fill(turns, ["a", "b"])).to.deep.equal([]);
    expect(fill(turns, ["a", "b", "c", "d", "e"])).to.deep.equal(["c", "d"]);
  });

  it("begin() serves a new key at once, although others compute without end", () => {
    const turns = new TaskTurns(LIMITS);
    expect(fill(turns, ["a", "b"])).to.have.lengthOf(LIMITS.computing);
    expect(fill(turns, ["a", "b", "c"])).to.deep.equal(["c"]);
  });

  it("begin() with twenty times more keys takes about twenty times longer", () => {
    // The shortest of several runs, because other work of the machine only makes a run longer.
    const shortestMs = (keys: number) => {
      const turns = new TaskTurns({ places: 40, computing: 4, perKey: 4, reserved: 4 });
      for (let key = 0; key < keys; key++) turns.queued(`key ${key}`);
      const runs = Array.from({ length: 10 }, () => {
        const from = performance.now();
        turns.begin();
        return performance.now() - from;
      });
      return Math.min(...runs);
    };
    shortestMs(200);
    expect(shortestMs(4_000)).to.be.below(100 * shortestMs(200));
  });

  it("end() forgets a key without tasks, with its credit and debt", () => {
    const turns = new TaskTurns(LIMITS);
    turns.queued("a");
    expect(turns.begin()).to.equal("a");
    expect(turns.size).to.equal(1);
    turns.end("a", 60_000);
    expect(turns.size).to.equal(0);
    expect(turns.begin()).to.equal(undefined);
  });
});
