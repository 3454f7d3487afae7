import { expect } from "chai";
import { SHARDS } from "../../schemas/limits.ts";
import { startWorld } from "../testing/actor-world.ts";
import { trunkline } from "../testing/command-line.ts";
import { ranges } from "./admin-shards.ts";

describe("admin shards", function () {
  this.timeout(90_000);

  it("names each host, its lease and its shards", async () => {
    await using world = await startWorld({ buckets: 2 });
    await world.host({ name: "north" });
    const { stdout, code } = await trunkline(["admin", "shards"], world.url);
    expect(code).to.equal(0);
    const [heading, host, ...rest] = stdout.split("\n");
    expect(heading).to.match(/^HOST +LEASE +RENEWED +OWNED +SHARDS$/);
    expect(host).to.match(/^north-[0-9a-f]{8} +held +[\d.]+ s ago +64 +0-63$/);
    expect(rest).to.deep.equal(["", `${SHARDS} of ${SHARDS} shards have an owner`, ""]);
  });

  it("shows who leaves, whose lease is gone, and for which shards nobody answers", async () => {
    await using world = await startWorld();
    const { jetstream } = world.bus;
    const put = (subject: string, value: unknown) =>
      jetstream.jetstream().publish(subject, JSON.stringify(value));
    await put(world.subjects.lease("old"), { leaving: true });
    for (const shard of [3, 4, 5, 9]) await put(world.subjects.epoch(shard), { host: "old" });
    for (const shard of [10, 12]) await put(world.subjects.epoch(shard), { host: "dead" });
    await put(world.subjects.epoch(20), { host: null });
    const { stdout } = await trunkline(["admin", "shards"], world.url);
    const [, dead, old, , summary] = stdout.split("\n");
    expect(dead).to.match(/^dead +gone +- +2 +10 12$/);
    expect(old).to.match(/^old +leaving +[\d.]+ s ago +4 +3-5 9$/);
    expect(summary).to.equal(`4 of ${SHARDS} shards have an owner; no host owns 0-2 6-8 10-63`);
  });

  it("says that nobody answers where no host has ever been", async () => {
    await using world = await startWorld();
    const { stdout } = await trunkline(["admin", "shards"], world.url);
    expect(stdout).to.equal(`0 of ${SHARDS} shards have an owner; no host owns 0-63\n`);
  });

  it("ranges() joins neighbours", () => {
    expect(ranges([])).to.equal("");
    expect(ranges([7])).to.equal("7");
    expect(ranges([0, 1, 2, 5, 7, 8])).to.equal("0-2 5 7-8");
  });
});
