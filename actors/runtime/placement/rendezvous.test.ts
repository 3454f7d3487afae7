import { expect } from "chai";
import { SHARDS } from "../../../schemas/limits.ts";
import { preferredHost } from "../../../scripts/testing/preferred-host.ts";

const shards = Array.from({ length: SHARDS }, (_, shard) => shard);
const named = (count: number, round: number) =>
  Array.from({ length: count }, (_, index) => `host-${index}-${(round * 7919).toString(16)}`);

describe("preferredHost()", function () {
  this.timeout(10_000);
  it("names no host if there is none", () => {
    expect(preferredHost(0, [])).to.equal(undefined);
  });

  it("does not depend on the order of the hosts", () => {
    const hosts = named(5, 1);
    for (const shard of shards) {
      expect(preferredHost(shard, hosts)).to.equal(preferredHost(shard, hosts.toReversed()));
    }
  });

  it("spreads the shards over 2 to 8 hosts: each has some, none far more than its share", () => {
    for (let count = 2; count <= 8; count++) {
      let squares = 0;
      const rounds = 200;
      for (let round = 0; round < rounds; round++) {
        const hosts = named(count, round);
        const owned = new Map(hosts.map((host) => [host, 0]));
        for (const shard of shards) {
          const host = preferredHost(shard, hosts) ?? "";
          owned.set(host, (owned.get(host) ?? 0) + 1);
        }
        expect(owned.size).to.equal(count);
        for (const number of owned.values()) squares += (number - SHARDS / count) ** 2;
      }
      // The variance must equal that of a random (binomial) distribution, with a tolerance of a quarter.
      const variance = squares / (rounds * count);
      const chance = SHARDS * (1 / count) * (1 - 1 / count);
      expect(variance, `${count} hosts`).to.be.within(chance * 0.75, chance * 1.25);
    }
  });

  it("moves only the shards of a leaving host, and moves shards only to a joining one", () => {
    for (let count = 1; count <= 8; count++) {
      const hosts = named(count, 3);
      const joined = [...hosts, "new"];
      for (const shard of shards) {
        const before = preferredHost(shard, hosts);
        const after = preferredHost(shard, joined);
        if (after !== before) expect(after).to.equal("new");
      }
    }
  });
});
