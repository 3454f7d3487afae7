import { expect } from "chai";
import { findViolation, type Operation } from "./linearizability.ts";
import { SeededRandom } from "./seeded-random.ts";

type Input = { add: number } | "get";

const counterModel = {
  initial: 0,
  step(count: number, input: Input, output: number | undefined) {
    const next = input === "get" ? count : count + input.add;
    return output === undefined || output === next ? next : undefined;
  },
};

type Call = Operation<Input, number>;

/** Creates an operation. `at` is its start and its end. Without `output`, the operation's outcome is unknown. */
function call(at: [number, number], input: Input, output?: number, key = "a"): Call {
  const operation = { key, input, startedAt: at[0] };
  return output === undefined ? operation : { ...operation, ended: { at: at[1], output } };
}

const accepts = (...history: Call[]) => findViolation(counterModel, history) === undefined;

/**
 * Simulates many callers of one counter. Each call takes effect at one point in time between its start and its end.
 */
function honestHistory(seed: number, calls: number, callers: number): Call[] {
  const random = new SeededRandom(seed);
  const freeAt = Array.from({ length: callers }, () => 0);
  const timed = Array.from({ length: calls }, () => {
    const caller = random.integer(0, callers - 1);
    const startedAt = (freeAt[caller] ?? 0) + random.next();
    const endedAt = startedAt + 10 * random.next();
    freeAt[caller] = endedAt;
    const input: Input = random.chance(0.5) ? "get" : { add: random.integer(1, 3) };
    const unknown = random.chance(0.005);
    const effectAt = startedAt + random.next() * (unknown ? 50 : endedAt - startedAt);
    return { startedAt, endedAt, input, unknown, effectAt };
  });
  let count = 0;
  const inOrder = timed.toSorted((one, other) => one.effectAt - other.effectAt);
  return inOrder.map(({ startedAt, endedAt, input, unknown }) => {
    if (input !== "get") count += input.add;
    return call([startedAt, endedAt], input, unknown ? undefined : count);
  });
}

describe("findViolation", () => {
  it("findViolation() accepts calls one after the other", () => {
    expect(accepts(call([1, 2], { add: 1 }, 1), call([3, 4], "get", 1))).to.equal(true);
    expect(accepts()).to.equal(true);
  });

  it("findViolation() accepts calls that overlap, in the order their outputs need", () => {
    const read = call([1, 9], "get", 0);
    expect(accepts(read, call([2, 3], { add: 1 }, 1))).to.equal(true);
    const first = call([1, 9], { add: 1 }, 2);
    expect(accepts(first, call([2, 8], { add: 1 }, 1), call([3, 7], "get", 1))).to.equal(true);
  });

  it("findViolation() checks each key separately", () => {
    const other = call([3, 4], "get", 0, "b");
    expect(accepts(call([1, 2], { add: 1 }, 1), other)).to.equal(true);
  });

  it("findViolation() accepts an unknown outcome that happened, happened late, or never did", () => {
    const unknown = call([1, 0], { add: 5 });
    expect(accepts(unknown, call([2, 3], "get", 5))).to.equal(true);
    expect(accepts(unknown, call([2, 3], "get", 0), call([8, 9], "get", 5))).to.equal(true);
    expect(accepts(unknown, call([2, 3], "get", 0))).to.equal(true);
  });

  it("findViolation() refuses a stale read and says where", () => {
    const stale = call([5, 6], "get", 0);
    const violation = findViolation(counterModel, [call([1, 2], { add: 1 }, 1), stale]);
    expect(violation).to.deep.equal({ key: "a", state: 1, explained: 1, stuck: [stale] });
  });

  it("findViolation() refuses reads that go back while the write is still under way", () => {
    const write = call([1, 9], { add: 1 }, 1);
    expect(accepts(write, call([2, 3], "get", 1), call([4, 5], "get", 0))).to.equal(false);
  });

  it("findViolation() refuses a lost update", () => {
    const both = [call([1, 5], { add: 1 }, 1), call([2, 6], { add: 1 }, 1)];
    expect(accepts(...both)).to.equal(false);
  });

  it("findViolation() refuses an increment that took effect twice", () => {
    expect(accepts(call([1, 2], { add: 1 }, 1), call([3, 4], "get", 2))).to.equal(false);
    const unknown = call([1, 0], { add: 1 });
    expect(accepts(unknown, call([3, 4], "get", 2))).to.equal(false);
  });

  it("findViolation() refuses an effect before its call", () => {
    expect(accepts(call([1, 2], "get", 1), call([3, 4], { add: 1 }, 1))).to.equal(false);
    expect(accepts(call([1, 2], "get", 5), call([3, 0], { add: 5 }))).to.equal(false);
  });

  it("findViolation() refuses an unknown outcome that was taken back", () => {
    const unknown = call([1, 0], { add: 5 });
    const reads = [call([2, 3], "get", 5), call([4, 5], "get", 0)];
    expect(accepts(unknown, ...reads)).to.equal(false);
  });

  it("findViolation() finds the order of long histories, and the one wrong output in them", () => {
    for (let seed = 1; seed <= 5; seed++) {
      const history = honestHistory(seed, 2_000, 8);
      expect(accepts(...history), `seed ${seed}`).to.equal(true);
      const known = history.filter(({ ended }) => ended);
      const { ended } = known[known.length >> 1] ?? {};
      if (ended) ended.output += 1_000;
      expect(accepts(...history), `seed ${seed}`).to.equal(false);
    }
  }).timeout(60_000);
});
