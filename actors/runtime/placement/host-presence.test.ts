import { expect } from "chai";
import pino from "pino";
import { presenceSubject } from "../../../schemas/subjects.ts";
import { startNats, type TestNatsServer } from "../../../scripts/testing/nats-server.ts";
import { until } from "../../../scripts/testing/until.ts";
import { Bus } from "../bus/bus.ts";
import { systemClock } from "../lib/clock.ts";
import { HostPresence, type HostPresenceParts } from "./host-presence.ts";

/** After this many further questions without the end of a lease, the test concludes that no lease will end. */
const ROUNDS_MORE = 10;

describe("HostPresence", () => {
  let nats: TestNatsServer;
  let ends: AsyncDisposableStack;

  before(async () => {
    nats = await startNats();
  });
  beforeEach(() => {
    ends = new AsyncDisposableStack();
  });
  afterEach(() => ends.disposeAsync());
  after(() => nats.stop());

  async function connect(): Promise<Bus> {
    const bus = await Bus.connect({ url: nats.url, name: "test" });
    ends.defer(() => bus.close());
    return bus;
  }

  const open = (bus: Bus, parts: Partial<HostPresenceParts> = {}) => {
    const presence = new HostPresence({
      ...{ bus, clock: systemClock, logger: pino({ level: "silent" }) },
      ...{ members: { after: () => [] }, lease: async () => undefined },
      ...{ end: async () => {}, ...parts },
    });
    ends.defer(() => presence.stop());
    return presence;
  };

  /**
   * Starts a host that watches the host `next`, whose lease has a new sequence before each question. Runs one of
   * `steps` after each question. Returns the hosts whose lease it ended, and how many questions earlier it had read
   * that lease.
   */
  async function endedBy(
    bus: Bus,
    steps: (() => Promise<unknown>)[] = [],
    server: string | undefined = bus.server,
  ) {
    const ended: [string, number][] = [];
    let rounds = 0;
    const presence = open(bus, {
      clock: {
        ...systemClock,
        async wait(_ms, signal) {
          const step = steps[rounds];
          rounds += 1;
          await (step ? step() : systemClock.wait(1, signal));
        },
      },
      members: {
        after(host) {
          expect(host).to.equal("asks");
          // Leases that were ended are absent.
          return ended.length === 0 ? ["next", "another"] : [];
        },
      },
      lease: async () => ({ sequence: rounds, server }),
      async end(host, sequence) {
        ended.push([host, rounds - sequence]);
      },
    });
    presence.answerAs("asks");
    const watching = presence.watch();
    await until("it has asked often enough", () => rounds >= steps.length + ROUNDS_MORE);
    presence.stop();
    await watching;
    return ended;
  }

  it("ends the lease of a host whose connection is gone, at the sequence seen before the last question", async () => {
    const bus = await connect();
    open(bus).answerAs("next");
    await bus.connection.flush();
    expect(await endedBy(await connect(), [() => bus.close()])).to.deep.equal([["next", 0]]);
  });

  it("leaves hosts alone that answer or stay silent", async () => {
    const [bus, own] = [await connect(), await connect()];
    const presence = open(own);
    presence.answerAs("next");
    await own.connection.flush();
    expect(await endedBy(bus)).to.deep.equal([]);

    const silent = await connect();
    silent.connection.subscribe(presenceSubject("next"), { callback: () => {} });
    await silent.connection.flush();
    presence.stop();
    await own.connection.flush();
    expect(await endedBy(bus)).to.deep.equal([]);
  });

  it("leaves a host alone whose lease was renewed through a server that does not answer", async () => {
    const bus = await connect();
    expect(await endedBy(bus, [], "another")).to.deep.equal([]);
  });

  it("leaves a host alone that is back the next time", async () => {
    const [bus, own] = [await connect(), await connect()];
    const presence = open(own);
    const become = async (name: string) => {
      presence.answerAs(name);
      await own.connection.flush();
    };
    await become("next");
    const away = () => become("another");
    const back = () => become("next");
    expect(await endedBy(bus, [away, back, away, back])).to.deep.equal([]);
  });
});
