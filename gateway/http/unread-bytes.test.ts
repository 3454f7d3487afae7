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

  it("hold() counts content that several clients hold one time, until none holds it", () => {
    const unread = new UnreadBytes(100);
    const cut: string[] = [];
    const [one, other] = ["one", "other"].map((name) => unread.client("a", () => cut.push(name)));
    const shared = new Uint8Array(60);
    const releases = [one?.hold(1, shared), other?.hold(1, shared)];
    expect(unread.of("a")).to.equal(62);
    releases[0]?.();
    expect(unread.of("a")).to.equal(61);
    releases[1]?.();
    expect([unread.of("a"), cut.length]).to.deep.equal([0, 0]);
  });

  it("hold() cuts off all who hold content, if only that gets below the limit", () => {
    const unread = new UnreadBytes(100);
    const cut: string[] = [];
    const shared = new Uint8Array(60);
    for (const name of ["one", "two"]) unread.client("a", () => cut.push(name)).hold(1, shared);
    unread.client("a", () => cut.push("three")).hold(60);
    expect(cut).to.deep.equal(["one", "two"]);
    expect(unread.of("a")).to.equal(60);
  });

  it("hold() spares a client that has read something since, and counts nothing of one that is cut off", () => {
    const unread = new UnreadBytes(100);
    const cut: string[] = [];
    const slow = unread.client("a", () => cut.push("slow"));
    const read = slow.hold(40);
    slow.hold(20);
    const silent = unread.client("a", () => cut.push("silent"));
    const release = silent.hold(40);
    read();
    unread.client("a", () => cut.push("new")).hold(50);
    expect(cut).to.deep.equal(["silent"]);
    release();
    silent.hold(1_000);
    expect(unread.of("a")).to.equal(70);
  });
});
