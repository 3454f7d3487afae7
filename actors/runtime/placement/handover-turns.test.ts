import { expect } from "chai";
import { SHARDS } from "../../../schemas/limits.ts";
import { addressOf, shardOf } from "../../../schemas/subjects.ts";
import { startWorld } from "../../../scripts/testing/actor-world.ts";
import { counter, counterActor } from "../../../scripts/testing/counter.ts";
import { until } from "../../../scripts/testing/until.ts";
import { Bus } from "../bus/bus.ts";
import { systemClock } from "../lib/clock.ts";
import { HANDOVER_TURN_MS, HANDOVERS_MAX, HandoverTurns } from "./handover-turns.ts";

/** A turn that lasts as long as its handover. */
const patientClock = {
  ...systemClock,
  wait: (ms: number, signal?: AbortSignal) =>
    systemClock.wait(ms === HANDOVER_TURN_MS ? 600_000 : ms, signal),
};

describe("HandoverTurns", function () {
  this.timeout(90_000);

  it("run() begins as many handovers as may move at once, and the next when one has ended", async () => {
    const turns = new HandoverTurns(patientClock);
    const begun: PromiseWithResolvers<boolean>[] = [];
    const all = Array.from({ length: HANDOVERS_MAX + 2 }, () =>
      turns.run(() => {
        const handover = Promise.withResolvers<boolean>();
        begun.push(handover);
        return handover.promise;
      }),
    );
    const settled = Promise.allSettled(all);
    expect(begun).to.have.length(HANDOVERS_MAX);
    begun[0]?.resolve(true);
    begun[1]?.reject(new Error("the bus is away"));
    await until("the others begin", () => begun.length === HANDOVERS_MAX + 2);
    for (const { resolve } of begun) resolve(false);
    const [first, second, ...others] = await settled;
    expect(first).to.have.property("value", true);
    expect(second).to.have.property("status", "rejected");
    for (const other of others) expect(other).to.have.property("value", false);
  });

  it("run() lets the next one begin when a handover takes long", async () => {
    const turns = new HandoverTurns(systemClock);
    const never = () => new Promise<boolean>(() => {});
    for (let index = 0; index < HANDOVERS_MAX; index++) void turns.run(never);
    expect(await turns.run(async () => true)).to.equal(true);
  });

  it("a shard whose turn has not come still answers when another host joins", async () => {
    await using world = await startWorld({ definitions: [counterActor] });
    const first = await world.host({ name: "a", clock: patientClock });
    const keys = Array.from({ length: 4 * SHARDS }, (_, index) => `key-${index}`);
    await Promise.all(keys.map((key) => world.client.call(counter, key, "increment", { by: 1 })));
    const { request } = Bus.prototype;
    const held = new Set<string>();
    const mayWrite = Promise.withResolvers<void>();
    // The last write of each handover waits.
    Bus.prototype.request = async function (this: Bus, subject, payload, ...rest) {
      if (String(payload).startsWith('{"owner":null')) {
        held.add(subject);
        await mayWrite.promise;
      }
      return request.call(this, subject, payload, ...rest);
    };
    try {
      const second = await world.host({ name: "b", complete: false });
      await until("some shards move", () => held.size >= HANDOVERS_MAX);
      const moving = new Set(
        Array.from({ length: SHARDS }, (_, shard) => shard).filter((shard) =>
          held.has(world.subjects.epoch(shard)),
        ),
      );
      for (const key of keys) {
        if (moving.has(shardOf(addressOf(counter.kind, key)))) continue;
        expect(await world.client.call(counter, key, "get", {})).to.deep.equal({ count: 1 });
      }
      expect(held.size).to.equal(HANDOVERS_MAX);
      mayWrite.resolve();
      await until("both are at rest", () =>
        [first, second].every(({ placement }) => placement.isComplete && placement.openShards > 0),
      );
      for (const key of keys) {
        expect(await world.client.call(counter, key, "get", {})).to.deep.equal({ count: 1 });
      }
    } finally {
      mayWrite.resolve();
      Bus.prototype.request = request;
    }
  });
});
