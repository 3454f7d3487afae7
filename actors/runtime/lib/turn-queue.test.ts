import { expect } from "chai";
import { TurnQueue } from "./turn-queue.ts";

describe("TurnQueue", () => {
  const queueOf = (items: string) => {
    const queue = new TurnQueue<string, string>();
    for (const item of items.split(" ")) queue.push(item.charAt(0), item);
    return queue;
  };
  const drained = (queue: TurnQueue<string, string>) =>
    Array.from({ length: queue.size }, () => queue.shift()).join(" ");

  it("shift() serves one item of each owner in turn, the oldest first", () => {
    const queue = queueOf("a1 a2 a3 b1 c1 b2");
    expect(queue.size).to.equal(6);
    expect(drained(queue)).to.equal("a1 b1 c1 a2 b2 a3");
    expect([queue.shift(), queue.size]).to.deep.equal([undefined, 0]);
  });

  it("shift() serves an owner that came during a turn before the next turn of the same owner", () => {
    const queue = queueOf("a1 a2 a3");
    expect(queue.shift()).to.equal("a1");
    queue.push("b", "b1");
    expect(drained(queue)).to.equal("b1 a2 a3");
  });

  it("shift() puts an owner that comes back during its turn behind all others", () => {
    const queue = queueOf("a1 b1");
    expect(queue.shift()).to.equal("a1");
    queue.push("a", "a2");
    queue.push("c", "c1");
    expect(drained(queue)).to.equal("b1 c1 a2");
  });

  it("remove() takes out one item, and false means that it is not there", () => {
    const queue = queueOf("a1 a2 b1");
    expect([queue.remove("b", "b1"), queue.remove("b", "b1")]).to.deep.equal([true, false]);
    expect([queue.remove("a", "a1"), queue.remove("a", "b1")]).to.deep.equal([true, false]);
    expect(drained(queue)).to.equal("a2");
  });

  it("clear() returns all items", () => {
    const queue = queueOf("a1 b1 a2");
    expect(queue.clear()).to.deep.equal(["a1", "a2", "b1"]);
    expect([queue.size, queue.shift()]).to.deep.equal([0, undefined]);
  });
});
