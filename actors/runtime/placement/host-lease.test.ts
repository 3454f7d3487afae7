import { expect } from "chai";
import pino from "pino";
import { LEASE_TTL_MS } from "../../../schemas/limits.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { Bus } from "../bus/bus.ts";
import { StateStore } from "../state/state-store.ts";
import { HostLease, LEASE_RENEW_MS } from "./host-lease.ts";
import { LEASE_TTL_MS_MAX, RENEWALS_KEPT } from "./lease-length.ts";

describe("HostLease", function () {
  this.timeout(60_000);
  let world: World;
  before(async () => {
    world = await startWorld();
  });
  after(() => world[Symbol.asyncDispose]());

  /** A lease that is renewed by `renew()` alone, with a clock that only the test moves. */
  async function open(name: string) {
    const bus = await Bus.connect({ url: world.url, name });
    const time = { ms: 1_000_000, slowMs: 0, isLost: false };
    const request = bus.request.bind(bus);
    bus.request = async (subject, ...rest) => {
      if (!subject.startsWith(world.subjects.lease(name))) return request(subject, ...rest);
      time.ms += time.slowMs;
      if (time.isLost) throw new Error("lost on its way");
      return request(subject, ...rest);
    };
    const now = () => time.ms;
    const lease = new HostLease({
      ...{ bus, hostName: name, store: new StateStore(bus, world.subjects) },
      clock: { now, monotonic: now, wait: () => new Promise(() => {}) },
      logger: pino({ level: "silent" }),
      renewing() {},
      renewed() {},
      lost() {},
    });
    await lease.start();
    return { bus, lease, time };
  }

  const stored = async ({ id }: HostLease) => {
    const message = await world.bus.readLast(world.subjects.stream, world.subjects.lease(id));
    return { ttl: message?.header.get("Nats-TTL"), ...message?.json<{ ttlMs?: number }>() };
  };

  it("lasts longer after a slow renewal, and is known to others as such", async () => {
    const { bus, lease, time } = await open("slow");
    expect(await stored(lease)).to.not.have.property("ttlMs");
    time.slowMs = LEASE_TTL_MS_MAX / 4;
    await lease.renew();
    time.slowMs = 0;
    await lease.renew();
    expect(await stored(lease)).to.include({ ttl: "10s", ttlMs: LEASE_TTL_MS_MAX });
    time.ms += LEASE_TTL_MS;
    expect(lease.holds).to.equal(true);
    time.ms += LEASE_TTL_MS_MAX;
    expect(lease.holds).to.equal(false);
    await bus.close();
  });

  it("lasts longer also after renewals that all failed", async () => {
    const { bus, lease, time } = await open("failing");
    [time.isLost, time.slowMs] = [true, LEASE_TTL_MS];
    await lease.renew();
    [time.isLost, time.slowMs] = [false, 0];
    await lease.renew();
    expect(await stored(lease)).to.include({ ttlMs: LEASE_TTL_MS_MAX });
    await bus.close();
  });

  it("is trusted no longer than a shorter renewal that may be stored", async () => {
    const { bus, lease, time } = await open("shorter");
    time.slowMs = LEASE_TTL_MS_MAX / 4;
    await lease.renew();
    time.slowMs = 0;
    for (let count = 0; count < RENEWALS_KEPT; count++) {
      time.ms += LEASE_RENEW_MS;
      await lease.renew();
    }
    // The last renewal wrote a long lease. The next renewal writes a short lease, and its answer is lost.
    expect(await stored(lease)).to.include({ ttlMs: LEASE_TTL_MS_MAX });
    time.isLost = true;
    await lease.renew();
    expect(lease.holds).to.equal(true);
    time.ms += LEASE_TTL_MS;
    expect(lease.holds).to.equal(false);
    await bus.close();
  });
});
