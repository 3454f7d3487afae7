import { expect } from "chai";
import pino from "pino";
import { presenceSubject } from "../../schemas/subjects.ts";
import { startNats, type TestNatsServer } from "../../scripts/testing/nats-server.ts";
import { TcpProxy } from "../../scripts/testing/tcp-proxy.ts";
import { until } from "../../scripts/testing/until.ts";
import { Bus } from "./bus.ts";
import { systemClock } from "./clock.ts";
import { HostPresence } from "./host-presence.ts";

/** Asked so often after the last step, and nothing ended: nothing will. */
const ROUNDS_MORE = 4;

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

  async function connect(url = nats.url): Promise<Bus> {
    const bus = await Bus.connect({ url, name: "test" });
    ends.defer(() => bus.close());
    return bus;
  }

  /** Of a host that is followed by this one; each step is done when it has asked once more. Resolves when all are done. */
  async function watchedBy(bus: Bus, next: string, steps: (() => Promise<void>)[] = []) {
    const ended: [string, number][] = [];
    let rounds = 0;
    const presence = new HostPresence({
      bus,
      clock: {
        ...systemClock,
        async wait(_ms, signal) {
          const step = steps[rounds];
          rounds += 1;
          await (step ? step() : systemClock.wait(1, signal));
        },
      },
      logger: pino({ level: "silent" }),
      hosts: { after: () => ({ host: next, sequence: 7 }) },
      id: () => "asks",
      async end(host, sequence) {
        ended.push([host, sequence]);
      },
    });
    const watching = presence.watch();
    await until("it has asked often enough", () => rounds >= steps.length + ROUNDS_MORE);
    presence.stop();
    await watching;
    return ended;
  }

  /** A host by itself, which answers. */
  async function answering(id: string, bus: Bus): Promise<HostPresence> {
    const presence = new HostPresence({
      ...{ bus, clock: systemClock, logger: pino({ level: "silent" }) },
      ...{ hosts: { after: () => undefined }, id: () => id, end: async () => {} },
    });
    void presence.watch();
    ends.defer(() => presence.stop());
    await bus.connection.flush();
    return presence;
  }

  /** Something that listens where a host of this name would. */
  async function listen(bus: Bus, id: string, answer: string | undefined) {
    const subscription = bus.connection.subscribe(presenceSubject(id), {
      callback: (_error, asked) => void (answer !== undefined && asked.respond(answer)),
    });
    await bus.connection.flush();
    return async () => {
      subscription.unsubscribe();
      await bus.connection.flush();
    };
  }

  const serverOf = (bus: Bus) => bus.connection.info?.server_id ?? "";

  it("ends the lease of one that was there and whose connection is gone, once", async () => {
    const bus = await connect();
    await answering("next", bus);
    const ended = await watchedBy(await connect(), "next", [() => bus.close()]);
    expect(ended).to.deep.equal([["next", 7]]);
  });

  it("knows one by the name that it has now", async () => {
    const bus = await connect();
    let id = "first";
    const presence = new HostPresence({
      ...{ bus, logger: pino({ level: "silent" }) },
      clock: { ...systemClock, wait: (_ms, signal) => systemClock.wait(1, signal) },
      ...{ hosts: { after: () => undefined }, id: () => id, end: async () => {} },
    });
    void presence.watch();
    ends.defer(() => presence.stop());
    const other = await connect();
    const isThere = (name: string) =>
      other.request(presenceSubject(name), "").then(
        (answer) => answer.string() === serverOf(other),
        () => false,
      );
    await until("it answers", () => isThere("first"));
    id = "second";
    await until("it answers to its next name", () => isThere("second"));
    expect(await isThere("first")).to.equal(false);
  });

  it("leaves alone who never answered, who is at another server, and who is silent", async () => {
    const bus = await connect();
    const own = await connect();
    expect(await watchedBy(bus, "nobody")).to.deep.equal([]);

    const elsewhere = await listen(own, "elsewhere", "another server");
    expect(await watchedBy(bus, "elsewhere", [elsewhere])).to.deep.equal([]);

    const leave = await listen(own, "silent", serverOf(bus));
    const becomeSilent = async () => {
      await listen(own, "silent", undefined);
      await leave();
    };
    expect(await watchedBy(bus, "silent", [becomeSilent])).to.deep.equal([]);
  });

  it("leaves alone who is back the next time", async () => {
    const [bus, own] = [await connect(), await connect()];
    let leave = await listen(own, "back", serverOf(bus));
    const away = () => leave();
    const back = async () => {
      leave = await listen(own, "back", serverOf(bus));
    };
    expect(await watchedBy(bus, "back", [away, back, away, back])).to.deep.equal([]);
  });

  it("waits for an answer anew where its own connection was lost meanwhile", async () => {
    const proxy = await TcpProxy.start(nats.port);
    ends.defer(() => proxy.stop());
    const bus = await connect(nats.url.replace(String(nats.port), String(proxy.port)));
    const own = await connect();
    const leave = await listen(own, "next", serverOf(bus));
    const bothGo = async () => {
      proxy.cut();
      await until("it is cut off", () => !bus.connected);
      await leave();
      proxy.open();
      await until("it is back", () => bus.connected);
    };
    expect(await watchedBy(bus, "next", [bothGo])).to.deep.equal([]);
    const again = await listen(own, "next", serverOf(bus));
    expect(await watchedBy(bus, "next", [again])).to.deep.equal([["next", 7]]);
  });
});
