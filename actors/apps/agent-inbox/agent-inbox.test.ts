import { expect } from "chai";
import type { AgentDelivery } from "../../../schemas/apps/agent.ts";
import {
  AGENT_ROOM_BYTES,
  DELIVERIES_SCANNED_MAX,
  DELIVERIES_TOGETHER_MAX,
  DELIVERIES_TRIMMED_AT_ONCE,
  EVENT_IDS_KEPT_MS,
  EVENT_REQUEST_CHARS_MAX,
  EVENT_ROWS_BYTES_MAX,
  EVENTS_WAITING_MAX,
  REPLAYS_WAITING_MAX,
} from "../../../schemas/apps/limits.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { EVENT_INLINE_TOTAL_BYTES_MAX } from "./agent-inbox.ts";
import { eventOf, INBOX_KEY, Inbox } from "./testing/inbox.ts";
import {
  DELIVERIES_TOGETHER_CHARS_MAX,
  DELIVERY_ANSWER_MS_MAX,
  DELIVERY_PAUSES_MS,
  DELIVERY_TRIES_MAX,
} from "./turns.ts";

const DAY_MS = 86_400_000;

describe("agent-inbox", () => {
  let inbox: Inbox;
  beforeEach(() => {
    inbox = new Inbox();
  });

  describe("receive()", () => {
    it("receive() sends the first event at once, and each next one when the one before has ended", () => {
      for (const id of ["a", "b", "c"]) {
        expect(inbox.receive(id)).to.include({ isNew: true, isHeavy: false });
      }
      const seen: unknown[] = [];
      for (let i = 0; i < 3; i++) {
        const [delivery, ...others] = inbox.answer();
        expect(others).to.deep.equal([]);
        seen.push(delivery?.request.body);
      }
      expect(inbox.answer()).to.deep.equal([]);
      expect(seen).to.deep.equal(
        ["a", "b", "c"].map((eventId) => ({ text: JSON.stringify({ eventId }) })),
      );
      const { deliveries, waiting } = inbox.ask("list", { limit: 10 });
      expect(waiting).to.equal(0);
      expect(deliveries.map(({ number, status, attempts }) => [number, status, attempts]))
        .to.deep // newest first
        .equal([3, 2, 1].map((number) => [number, "delivered", 1]));
    });

    it("receive() knows an event for EVENT_IDS_KEPT_MS, and takes it once more after that", () => {
      expect(inbox.receive("a")).to.include({ isNew: true, number: 1 });
      inbox.answer();
      const { state } = inbox;
      expect(inbox.receive("a")).to.include({ isNew: false, number: 1 });
      expect(inbox.state).to.equal(state);
      inbox.now += EVENT_IDS_KEPT_MS;
      expect(inbox.receive("a")).to.include({ isNew: false, number: 1 });
      inbox.now += DAY_MS;
      expect(inbox.receive("a")).to.include({ isNew: true, number: 2 });
    });

    it("receive() recognises an event that the log no longer keeps, and distinguishes sources", () => {
      const keep = { days: 1, count: 1 };
      for (const id of ["a", "b", "c"]) {
        inbox.receive(id, { keep });
        inbox.answer();
      }
      expect(inbox.ask("list", { limit: 10 }).deliveries).to.have.length(1);
      expect(inbox.receive("a", { keep })).to.include({ isNew: false, number: 1 });
      expect(inbox.receive("a", { keep, source: "stripe" })).to.include({ isNew: true });
    });

    it("receive() knows an event that an earlier version stored, if the same endpoint received it", () => {
      const stored = (eventId: string, path: string, keep = { days: 30, count: 10_000 }) => {
        const { request } = eventOf(eventId);
        const url = `http://app.test${path}`;
        return inbox.receive(eventId, { source: "hmac", request: { ...request, url }, keep });
      };
      const received = (eventId: string, path: string) => {
        const endpoint = { path, isOnlyOne: true };
        return inbox.receive(eventId, { source: "hmac", endpoint });
      };
      stored("a", "/billing");
      stored("b", "/hooks/c%207/in/?test=1");
      expect(received("a", "/billing")).to.include({ isNew: false, number: 1 });
      expect(received("b", "/hooks/:entity/in")).to.include({ isNew: false, number: 2 });
      // The endpoint that received these events was removed.
      expect(received("a", "/shipping")).to.include({ isNew: true });
      expect(received("b", "/hooks/in")).to.include({ isNew: true });
      expect(received("a", "/shipping")).to.include({ isNew: false });
      // The log no longer keeps the event, so its endpoint is unknown.
      const { number } = stored("c", "/billing");
      stored("d", "/billing", { days: 1, count: 1 });
      while (inbox.answer().length > 0);
      inbox.remind("trim");
      expect(inbox.rows.has(`request/${number}`)).to.equal(false);
      expect(received("c", "/shipping")).to.include({ isNew: false, number });
    });

    it("receive() takes EVENTS_WAITING_MAX and refuses the next with a time, but of a repeat", () => {
      inbox.state = {
        ...inbox.state,
        next: EVENTS_WAITING_MAX,
        waiting: [[1, EVENTS_WAITING_MAX - 1]],
        turn: { number: 1, attempt: 1, sentAt: inbox.now },
      };
      inbox.rows.set("event/1", {
        ...{ row: "event", id: "f".repeat(32), eventId: "x", source: "github", bodyBytes: 0 },
        ...{ receivedAt: inbox.now, inlineBytes: 0, attempts: 0, replays: 0 },
      });
      expect(inbox.receive("last")).to.include({ isNew: true, number: EVENTS_WAITING_MAX });
      const { code, details } = refusal(() => inbox.receive("more"));
      expect(code).to.equal("queue_full");
      expect(details.retryAfterS).to.be.greaterThan(0);
      expect(inbox.receive("last")).to.include({ isNew: false });
    });

    it("receive() takes a request of EVENT_REQUEST_CHARS_MAX, and refuses a longer one", () => {
      const request = (chars: number) => {
        const headers = [["x", ""]] as [string, string][];
        const bare = { method: "POST", url: "http://a/", headers };
        const rest = JSON.stringify(bare).length;
        return { ...bare, headers: [["x", "y".repeat(chars - rest)]] as [string, string][] };
      };
      inbox.receive("a", { request: request(EVENT_REQUEST_CHARS_MAX) });
      const { code } = refusal(() =>
        inbox.receive("b", { request: request(EVENT_REQUEST_CHARS_MAX + 1) }),
      );
      expect(code).to.equal("body_too_large");
    });

    it("receive() says when its rows hold enough, and no more when they hold less", () => {
      const headers = [["x", "y".repeat(60_000)]] as [string, string][];
      const request = { method: "POST", url: "http://a/", headers };
      const keep = { days: 30, count: 200 };
      let isHeavy = false;
      let count = 0;
      for (; !isHeavy; count++) {
        ({ isHeavy } = inbox.receive(`big ${count}`, { request, keep }));
        inbox.answer();
      }
      expect(count).to.equal(Math.floor(EVENT_INLINE_TOTAL_BYTES_MAX / 60_075) + 1);
      for (let i = 0; i < 200; i++) {
        ({ isHeavy } = inbox.receive(`small ${i}`, { keep }));
        inbox.answer();
      }
      expect(isHeavy).to.equal(false);
    });

    it("receive() keeps EVENT_ROWS_BYTES_MAX of requests, the newest, whatever number is to be kept", () => {
      const headers = [["x", "y".repeat(60_000)]] as [string, string][];
      const request = { method: "POST", url: "http://a/", headers };
      const keep = { days: 30, count: 100_000 };
      const count = Math.ceil(EVENT_ROWS_BYTES_MAX / 60_000) + 10;
      for (let i = 0; i < count; i++) {
        inbox.receive(`big ${i}`, { request, keep });
        inbox.answer();
      }
      expect(inbox.state.inlineBytes).to.be.within(
        EVENT_ROWS_BYTES_MAX - 61_000,
        EVENT_ROWS_BYTES_MAX,
      );
      expect(inbox.ask("list", { limit: 1 }).deliveries[0]?.number).to.equal(count);
    });

    it("receive() refuses what exceeds EVENT_ROWS_BYTES_MAX while all events wait, with a time", () => {
      const headers = [["x", "y".repeat(60_000)]] as [string, string][];
      const request = { method: "POST", url: "http://a/", headers };
      const bytes = JSON.stringify(request).length;
      inbox.receive("first", { request });
      inbox.state = { ...inbox.state, waitingBytes: EVENT_ROWS_BYTES_MAX - bytes };
      expect(inbox.receive("last", { request })).to.include({ isNew: true });
      const { code, details, message } = refusal(() => inbox.receive("more", { request }));
      expect(code).to.equal("queue_full");
      expect(message).to.equal("Cannot take event: events of 64 MB wait for this agent");
      expect(details.retryAfterS).to.be.greaterThan(0);
    });

    it("receive() takes new events while the oldest of a full log waits for its replay", () => {
      inbox.receive("first");
      inbox.answer();
      inbox.state = { ...inbox.state, inlineBytes: EVENT_ROWS_BYTES_MAX };
      expect(inbox.ask("replay", { from: 1, to: 1 })).to.deep.equal({ replayed: 1 });
      expect(inbox.receive("second")).to.include({ isNew: true });
      inbox.answer();
      inbox.answer();
      expect(inbox.state.waitingBytes).to.equal(0);
    });

    it("happened() does as receive() does, once", () => {
      for (let i = 0; i < 2; i++) {
        inbox.ask("happened", {
          ...{ source: "artifacts", eventId: "1", bodyBytes: 0, keep: { days: 1, count: 1 } },
          request: { method: "POST", url: "http://a/", headers: [] },
        });
      }
      expect(inbox.deliveries()).to.have.length(1);
      expect(inbox.ask("list", { limit: 10 }).deliveries).to.have.length(1);
    });
  });

  describe("delivered()", () => {
    it("delivered() retries a failed event after growing pauses under one id, then gives it up", () => {
      inbox.receive("a");
      inbox.receive("b");
      const ids = new Set<string>();
      for (let attempt = 1; attempt <= DELIVERY_TRIES_MAX; attempt++) {
        const [delivery, ...others] = inbox.deliveries();
        expect(others).to.deep.equal([]);
        expect(delivery?.attempt).to.equal(attempt);
        ids.add(delivery?.id ?? "");
        const result = { id: delivery?.id ?? "", attempt, error: `failed ${attempt}` };
        inbox.ask("delivered", result);
        // The same message twice.
        inbox.ask("delivered", result);
        if (attempt === DELIVERY_TRIES_MAX) break;
        const at = inbox.now + (DELIVERY_PAUSES_MS[attempt - 1] ?? 0);
        expect(inbox.entry(1)).to.include({
          ...{ status: "waiting", attempts: attempt, nextAttemptAt: at },
          error: `failed ${attempt}`,
        });
        expect(inbox.deliveries()).to.deep.equal([]);
        inbox.untilNextTry();
        expect(inbox.now).to.equal(at);
      }
      expect(ids.size).to.equal(1);
      expect(inbox.entry(1)).to.include({
        ...{ status: "failed", attempts: DELIVERY_TRIES_MAX },
        error: `failed ${DELIVERY_TRIES_MAX}`,
      });
      const [next] = inbox.answer();
      expect(next?.request.body).to.deep.equal({ text: '{"eventId":"b"}' });
      expect(inbox.entry(2)).to.include({ status: "delivered" });
      const failed = inbox.ask("list", { limit: 10, status: "failed" });
      expect(failed.deliveries.map(({ number }) => number)).to.deep.equal([1]);
    });

    it("delivered() that failed is tried again after its pause, although the clock was set back by hours", () => {
      inbox.receive("a");
      for (const pause of DELIVERY_PAUSES_MS.slice(0, 2)) {
        inbox.answer(500);
        inbox.setClock(-3 * 3_600_000);
        const start = inbox.now;
        inbox.untilNextTry();
        expect(inbox.now - start).to.equal(pause);
      }
      // The attempt gets no answer.
      inbox.deliveries();
      inbox.setClock(-3 * 3_600_000);
      const start = inbox.now;
      inbox.untilNextTry();
      expect(inbox.now - start).to.equal(DELIVERY_ANSWER_MS_MAX + (DELIVERY_PAUSES_MS[2] ?? 0));
    });

    it("delivered() takes any answer that is not 2xx for a failure, and keeps its status", () => {
      for (const [index, status] of [199, 300, 404, 500].entries()) {
        inbox.receive(String(index));
        inbox.answer(status);
        expect(inbox.entry(index + 1)).to.include({ status: "waiting", answerStatus: status });
        inbox.untilNextTry();
        inbox.answer(204);
        const entry = inbox.entry(index + 1);
        expect(entry).to.include({ status: "delivered", answerStatus: 204, attempts: 2 });
        expect(entry).to.not.have.property("error");
      }
    });

    it("delivered() that comes late ends the turn if the agent took it, and is of no use after it", () => {
      inbox.receive("a");
      const [first] = inbox.deliveries();
      inbox.remind("resume");
      expect(inbox.now).to.be.at.least(DELIVERY_ANSWER_MS_MAX);
      expect(inbox.entry(1).error).to.include("in time");
      const late = { id: first?.id ?? "", attempt: 1 };
      const { state } = inbox;
      inbox.ask("delivered", { ...late, error: "late" });
      expect(inbox.state).to.equal(state);
      inbox.ask("delivered", { ...late, status: 200 });
      expect(inbox.entry(1)).to.include({ status: "delivered", attempts: 1 });
      const ended = inbox.state;
      inbox.ask("delivered", { ...late, attempt: 2, status: 500 });
      inbox.ask("delivered", { ...late, status: 200 });
      expect(inbox.state).to.equal(ended);
      inbox.remind("resume");
      expect(inbox.deliveries()).to.deep.equal([]);
    });

    it("settle() does the same for a waiting host, also when it arrives twice", () => {
      inbox.receive("a");
      inbox.receive("b");
      const [first] = inbox.deliveries();
      const taken = { id: first?.id ?? "", attempt: 1, status: 200 };
      expect(inbox.ask("settle", taken)).to.deep.equal({ hasNext: false });
      expect(inbox.entry(1)).to.include({ status: "delivered", attempts: 1 });
      const ended = inbox.state;
      expect(inbox.ask("settle", taken)).to.deep.equal({ hasNext: false });
      inbox.ask("delivered", taken);
      expect(inbox.state).to.equal(ended);
      expect(inbox.deliveries()[0]).to.include({ attempt: 1 });
    });

    it("delivered() to an inbox that knows nothing of it changes nothing", () => {
      inbox.ask("delivered", { id: "1", attempt: 1, status: 200 });
      expect(inbox.state.next).to.equal(1);
    });

    it("resume() that comes too early is set again, and sends nothing", () => {
      inbox.receive("a");
      inbox.deliveries();
      inbox.ask("resume", {});
      expect(inbox.deliveries()).to.deep.equal([]);
      expect(inbox.reminders.get("resume")).to.equal(inbox.now + DELIVERY_ANSWER_MS_MAX);
    });
  });

  describe("settle() of a host that takes the next delivery itself", () => {
    const settle = (status: number, takesNext = true) => {
      const { deliveries } = inbox.ask("current", {});
      const { id = "", attempt = 1 } = deliveries[0] ?? {};
      return inbox.ask("settle", { id, attempt, status, takesNext });
    };
    const told = () => inbox.sent.splice(0).filter(({ kind }) => kind === "agent").length;

    it("begins the next turn without mail, and says that there is one", () => {
      for (const id of ["a", "b"]) inbox.receive(id);
      expect(told()).to.equal(1);
      expect(inbox.ask("current", {}).waiting).to.equal(1);
      expect(settle(200)).to.deep.equal({ hasNext: true });
      expect(told()).to.equal(0);
      const [next] = inbox.ask("current", {}).deliveries;
      expect(next?.request.body).to.deep.equal({ text: JSON.stringify({ eventId: "b" }) });
      expect(settle(200)).to.deep.equal({ hasNext: false });
      expect(inbox.ask("current", {})).to.deep.equal({ deliveries: [], waiting: 0 });
      inbox.receive("c");
      expect(told()).to.equal(1);
    });

    it("returns no delivery while the next try is not due, and sends mail when it is", () => {
      inbox.receive("a");
      expect(told()).to.equal(1);
      expect(settle(500)).to.deep.equal({ hasNext: false });
      expect(inbox.ask("current", {})).to.deep.equal({ deliveries: [], waiting: 1 });
      inbox.untilNextTry();
      expect(told()).to.equal(1);
      expect(inbox.ask("current", {}).deliveries[0]).to.include({ attempt: 2 });
    });

    it("sends mail for the next delivery when the host gives way", () => {
      for (const id of ["a", "b"]) inbox.receive(id);
      expect(told()).to.equal(1);
      expect(settle(200, false)).to.deep.equal({ hasNext: false });
      expect(told()).to.equal(1);
      expect(inbox.ask("current", {}).deliveries).to.have.length(1);
    });

    it("reports a turn that began at a host that has lost the agent", () => {
      for (const id of ["a", "b"]) inbox.receive(id);
      const [first] = inbox.deliveries();
      const answer = { id: first?.id ?? "", attempt: 1, status: 200 };
      expect(inbox.ask("settle", { ...answer, takesNext: true })).to.deep.equal({ hasNext: true });
      expect(told()).to.equal(0);
      expect(inbox.ask("settle", { ...answer, takesNext: false })).to.deep.equal({
        hasNext: false,
      });
      expect(told()).to.equal(1);
    });

    it("is reported again by mail if nobody knows whether the report arrived", () => {
      for (const id of ["a", "b"]) inbox.receive(id);
      const [first] = inbox.deliveries();
      const answer = { id: first?.id ?? "", attempt: 1, status: 200 };
      expect(inbox.ask("settle", { ...answer, takesNext: true })).to.deep.equal({ hasNext: true });
      expect(told()).to.equal(0);
      inbox.ask("delivered", answer);
      expect(told()).to.equal(1);
      expect(settle(200)).to.deep.equal({ hasNext: false });
      inbox.ask("delivered", answer);
      expect(told()).to.equal(0);
    });
  });

  describe("events that wait while the agent is behind", () => {
    const receiveAll = (count: number, fields = {}) => {
      for (let i = 0; i < count; i++) inbox.receive(`${i}`, fields);
    };
    const idsOf = (mail: readonly AgentDelivery[] = []) =>
      mail.map(({ request }) => JSON.parse((request.body as { text: string }).text).eventId);
    const statusesOf = (count: number) =>
      Array.from({ length: count }, (_, index) => inbox.entry(index + 1).status);

    it("go together, DELIVERIES_TOGETHER_MAX and no more at a time, in their order", () => {
      receiveAll(DELIVERIES_TOGETHER_MAX + 2);
      const seen: string[][] = [];
      for (let [mail] = inbox.rounds(); mail; [mail] = inbox.rounds()) {
        seen.push(idsOf(mail));
        inbox.now += 1;
        inbox.settle(
          mail,
          mail.map(() => 200),
        );
      }
      const all = Array.from({ length: DELIVERIES_TOGETHER_MAX + 2 }, (_, index) => `${index}`);
      expect(seen).to.deep.equal([
        ["0"],
        all.slice(1, DELIVERIES_TOGETHER_MAX + 1),
        all.slice(DELIVERIES_TOGETHER_MAX + 1),
      ]);
      expect(new Set(statusesOf(all.length))).to.deep.equal(new Set(["delivered"]));
      expect(inbox.entry(3)).to.include({ attempts: 1, answerStatus: 200 });
      expect(inbox.entry(3)).to.have.property("lastAttemptAt");
    });

    it("go together up to DELIVERIES_TOGETHER_CHARS_MAX, and with a body in a blob alone", () => {
      const body = { text: JSON.stringify({ eventId: "x" }) };
      const bare = { method: "POST", url: "/", headers: [["x", ""]] as [string, string][], body };
      const room = DELIVERIES_TOGETHER_CHARS_MAX / 2 - JSON.stringify(bare).length;
      const request = (more: number) => ({
        ...bare,
        headers: [["x", "y".repeat(room + more)]] as [string, string][],
      });
      inbox.receive("first");
      for (const more of [0, 0, 0, 1]) inbox.receive(`${inbox.now++}`, { request: request(more) });
      const blob = { ...bare, body: { blob: "app.a.b.1" } };
      for (const id of ["blob", "last"]) inbox.receive(id, { request: blob });
      const sizes: number[] = [];
      for (let [mail] = inbox.rounds(); mail; [mail] = inbox.rounds()) {
        sizes.push(mail.length);
        inbox.settle(
          mail,
          mail.map(() => 200),
        );
      }
      expect(sizes).to.deep.equal([1, 2, 1, 1, 1, 1]);
    });

    it("wait for the one that failed, and those that were not begun are sent again", () => {
      receiveAll(6);
      inbox.settle(inbox.rounds()[0] ?? [], [200]);
      const [mail] = inbox.rounds();
      expect(idsOf(mail)).to.deep.equal(["1", "2", "3", "4", "5"]);
      inbox.settle(mail ?? [], [200, 200, 500]);
      expect(statusesOf(4)).to.deep.equal(["delivered", "delivered", "delivered", "waiting"]);
      expect(inbox.entry(4)).to.include({ attempts: 1, answerStatus: 500 });
      expect(inbox.rounds()).to.deep.equal([]);
      // The same message twice.
      inbox.settle(mail ?? [], [200, 200, 500]);
      expect(inbox.entry(4)).to.include({ attempts: 1, status: "waiting" });
      inbox.untilNextTry();
      const [again] = inbox.rounds();
      expect(idsOf(again)).to.deep.equal(["3"]);
      expect(again?.[0]).to.include({ id: mail?.[2]?.id, attempt: 2 });
      inbox.settle(again ?? [], [200]);
      const [rest] = inbox.rounds();
      expect(idsOf(rest)).to.deep.equal(["4", "5"]);
      expect(rest?.map(({ id }) => id)).to.deep.equal(mail?.slice(3).map(({ id }) => id));
      // The first delivery used the round's time, so the others were not begun.
      inbox.settle(rest ?? [], [200]);
      expect(idsOf(inbox.rounds()[0])).to.deep.equal(["5"]);
      // More than were sent, and too late.
      inbox.settle(rest ?? [], [200, 200]);
      expect(inbox.entry(6).status).to.equal("waiting");
    });

    for (const place of [0, 1, 2, 3]) {
      it(`are cut by a failure at each place, here ${place}: earlier ones have ended, later ones follow`, () => {
        receiveAll(5);
        inbox.settle(inbox.rounds()[0] ?? [], [200]);
        const [mail = []] = inbox.rounds();
        inbox.settle(mail, [...Array.from({ length: place }, () => 200), 500]);
        for (let attempt = 2; attempt <= DELIVERY_TRIES_MAX; attempt++) {
          expect(inbox.rounds()).to.deep.equal([]);
          inbox.untilNextTry();
          const [again = []] = inbox.rounds();
          expect(again.map(({ id }) => id)).to.deep.equal([mail[place]?.id]);
          expect(again[0]?.attempt).to.equal(attempt);
          inbox.settle(again, [500]);
        }
        const rest = inbox.rounds()[0] ?? [];
        expect(rest.map(({ id }) => id)).to.deep.equal(mail.slice(place + 1).map(({ id }) => id));
        inbox.settle(
          rest,
          rest.map(() => 204),
        );
        const attempts = Array.from({ length: 5 }, (_, index) => inbox.entry(index + 1).attempts);
        expect(attempts).to.deep.equal(
          [0, 1, 2, 3, 4].map((at) => (at === place + 1 ? DELIVERY_TRIES_MAX : 1)),
        );
        expect(statusesOf(5).indexOf("failed")).to.equal(place + 1);
        expect(inbox.ask("list", { limit: 10 }).waiting).to.equal(0);
      });
    }

    it("whose answer is overdue count against the first alone, which one that comes late ends", () => {
      receiveAll(4);
      inbox.settle(inbox.rounds()[0] ?? [], [200]);
      const [mail = []] = inbox.rounds();
      inbox.now += DELIVERY_ANSWER_MS_MAX;
      inbox.remind("resume");
      expect(inbox.entry(2)).to.include({ attempts: 1, error: "The agent did not answer in time" });
      expect(inbox.entry(3)).to.include({ attempts: 0, status: "waiting" });
      inbox.settle(mail, [200, 500]);
      expect(inbox.entry(2)).to.include({ status: "delivered", attempts: 1 });
      // Outcomes for other deliveries arrive too late. Those deliveries are repeated, and the agent recognizes
      // duplicates.
      expect(inbox.entry(3)).to.include({ status: "waiting" });
      const [rest = []] = inbox.rounds();
      expect(rest.map(({ id, attempt }) => [id, attempt])).to.deep.equal(
        mail.slice(1).map(({ id }) => [id, 1]),
      );
      expect(inbox.rounds()).to.deep.equal([]);
    });

    it("are not doubled by a replay between them and their answer", () => {
      receiveAll(1);
      inbox.answer();
      for (const id of ["a", "b", "c"]) inbox.receive(id);
      inbox.answer();
      const [mail] = inbox.rounds();
      expect(mail).to.have.length(2);
      inbox.ask("replay", { from: 1, to: 1 });
      inbox.settle(mail ?? [], [200, 200]);
      expect(statusesOf(4)).to.deep.equal(["waiting", "delivered", "delivered", "delivered"]);
      expect(inbox.answer().map(({ id }) => id.endsWith(".1"))).to.deep.equal([true]);
      expect(inbox.ask("list", { limit: 10 }).waiting).to.equal(0);
    });
  });

  describe("replay()", () => {
    const receiveAll = (count: number) => {
      for (let i = 0; i < count; i++) {
        inbox.receive(`event ${i}`);
        inbox.answer();
      }
    };

    it("replay() delivers a range again in the order of arrival, as other deliveries", () => {
      receiveAll(5);
      expect(inbox.ask("replay", { from: 2, to: 4 })).to.deep.equal({ replayed: 3 });
      // Once more while they wait.
      expect(inbox.ask("replay", { from: 2, to: 4 })).to.deep.equal({ replayed: 0 });
      expect(inbox.ask("list", { limit: 10, status: "waiting" }).deliveries).to.have.length(3);
      const numbers: unknown[] = [];
      for (let i = 0; i < 3; i++) {
        const [delivery] = inbox.answer();
        expect(delivery?.id).to.match(/^[0-9a-f]{32}\.1$/);
        expect(delivery?.attempt).to.equal(1);
        numbers.push(delivery?.request.body);
      }
      expect(numbers).to.deep.equal(
        [1, 2, 3].map((i) => ({ text: JSON.stringify({ eventId: `event ${i}` }) })),
      );
      expect(inbox.entry(3)).to.include({ status: "delivered", replays: 1, attempts: 1 });
      expect(inbox.entry(1)).to.include({ replays: 0 });
    });

    it("replay() takes only failed events, or those of a time, and no waiting ones", () => {
      receiveAll(2);
      inbox.now += 1_000;
      const from = inbox.now;
      inbox.receive("fails");
      inbox.answer(500);
      expect(inbox.ask("replay", { status: "failed" })).to.deep.equal({ replayed: 0 });
      for (let tries = 2; tries <= DELIVERY_TRIES_MAX; tries++) {
        inbox.untilNextTry();
        inbox.answer(500);
      }
      expect(inbox.ask("replay", { status: "failed", to: 2 })).to.deep.equal({ replayed: 0 });
      expect(inbox.ask("replay", { receivedTo: from - 1, status: "failed" })).to.deep.equal({
        replayed: 0,
      });
      expect(inbox.ask("replay", { receivedFrom: from })).to.deep.equal({ replayed: 1 });
      expect(inbox.answer()).to.have.length(1);
      expect(inbox.entry(3)).to.include({ status: "delivered" });
    });

    it("replay() of one event comes before waiting ones, and after the current one", () => {
      receiveAll(1);
      inbox.receive("second");
      inbox.receive("third");
      inbox.ask("replay", { from: 1, to: 1 });
      const order = [1, 2, 3].flatMap(() => inbox.answer().map(({ request }) => request.body));
      expect(order).to.deep.equal(
        ["second", "event 0", "third"].map((eventId) => ({ text: JSON.stringify({ eventId }) })),
      );
    });

    it("replay() takes REPLAYS_WAITING_MAX and refuses one more", () => {
      const row = inbox.rows;
      for (let number = 1; number <= REPLAYS_WAITING_MAX + 1; number++) {
        row.set(`event/${number}`, {
          ...{ row: "event", id: "f".repeat(32), eventId: "x", source: "github", bodyBytes: 0 },
          ...{ receivedAt: inbox.now, inlineBytes: 0, attempts: 1, replays: 0, ended: "delivered" },
        });
      }
      row.set("request/1", { row: "request", request: { method: "POST", url: "/", headers: [] } });
      inbox.state = { ...inbox.state, next: REPLAYS_WAITING_MAX + 2 };
      expect(refusal(() => inbox.ask("replay", {})).code).to.equal("queue_full");
      expect(inbox.ask("replay", { to: REPLAYS_WAITING_MAX })).to.deep.equal({
        replayed: REPLAYS_WAITING_MAX,
      });
    });
  });

  describe("find()", () => {
    /** Fills the log with ended events, of which every third has failed. */
    const fill = (count: number) => {
      for (let number = 1; number <= count; number++) {
        const ended = number % 3 === 0 ? "failed" : "delivered";
        inbox.rows.set(`event/${number}`, {
          ...{ row: "event", id: "f".repeat(32), eventId: "x", source: "github", bodyBytes: 0 },
          ...{ receivedAt: inbox.now, inlineBytes: 0, attempts: 1, replays: 0, ended },
        });
      }
      inbox.state = { ...inbox.state, next: count + 1 };
    };

    it("find() examines DELIVERIES_SCANNED_MAX events, and says where to go on", () => {
      fill(DELIVERIES_SCANNED_MAX + 2);
      const read = new Set<string>();
      const { get } = inbox.rows;
      inbox.rows.get = (row) => {
        read.add(row);
        return get.call(inbox.rows, row);
      };
      const { runs, next } = inbox.ask("find", { status: "delivered" });
      expect(read.size).to.equal(DELIVERIES_SCANNED_MAX);
      expect(runs.slice(0, 2)).to.deep.equal([
        [1, 2],
        [4, 5],
      ]);
      expect(next).to.equal(DELIVERIES_SCANNED_MAX + 1);
      expect(inbox.ask("find", { status: "failed", from: next })).to.deep.equal({
        runs: [[DELIVERIES_SCANNED_MAX + 1, DELIVERIES_SCANNED_MAX + 1]],
      });
    });

    it("replay() of found numbers examines only these, and takes those that still fit", () => {
      fill(9);
      const request = { method: "POST", url: "/", headers: [] };
      inbox.rows.set("request/3", { row: "request", request });
      inbox.rows.delete("event/4");
      const numbers: [number, number][] = [
        [2, 3],
        [5, 6],
        [12, 12],
      ];
      expect(inbox.ask("replay", { status: "failed", numbers })).to.deep.equal({ replayed: 2 });
      expect(inbox.ask("replay", { status: "failed", numbers })).to.deep.equal({ replayed: 0 });
      expect(inbox.ask("find", { status: "failed", from: 5 })).to.deep.equal({ runs: [[9, 9]] });
    });
  });

  describe("retention", () => {
    it("receive() lets go of the oldest past the number that is kept, with their blobs", () => {
      const keep = { days: 30, count: 2 };
      for (let i = 1; i <= 4; i++) {
        const request = { method: "POST", url: "/", headers: [], body: { blob: `app.a.b.${i}` } };
        inbox.receive(`event ${i}`, { keep, request });
        inbox.answer();
      }
      expect(inbox.ask("list", { limit: 10 }).deliveries.map(({ number }) => number)) // the rest
        .to.deep.equal([4, 3]);
      expect(refusal(() => inbox.entry(2)).code).to.equal("not_found");
      expect(refusal(() => inbox.entry(5)).code).to.equal("not_found");
      const purges = inbox.sent.filter(({ message }) => message === "purge");
      expect(purges.map(({ message, input }) => [message, input])).to.deep.equal([
        ["purge", { blobs: ["app.a.b.1"] }],
        ["purge", { blobs: ["app.a.b.2"] }],
      ]);
      expect([...inbox.rows.keys()].filter((row) => row.startsWith("request/"))).to.have.length(2);
    });

    it("receive() reports the first bytes and large changes to the account, and trim() when no id is left", () => {
      const keep = { days: 1, count: 2 };
      const told = () =>
        inbox.sent.filter(({ message }) => message === "stored").map(({ input }) => input);
      const large = (blob: string, bodyBytes: number) => {
        const request = { method: "POST", url: "/", headers: [], body: { blob } };
        inbox.receive(blob, { keep, request, bodyBytes });
        inbox.answer();
      };
      inbox.receive("small", { keep });
      inbox.answer();
      const least = { agent: INBOX_KEY, part: "inbox", bytes: AGENT_ROOM_BYTES };
      expect(told()).to.deep.equal([least]);
      expect(inbox.sent.find(({ message }) => message === "stored")).to.include({
        ...{ kind: "app-usage", key: "a".repeat(32) },
      });
      large("app.a.b.1", 1_000_000);
      large("app.a.b.2", 100_000);
      const bytes = told().map((input) => (input as { bytes: number }).bytes);
      expect(bytes).to.have.length(2);
      expect(bytes[1]).to.be.within(1_000_000, 1_001_000);
      inbox.now += DAY_MS;
      inbox.remind("trim");
      // The log is empty, but ids of its events are remembered.
      expect(told().at(-1)).to.deep.equal(least);
      inbox.now += EVENT_IDS_KEPT_MS;
      inbox.remind("trim");
      expect(inbox.forgotten).to.equal(1);
      expect(told().at(-1)).to.deep.equal({ ...least, bytes: 0 });
      expect(told()).to.have.length(4);
    });

    it("trim() reports an inbox that an earlier version never reported", () => {
      inbox.receive("small");
      inbox.answer();
      const { toldBytes: _, ...state } = inbox.state;
      inbox.state = state;
      inbox.sent.splice(0);
      inbox.now += DAY_MS;
      inbox.remind("trim");
      expect(inbox.sent.map(({ message, input }) => [message, input])).to.deep.equal([
        ["stored", { agent: INBOX_KEY, part: "inbox", bytes: AGENT_ROOM_BYTES }],
      ]);
    });

    it("receive() keeps waiting events, whatever the limit of kept ones", () => {
      const keep = { days: 1, count: 1 };
      for (let i = 0; i < 5; i++) inbox.receive(`event ${i}`, { keep });
      inbox.now += 5 * DAY_MS;
      inbox.remind("trim");
      expect(inbox.ask("list", { limit: 10 }).deliveries).to.have.length(5);
      for (let i = 0; i < 5; i++) expect(inbox.answer()).to.have.length(1);
      inbox.remind("trim");
      expect(inbox.ask("list", { limit: 10 }).deliveries).to.have.length(0);
    });

    it("list(), get() and replay() refuse expired events even if trim() is late, and show waiting ones", () => {
      const keep = { days: 1, count: 10 };
      inbox.receive("old", { keep });
      inbox.answer();
      inbox.receive("waits", { keep });
      inbox.now += DAY_MS - 1;
      expect(inbox.ask("list", { limit: 10 }).deliveries.map(({ number }) => number)).to.deep.equal(
        [2, 1],
      );
      inbox.now += 1;
      expect(inbox.ask("list", { limit: 10 }).deliveries.map(({ number }) => number)).to.deep.equal(
        [2],
      );
      expect(refusal(() => inbox.ask("get", { number: 1 })).code).to.equal("not_found");
      expect(inbox.ask("get", { number: 2 }).delivery.number).to.equal(2);
      expect(inbox.ask("replay", { from: 1, to: 1 }).replayed).to.equal(0);
    });

    it("trim() lets go of the old in steps, of ids after their time, and then of everything", () => {
      const keep = { days: 1, count: 10_000 };
      for (let i = 0; i <= DELIVERIES_TRIMMED_AT_ONCE; i++) {
        inbox.receive(`event ${i}`, { keep });
        inbox.answer();
      }
      const events = () => [...inbox.rows.keys()].filter((row) => row.startsWith("event/")).length;
      inbox.now += DAY_MS;
      inbox.remind("trim");
      expect(events()).to.equal(1);
      inbox.remind("trim");
      expect(events()).to.equal(0);
      expect(inbox.receive("event 0", { keep })).to.include({ isNew: false });
      for (let day = 0; inbox.forgotten === 0; day++) {
        expect(day).to.be.lessThan(10);
        inbox.remind("trim");
      }
      expect(inbox.rows.size).to.equal(0);
      const [delivery] = inbox.deliveries();
      expect(delivery).to.equal(undefined);
    });

    it("clear() forgets everything", () => {
      inbox.receive("a");
      inbox.ask("clear", {});
      expect(inbox.forgotten).to.equal(1);
      // The agent answers too late.
      inbox.answer();
      expect(inbox.state.next).to.equal(1);
    });
  });

  it("list() walks all from the newest to the oldest, in parts", () => {
    for (let i = 1; i <= 25; i++) inbox.receive(`event ${i}`);
    const seen: number[] = [];
    for (let before: number | undefined; ; ) {
      const page = inbox.ask("list", { limit: 10, ...(before && { before }) });
      expect(page.waiting).to.equal(25);
      seen.push(...page.deliveries.map(({ number }) => number));
      before = page.before;
      if (before === undefined) break;
    }
    expect(seen).to.deep.equal(Array.from({ length: 25 }, (_, i) => 25 - i));
  });
});
