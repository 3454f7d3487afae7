import { expect } from "chai";
import { pino } from "pino";
import { browserTime } from "../../../../schemas/rendering/browser-time.ts";
import {
  DEVTOOLS_CLIENTS_MAX,
  DEVTOOLS_VIEWERS_MAX,
} from "../../../../schemas/rendering/devtools-limits.ts";
import { devtoolsSessions } from "../../../../schemas/rendering/devtools-sessions.ts";
import {
  DEVTOOLS_OPEN,
  linkSubjects,
  sessionSubject,
} from "../../../../schemas/rendering/devtools-worker.ts";
import { type MemoryActors, memoryActors } from "../../../../scripts/testing/memory-actors.ts";
import { startNats, type TestNatsServer } from "../../../../scripts/testing/nats-server.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { findChromium } from "../../../../scripts/tools.ts";
import { createAddressPolicy } from "../../../egress/address-policy.ts";
import { createEgressGuard } from "../../../egress/egress-guard.ts";
import { ask } from "../../../runtime/bus/ask.ts";
import { Bus } from "../../../runtime/bus/bus.ts";
import { systemClock as clock } from "../../../runtime/lib/clock.ts";
import { browserTimeActor } from "../../browser-time/browser-time.ts";
import { devtoolsSessionsActor } from "../../devtools-sessions/devtools-sessions.ts";
import { FrameLink } from "../../lib/frame-link/frame-link.ts";
import { DevtoolsWorker, sessionsOf } from "./devtools-worker.ts";
import type { SessionLimits } from "./session-limits.ts";

const ACCOUNT = "a".repeat(32);
const ID = "1".repeat(32);

describe("DevTools session in its worker", function () {
  this.timeout(120_000);
  let nats: TestNatsServer;
  let bus: Bus;
  let actors: MemoryActors;
  let worker: DevtoolsWorker;

  before(async () => {
    nats = await startNats();
    bus = await Bus.connect({ url: nats.url, name: "test" });
  });
  after(async () => {
    await bus.close();
    await nats.stop();
  });
  afterEach(() => worker.stop());

  async function start(
    limits: Partial<SessionLimits> = {},
    { sessionsMax = 2, browserMsPerDay = 0 } = {},
  ): Promise<void> {
    actors = memoryActors({ actors: [browserTimeActor, devtoolsSessionsActor] });
    worker = new DevtoolsWorker({
      ...{ bus, clock, actors, sessionsMax, browserMsPerDay },
      logger: pino({ level: "fatal" }),
      guard: createEgressGuard({ policy: createAddressPolicy({ allow: [], deny: [] }) }),
      executablePath: findChromium(),
      limits: { checkMs: 20, renewMs: 50, ...limits },
    });
    await bus.connection.flush();
  }
  // biome-ignore lint/suspicious/noExplicitAny: a test looks at whatever was answered.
  async function asked(subject: string, request: object): Promise<any> {
    const given = await ask(bus, subject, JSON.stringify(request), { timeoutMs: 60_000 });
    return typeof given === "string" ? given : given.answer.json();
  }
  async function open(id = ID, keepAliveMs = 60_000) {
    await actors.call(devtoolsSessions, ACCOUNT, "open", { id, keepAliveMs });
    return await asked(DEVTOOLS_OPEN, { id, account: ACCOUNT, keepAliveMs });
  }
  const reasonOf = async (id = ID) =>
    (await actors.call(devtoolsSessions, ACCOUNT, "get", { id })).ended?.reason;
  const ended = (id = ID) =>
    until("the session has ended", async () => (await reasonOf(id)) !== undefined);

  it("ends at its time limit, and tells the account what it took", async () => {
    // Longer than a machine stands still between the reply and the next line.
    await start({ sessionMsMax: 4_000 });
    expect(await open()).to.deep.equal({ reply: {} });
    const [pid] = worker.pids;
    expect(pid).to.be.a("number");
    await ended();
    expect(await reasonOf()).to.equal("TimeLimit");
    await until("its browser is gone", () => worker.count === 0);
    expect(() => process.kill(pid ?? 0, 0)).to.throw("ESRCH");
    await actors.settled();
    const { today } = await actors.call(browserTime, ACCOUNT, "getUsage", {});
    expect(today.ms).to.be.at.least(3_900);
    expect(today.tasks).to.equal(1);
  });

  it("ends at its memory limit", async () => {
    await start({ memoryBytesMax: 1_000_000 });
    await open();
    await ended();
    expect(await reasonOf()).to.equal("MemoryLimit");
  });

  it("ends when its account's browser time is used up", async () => {
    await start({}, { browserMsPerDay: 100 });
    await open();
    await ended();
    expect(await reasonOf()).to.equal("BrowserTimeExceeded");
  });

  it("ends when its browser dies, and when its row says that it has ended", async () => {
    await start();
    await open();
    const [pid = 0] = worker.pids;
    process.kill(pid, "SIGKILL");
    await ended();
    expect(await reasonOf()).to.equal("BrowserCrashed");
    await until("its place is free", () => worker.count === 0);
    const other = "2".repeat(32);
    await open(other);
    await actors.call(devtoolsSessions, ACCOUNT, "end", { id: other, reason: "WorkerLost" });
    await until("its browser is gone", () => worker.count === 0);
  });

  it("takes sessionsMax sessions, and leaves the next to another worker", async () => {
    await start({}, { sessionsMax: 1 });
    await open();
    expect(await open("2".repeat(32))).to.equal("nobody");
    await asked(sessionSubject(ID), { ask: "end" });
    await until("there is room", async () => (await open("3".repeat(32))) !== "nobody");
  });

  it("takes DEVTOOLS_CLIENTS_MAX clients, refuses one more, and an unknown target", async () => {
    await start();
    await open();
    const connect = async (number: number, more: object = {}) => {
      const link = number.toString(16).padStart(32, "0");
      const { toGateway, toWorker } = linkSubjects(link);
      const held = new FrameLink({
        ...{ bus, clock, receiveOn: toGateway, sendTo: toWorker, frameBytesMax: 1_000 },
        take() {},
        ended() {},
      });
      const answer = await asked(sessionSubject(ID), {
        ask: "connect",
        link,
        isReadOnly: false,
        ...more,
      });
      return { held, answer };
    };
    const unknown = await connect(100, { targetId: "A".repeat(32) });
    expect(unknown.answer.refusal.code).to.equal("not_found");
    const all = [unknown];
    for (let i = 0; i < DEVTOOLS_CLIENTS_MAX; i++) all.push(await connect(i));
    expect(all.slice(1).every(({ answer }) => "reply" in answer)).to.equal(true);
    const past = await connect(99);
    expect(past.answer.refusal.code).to.equal("limit_reached");
    // Viewers do not count as clients; they have their own limit.
    for (let i = 0; i <= DEVTOOLS_VIEWERS_MAX; i++) {
      const viewer = await connect(200 + i, { isReadOnly: true });
      expect("reply" in viewer.answer, `viewer ${i}`).to.equal(i < DEVTOOLS_VIEWERS_MAX);
      all.push(viewer);
    }
    for (const { held } of [...all, past]) held.end("done");
  });

  it("a client that does not read holds its browser up, and gets everything once it reads", async () => {
    await start();
    await open();
    const link = "f".repeat(32);
    const { toGateway, toWorker } = linkSubjects(link);
    const reading = Promise.withResolvers<void>();
    const answers: { id: number; bytes: number }[] = [];
    const held = new FrameLink({
      ...{ bus, clock, receiveOn: toGateway, sendTo: toWorker, frameBytesMax: 10_000_000 },
      async take(frame) {
        await reading.promise;
        answers.push({ id: JSON.parse(frame.toString()).id, bytes: frame.length });
      },
      ended() {},
    });
    const { reply } = await asked(sessionSubject(ID), { ask: "targets" });
    const targetId = reply[0].id;
    await asked(sessionSubject(ID), { ask: "connect", link, targetId, isReadOnly: false });
    const params = { expression: '"x".repeat(3000000)', returnByValue: true };
    const ids = Array.from({ length: 6 }, (_, index) => index);
    for (const id of ids) {
      held.send(Buffer.from(JSON.stringify({ id, method: "Runtime.evaluate", params })));
    }
    await held.drained(0);
    reading.resolve();
    await until("everything has arrived", () => answers.length === ids.length);
    expect(answers.map(({ id }) => id)).to.deep.equal(ids);
    expect(answers.every(({ bytes }) => bytes > 3_000_000)).to.equal(true);
    held.end("done");
  });

  it("sessionsOf() a machine take at most half of its memory", () => {
    expect(sessionsOf(1_000_000_000)).to.equal(1);
    expect(sessionsOf(7_999_999_999)).to.equal(1);
    expect(sessionsOf(8_000_000_000)).to.equal(2);
    expect(sessionsOf(500_000_000_000)).to.equal(8);
  });
});
