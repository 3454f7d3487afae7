import { expect } from "chai";
import { UnreadBytes } from "./unread-bytes.ts";

describe("unread bytes", () => {
  it("add() admits messages up to the limit of an account", () => {
    const unread = new UnreadBytes(100);
    const cut: string[] = [];
    unread.add("a", 60, () => cut.push("a1"));
    unread.add("a", 40, () => cut.push("a2"));
    expect(cut).to.deep.equal([]);
    expect(unread.of("a")).to.equal(100);
  });

  it("add() cuts off the clients that stopped reading first past the limit, and other accounts go on", () => {
    const unread = new UnreadBytes(100);
    const cut: string[] = [];
    unread.add("b", 90, () => cut.push("b1"));
    unread.add("a", 60, () => cut.push("a1"));
    unread.add("a", 40, () => cut.push("a2"));
    unread.add("a", 1, () => cut.push("a3"));
    expect(cut).to.deep.equal(["a1"]);
    expect([unread.of("a"), unread.of("b")]).to.deep.equal([41, 90]);
    unread.add("a", 90, () => cut.push("a4"));
    expect(cut).to.deep.equal(["a1", "a2"]);
    expect(unread.of("a")).to.equal(91);
  });

  it("add() keeps the newest message, also if it alone is past the limit", () => {
    const unread = new UnreadBytes(100);
    const cut: string[] = [];
    unread.add("a", 1, () => cut.push("a1"));
    unread.add("a", 101, () => cut.push("a2"));
    expect(cut).to.deep.equal(["a1"]);
  });

  it("a message that was read counts no more, also if it is removed twice", () => {
    const unread = new UnreadBytes(100);
    const cut: string[] = [];
    const read = unread.add("a", 100, () => cut.push("a1"));
    read();
    unread.add("a", 100, () => cut.push("a2"));
    read();
    expect([unread.of("a"), cut.length]).to.deep.equal([100, 0]);
  });
});
