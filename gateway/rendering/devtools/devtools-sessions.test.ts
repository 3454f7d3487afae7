import { expect } from "chai";
import { pino } from "pino";
import { createAddressPolicy } from "../../../actors/egress/address-policy.ts";
import { createEgressGuard } from "../../../actors/egress/egress-guard.ts";
import { browserTimeActor } from "../../../actors/rendering/browser-time/browser-time.ts";
import { devtoolsSessionsActor } from "../../../actors/rendering/devtools-sessions/devtools-sessions.ts";
import { DevtoolsWorker } from "../../../actors/rendering/workers/devtools/devtools-worker.ts";
import { ask } from "../../../actors/runtime/bus/ask.ts";
import { Bus } from "../../../actors/runtime/bus/bus.ts";
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import { memoryActors } from "../../../scripts/testing/memory-actors.ts";
import { startNats, type TestNatsServer } from "../../../scripts/testing/nats-server.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { until } from "../../../scripts/testing/until.ts";
import { findChromium } from "../../../scripts/tools.ts";
import { DevtoolsSessions } from "./devtools-sessions.ts";

const [ONE, TWO, THREE] = ["a".repeat(32), "b".repeat(32), "c".repeat(32)] as const;

describe("DevtoolsSessions", function () {
  this.timeout(120_000);
  let nats: TestNatsServer;
  let bus: Bus;
  let workers: DevtoolsWorker[];
  let sessions: DevtoolsSessions;

  before(async () => {
    nats = await startNats();
    bus = await Bus.connect({ url: nats.url, name: "test" });
  });
  after(async () => {
    await bus.close();
    await nats.stop();
  });
  afterEach(() => Promise.all(workers.map((worker) => worker.stop())));

  /** Starts one worker for each number of places. */
  async function start(...places: number[]): Promise<void> {
    const actors = memoryActors({ actors: [browserTimeActor, devtoolsSessionsActor] });
    workers = places.map(
      (sessionsMax) =>
        new DevtoolsWorker({
          ...{ bus, clock, actors, sessionsMax, browserMsPerDay: 0 },
          logger: pino({ level: "fatal" }),
          guard: createEgressGuard({ policy: createAddressPolicy({ allow: [] }) }),
          executablePath: findChromium(),
        }),
    );
    sessions = new DevtoolsSessions({
      ...{ actors, browserMsPerDay: 0, publicUrl: "http://a.example", now: Date.now },
      bus: {
        async ask(subject, payload, timeoutMs) {
          const asked = await ask(bus, subject, payload, { timeoutMs });
          return typeof asked === "string" ? asked : { answer: asked.answer.string() };
        },
        openLink() {
          throw new Error("no client connects here");
        },
      },
    });
    await bus.connection.flush();
  }
  const begin = (accountId: string) => sessions.begin(accountId, { keepAliveMs: 60_000 });
  const running = () => workers.map(({ count }) => count);

  it("begin() leaves the last place of a worker to another account", async () => {
    await start(2);
    const first = await begin(ONE);
    const refused = await refusalOf(begin(ONE));
    expect(refused.code).to.equal("busy");
    expect(refused.message).to.contain("the last place of a browser worker is for another account");
    await begin(TWO);
    expect((await refusalOf(begin(THREE))).message).to.contain("no browser worker has room");
    await sessions.end(first);
    await until("its place is free", () => running()[0] === 1);
    await begin(THREE);
    expect(running()).to.deep.equal([2]);
  });

  it("begin() gives an account the only place of a worker", async () => {
    await start(1);
    await begin(ONE);
    expect((await refusalOf(begin(TWO))).code).to.equal("busy");
  });

  it("begin() uses a worker with room for the account before one with a kept place", async () => {
    await start(2, 2);
    await begin(ONE);
    await begin(ONE);
    expect(running()).to.deep.equal([1, 1]);
  });

  it("begin() finds the worker whose last place the account may have, although another refuses it", async () => {
    for (let round = 0; round < 4; round += 1) {
      await start(2, 2);
      await begin(ONE);
      await begin(TWO);
      expect(running()).to.deep.equal([1, 1]);
      await begin(ONE);
      await begin(TWO);
      expect(running()).to.deep.equal([2, 2]);
      await Promise.all(workers.map((worker) => worker.stop()));
    }
  });
});
