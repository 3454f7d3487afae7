import { expect } from "chai";
import pino from "pino";
import { presenceSubject } from "../../../schemas/subjects.ts";
import { startCluster, type TestNatsCluster } from "../../../scripts/testing/nats-server.ts";
import { until } from "../../../scripts/testing/until.ts";
import { Bus } from "../bus/bus.ts";
import { isSubscribedAt } from "../bus/is-subscribed-at.ts";
import { systemClock as clock } from "../lib/clock.ts";
import { HostPresence } from "./host-presence.ts";

const logger = pino({ level: "silent" });
const MS_MAX = 20_000;

describe("HostPresence in a cluster", function () {
  this.timeout(120_000);
  let cluster: TestNatsCluster;
  let ends: AsyncDisposableStack;

  before(async () => {
    cluster = await startCluster(3);
  });
  beforeEach(() => {
    ends = new AsyncDisposableStack();
  });
  afterEach(() => ends.disposeAsync());
  after(() => cluster.stop());

  async function connect(server: number): Promise<Bus> {
    const bus = await Bus.connect({ url: cluster.urls[server] ?? "", name: "test" });
    ends.defer(() => bus.close());
    return bus;
  }

  /** Starts a host that watches the host `next`. `ended` is what it has called `end` with. */
  function watch(bus: Bus, server: string) {
    const ended: [string, number][] = [];
    const rounds = { count: 0 };
    const presence = new HostPresence({
      ...{ bus, clock, logger },
      members: {
        after() {
          rounds.count += 1;
          return ended.length === 0 ? ["next"] : [];
        },
      },
      lease: async () => ({ sequence: 7, server }),
      end: async (host, sequence) => void ended.push([host, sequence]),
    });
    presence.answerAs("asks");
    ends.defer(() => presence.stop());
    void presence.watch();
    return { ended, rounds };
  }

  it("ends the lease of a host at another server when that server has closed its connection", async () => {
    const [bus, other] = [await connect(0), await connect(1)];
    const server = other.server;
    other.connection.subscribe(presenceSubject("next"), { callback: () => {} });
    const isHeard = () =>
      isSubscribedAt(bus, server, presenceSubject("next"), { timeoutMs: MS_MAX });
    await until("the server knows the other host's subscription", isHeard);
    const { ended, rounds } = watch(bus, server);
    await until("it has asked some times", () => rounds.count > 3);
    expect(ended).to.deep.equal([]);
    await other.close();
    await until("the lease is ended", () => ended.length > 0);
    expect(ended).to.deep.equal([["next", 7]]);
  });

  it("leaves a host alone whose server has its connection, although nobody listens as far as it can see", async () => {
    const [bus, other] = [await connect(0), await connect(1)];
    other.connection.subscribe(presenceSubject("next"), { callback: () => {} });
    const { server } = other;
    const isHeard = () =>
      isSubscribedAt(bus, server, presenceSubject("next"), { timeoutMs: MS_MAX });
    await until("the server knows the subscription", isHeard);
    // As a server answers that has lost the route to the host's server.
    const { request } = bus;
    bus.request = (subject, ...rest) =>
      request.call(bus, subject === presenceSubject("next") ? "nobody.listens" : subject, ...rest);
    const { ended, rounds } = watch(bus, server);
    await until("it has asked often enough", () => rounds.count > 5);
    expect(ended).to.deep.equal([]);
  });
});
