import { expect } from "chai";
import {
  DEVTOOLS_ENDED_KEPT,
  DEVTOOLS_LAPSE_MS,
  DEVTOOLS_SESSIONS_MAX,
  LIVE_VIEWS_MAX,
} from "../../../schemas/rendering/devtools-limits.ts";
import { ActorInHand } from "../../../scripts/testing/actor-in-hand.ts";
import { devtoolsSessionsActor } from "./devtools-sessions.ts";

const HOUR_MS = 3_600_000;
const id = (number: number) => number.toString(16).padStart(32, "0");
const hash = (number: number) => number.toString(16).padStart(64, "0");

describe("devtools-sessions", () => {
  const inHand = () => new ActorInHand(devtoolsSessionsActor, id(0));
  let hand: ReturnType<typeof inHand>;
  beforeEach(() => {
    hand = inHand();
    hand.now = 1_000;
  });
  const open = (number: number) => hand.ask("open", { id: id(number), keepAliveMs: 60_000 });
  const end = (number: number) => hand.ask("end", { id: id(number), reason: "NormalClosure" });
  const running = () => hand.ask("list", {}).sessions.map((session) => session.id);

  it("open() takes DEVTOOLS_SESSIONS_MAX sessions, refuses one more, and takes it when one has ended", () => {
    for (let i = 0; i < DEVTOOLS_SESSIONS_MAX; i++) open(i);
    open(0);
    expect(() => open(99)).to.throw(`the account has ${DEVTOOLS_SESSIONS_MAX} already`);
    end(0);
    open(99);
    expect(running()).to.have.length(DEVTOOLS_SESSIONS_MAX);
  });

  it("end() keeps the first reason, and changes nothing for an unknown session", () => {
    open(1);
    hand.ask("end", { id: id(1), reason: "MemoryLimit" });
    hand.now += 5;
    end(1);
    expect(hand.ask("get", { id: id(1) }).ended).to.deep.equal({
      at: 1_000,
      reason: "MemoryLimit",
    });
    end(2);
    expect(() => hand.ask("get", { id: id(2) })).to.throw("Cannot find session");
  });

  it("a session that is not renewed ends with its worker after DEVTOOLS_LAPSE_MS, and stays so", () => {
    open(1);
    open(2);
    hand.now += DEVTOOLS_LAPSE_MS - 1;
    expect(hand.ask("renew", { id: id(1) })).to.deep.equal({ hasEnded: false });
    expect(running()).to.deep.equal([id(1), id(2)]);
    hand.now += 1;
    expect(running()).to.deep.equal([id(1)]);
    expect(hand.ask("renew", { id: id(2) })).to.deep.equal({ hasEnded: true });
    expect(hand.ask("get", { id: id(2) }).ended?.reason).to.equal("WorkerLost");
    expect(hand.ask("renew", { id: id(3) })).to.deep.equal({ hasEnded: true });
  });

  it("a session whose worker is dead ends after DEVTOOLS_LAPSE_MS although the clock was set back by hours", () => {
    hand.now += 100 * HOUR_MS;
    open(1);
    hand.now -= 3 * HOUR_MS;
    open(2);
    hand.now += DEVTOOLS_LAPSE_MS - 1;
    expect(running()).to.deep.equal([id(1), id(2)]);
    hand.now += 1;
    expect(running()).to.deep.equal([]);
  });

  it("sessions that a dead worker reported before the clock was set back take no place", () => {
    hand.now += 100 * HOUR_MS;
    for (let i = 1; i <= DEVTOOLS_SESSIONS_MAX; i++) open(i);
    hand.now -= 3 * HOUR_MS;
    open(9);
    expect(running()).to.include(id(9));
  });

  it("keeps the DEVTOOLS_ENDED_KEPT sessions that ended last", () => {
    for (let i = 0; i <= DEVTOOLS_ENDED_KEPT; i++) {
      open(i);
      hand.now += 1;
      end(i);
    }
    expect(() => hand.ask("get", { id: id(0) })).to.throw("Cannot find session");
    expect(hand.ask("get", { id: id(1) }).ended?.reason).to.equal("NormalClosure");
  });

  it("a live view is found until it expires or its session ends; LIVE_VIEWS_MAX are valid", () => {
    open(1);
    const view = (number: number, ms = 10_000) => ({
      ...{ hash: hash(number), targetId: "A", expiresAt: hand.now + ms },
    });
    const find = (number: number) =>
      hand.ask("findLiveView", { id: id(1), hash: hash(number) }).targetId;
    hand.ask("addLiveView", { id: id(1), view: view(0, 10) });
    hand.now += 9;
    expect(find(0)).to.equal("A");
    hand.now += 1;
    expect(() => find(0)).to.throw("unknown or has expired");
    for (let i = 1; i <= LIVE_VIEWS_MAX; i++) {
      hand.ask("addLiveView", { id: id(1), view: view(i) });
    }
    expect(find(1)).to.equal("A");
    hand.ask("addLiveView", { id: id(1), view: view(99) });
    expect(() => find(1)).to.throw("unknown or has expired");
    expect(find(99)).to.equal("A");
    end(1);
    expect(() => find(99)).to.throw("Cannot find session");
    expect(() => hand.ask("addLiveView", { id: id(1), view: view(5) })).to.throw("has ended");
  });
});
