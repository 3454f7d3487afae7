import { expect } from "chai";
import pino from "pino";
import { LEASE_TTL_MS } from "../../../schemas/limits.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { Bus } from "../bus/bus.ts";
import { StateStore } from "../state/state-store.ts";
import {
  endLease,
  HostLease,
  LEASE_MARGIN_MS,
  LEASE_RENEW_MS,
  LEASE_TRUSTED_MS_MAX,
} from "./host-lease.ts";
import { LEASE_TTL_MS_MAX, RENEWALS_KEPT } from "./lease-length.ts";

describe("HostLease", function () {
  this.timeout(60_000);
  let world: World;
  before(async () => {
    world = await startWorld();
  });
  after(() => world[Symbol.asyncDispose]());

  /**
   * A lease that is renewed by `renew()` alone, with a clock that only the test moves. If `afterFirst` is given, the
   * first write gets no answer, and `afterFirst` runs before the next try.
   */
  async function open(name: string, afterFirst?: (bus: Bus) => Promise<void>) {
    const bus = await Bus.connect({ url: world.url, name });
    const time = { ms: 1_000_000, slowMs: 0, isLost: false, ttl: "" };
    const names = new Set<string>();
    const request = bus.request.bind(bus);
    let writes = 0;
    bus.request = async (subject, payload, options) => {
      if (!subject.startsWith(world.subjects.lease(name))) {
        return request(subject, payload, options);
      }
      // The server ends leases by its own clock, so it gets a lifetime that outlasts the test.
      time.ttl = options?.headers?.get("Nats-TTL") ?? "";
      options?.headers?.set("Nats-TTL", "60s");
      time.ms += time.slowMs;
      if (time.isLost) throw new Error("lost on its way");
      const answer = await request(subject, payload, options);
      writes += 1;
      if (writes === 1 && afterFirst) throw new Error("answered too late");
      return answer;
    };
    const now = () => time.ms;
    const lease = new HostLease({
      ...{ bus, hostName: name, store: new StateStore(bus, world.subjects) },
      clock: {
        ...{ now, monotonic: now },
        // Only the wait before the second try ends.
        wait: () => (afterFirst && writes === 1 ? afterFirst(bus) : new Promise(() => {})),
      },
      logger: pino({ level: "silent" }),
      renewing: (id) => void names.add(id),
      renewed() {},
      lost() {},
    });
    await lease.start();
    return { bus, lease, time, names };
  }

  const stored = async ({ id }: HostLease) => {
    const message = await world.bus.readLast(world.subjects.stream, world.subjects.lease(id));
    return message?.json<{ ttlMs?: number }>();
  };

  const leasesOf = async (name: string) => {
    const { stream, leases, lastToken } = world.subjects;
    const ids = (await world.bus.subjectsOf(stream, leases)).map(lastToken);
    return ids.filter((id) => id.startsWith(name));
  };

  it("lasts longer after a slow renewal, and is known to others as such", async () => {
    const { bus, lease, time } = await open("slow");
    expect(await stored(lease)).to.not.have.property("ttlMs");
    time.slowMs = LEASE_TTL_MS_MAX / 4;
    await lease.renew();
    time.slowMs = 0;
    await lease.renew();
    expect(time.ttl).to.equal("10s");
    expect(await stored(lease)).to.include({ ttlMs: LEASE_TTL_MS_MAX });
    time.ms += LEASE_TTL_MS;
    expect(lease.holds).to.equal(true);
    time.ms += LEASE_TTL_MS_MAX;
    expect(lease.holds).to.equal(false);
    await bus.close();
  });

  it("is trusted for a limited time, however long it lasts", async () => {
    const { bus, lease, time } = await open("trusted");
    time.slowMs = LEASE_TTL_MS_MAX / 4;
    await lease.renew();
    time.slowMs = 0;
    await lease.renew();
    expect(await stored(lease)).to.include({ ttlMs: LEASE_TTL_MS_MAX });
    time.ms += LEASE_TRUSTED_MS_MAX - LEASE_MARGIN_MS - 1;
    expect(lease.holds).to.equal(true);
    time.ms += 1;
    expect(lease.holds).to.equal(false);
    await bus.close();
  });

  it("start() keeps its name after a write that was stored without an answer", async () => {
    const { bus, lease, names } = await open("late", async () => {});
    // A second name would leave the first one as a member, to which other hosts give shards.
    expect([...names]).to.deep.equal([lease.id]);
    expect(lease.holds).to.equal(true);
    await bus.close();
  });

  it("start() takes another name if the lease of such a write has ended meanwhile", async () => {
    const { bus, lease, names } = await open("ended", async (own) => {
      const [id = ""] = await leasesOf("ended");
      const last = await world.bus.readLast(world.subjects.stream, world.subjects.lease(id));
      const parts = { bus: own, store: new StateStore(own, world.subjects) };
      await endLease(parts, id, last?.seq ?? 0);
    });
    expect(names.size).to.equal(2);
    expect(lease.holds).to.equal(true);
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
