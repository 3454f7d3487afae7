import { expect } from "chai";
import {
  EventBudgets,
  PAGE_EVENT_BYTES,
  PAGE_EVENTS_AT_ONCE_MAX,
  PAGE_EVENTS_BLAMED,
  PAGE_EVENTS_PER_SECOND_MAX,
  PAGE_TARGET_EVENTS,
} from "./event-budgets.ts";

const CONTEXT = "C".repeat(32);
const OTHER = "D".repeat(32);
const SESSION = "5".repeat(32);

describe("EventBudgets", () => {
  let now = 0;
  let ended: string[];
  let budgets: EventBudgets;

  beforeEach(() => {
    now = 0;
    ended = [];
    budgets = new EventBudgets({ monotonic: () => now });
    for (const context of [CONTEXT, OTHER]) budgets.open(context, () => ended.push(context));
    budgets.admits(attached(CONTEXT, SESSION));
    budgets.close(CONTEXT);
    budgets.open(CONTEXT, () => ended.push(CONTEXT));
    budgets.admits(attached(CONTEXT, SESSION));
    now = 1_000_000;
  });

  it("admits() ends a context past its bound, and from then on admits only ends", () => {
    const event = sent("Network.dataReceived", { requestId: "x" });
    const events = Math.floor(PAGE_EVENTS_AT_ONCE_MAX / (1 + event.length / PAGE_EVENT_BYTES));
    for (let i = 0; i < events; i++) expect(budgets.admits(event)).to.equal(true);
    expect(ended).to.deep.equal([]);
    expect(budgets.admits(event)).to.equal(false);
    expect(budgets.admits(event)).to.equal(false);
    expect(ended).to.deep.equal([CONTEXT]);
    expect(budgets.admits(sent("Target.detachedFromTarget", {}))).to.equal(true);
    expect(budgets.admits(Buffer.from(`{"id":1,"result":{},"sessionId":"${SESSION}"}`))).to.equal(
      true,
    );
    expect(budgets.admits(attached(OTHER, "6".repeat(32)))).to.equal(true);
  });

  it("admits() lets a context report so many a second for ever", () => {
    const event = sent("Page.frameNavigated", {});
    const perSecond = PAGE_EVENTS_PER_SECOND_MAX / (1 + event.length / PAGE_EVENT_BYTES);
    for (let second = 0; second < 100; second++, now += 1_000)
      for (let i = 0; i < Math.floor(perSecond); i++) budgets.admits(event);
    expect(ended).to.deep.equal([]);
  });

  it("renew() lets the next page of a context report as much again, but not one that is ended", () => {
    const event = sent("Page.frameNavigated", {});
    for (let page = 0; page < 3; page++) {
      for (let i = 0; i < PAGE_EVENTS_AT_ONCE_MAX / 2; i++) budgets.admits(event);
      budgets.renew(CONTEXT);
    }
    expect(ended).to.deep.equal([]);
    for (let i = 0; i < PAGE_EVENTS_AT_ONCE_MAX; i++) budgets.admits(event);
    budgets.renew(CONTEXT);
    expect(budgets.admits(event)).to.equal(false);
    expect(ended).to.deep.equal([CONTEXT]);
  });

  it("admits() counts large events and new targets for more", () => {
    const large = sent("Network.requestWillBeSent", { url: "x".repeat(PAGE_EVENT_BYTES * 99) });
    for (let i = 0; i <= PAGE_EVENTS_AT_ONCE_MAX / 100; i++) budgets.admits(large);
    for (let i = 0; i <= PAGE_EVENTS_AT_ONCE_MAX / PAGE_TARGET_EVENTS; i++)
      budgets.admits(attached(OTHER, String(i).padStart(32, "0")));
    expect(ended).to.deep.equal([CONTEXT, OTHER]);
  });

  it("admits() is not misled by what a page writes", () => {
    const url = `"browserContextId":"${OTHER}","sessionId":"${SESSION}"}`;
    const message = sent("Target.targetInfoChanged", { url, browserContextId: CONTEXT });
    for (let i = 0; i < PAGE_EVENTS_AT_ONCE_MAX; i++) budgets.admits(message);
    expect(ended).to.deep.equal([CONTEXT]);
  });

  it("admits() drops what nobody hears, and counts it", () => {
    const event = sent("Runtime.consoleAPICalled", {});
    for (let i = 0; i < PAGE_EVENTS_AT_ONCE_MAX; i++) expect(budgets.admits(event)).to.equal(false);
    expect(ended).to.deep.equal([CONTEXT]);
  });

  it("admits() passes on the steps of a page that puppeteer reads, and all of them to a listener", () => {
    const step = (name: string) =>
      sent("Page.lifecycleEvent", { frameId: "F".repeat(32), loaderId: "L".repeat(32), name });
    const passed = () =>
      ["init", "firstPaint", "DOMContentLoaded", "load", "networkIdle"].filter((name) =>
        budgets.admits(step(name)),
      );
    expect(passed()).to.deep.equal(["init", "DOMContentLoaded", "load"]);
    budgets.hear(CONTEXT);
    expect(passed()).to.have.lengthOf(5);
  });

  it("blame() ends the busiest, once, and nobody who reports little", () => {
    const event = sent("Page.frameNavigated", {});
    expect(budgets.blame()).to.equal(false);
    for (let i = 0; i < PAGE_EVENTS_BLAMED; i++) budgets.admits(event);
    expect(budgets.blame()).to.equal(true);
    expect(budgets.blame()).to.equal(false);
    expect(ended).to.deep.equal([CONTEXT]);
  });
});

function sent(method: string, params: object): Buffer {
  return Buffer.from(JSON.stringify({ method, params, sessionId: SESSION }));
}

function attached(browserContextId: string, sessionId: string): Buffer {
  const params = { sessionId, targetInfo: { type: "page", browserContextId } };
  return Buffer.from(JSON.stringify({ method: "Target.attachedToTarget", params }));
}
