import { expect } from "chai";
import { preferredHost } from "../../../scripts/testing/preferred-host.ts";
import { LEASE_FORM } from "./host-lease.ts";
import { Members } from "./members.ts";

const SHARDS = 64;
const stays = { leaving: false, form: LEASE_FORM };

describe("Members", () => {
  it("preferredFor() names the host that rendezvous hashing chooses, whichever hosts joined and left before", () => {
    const members = new Members(SHARDS);
    const present = new Set<string>();
    const check = () => {
      for (let shard = 0; shard < SHARDS; shard++) {
        expect(members.preferredFor(shard)).to.equal(preferredHost(shard, present));
      }
    };
    check();
    for (let step = 0; step < 60; step++) {
      const host = `host-${(step * 7) % 11}`;
      if (present.delete(host)) members.remove(host);
      else {
        present.add(host);
        members.add(host, stays);
      }
      check();
    }
    members.clear();
    present.clear();
    check();
  });

  it("preferredFor() omits hosts that leave, that are gone, or that are of the first release", () => {
    const members = new Members(SHARDS);
    members.add("stays", stays);
    members.add("leaves", stays);
    members.add("leaves", { ...stays, leaving: true });
    members.add("gone", stays);
    members.remove("gone");
    members.add("first release", { leaving: false });
    const preferred = new Set(
      Array.from({ length: SHARDS }, (_, one) => members.preferredFor(one)),
    );
    expect([...preferred]).to.deep.equal(["stays"]);
    expect(members.has("leaves")).to.equal(true);
    expect(members.has("first release")).to.equal(true);
    expect(members.has("gone")).to.equal(false);
  });

  it("chosenFor() names one member that stays, and another where it is gone", () => {
    const members = new Members(SHARDS);
    expect(members.chosenFor("work")).to.equal(undefined);
    for (const host of ["a", "b", "c"]) members.add(host, stays);
    members.add("leaves", { ...stays, leaving: true });
    const works = Array.from({ length: 60 }, (_, index) => `work-${index}`);
    const chosen = works.map((work) => members.chosenFor(work));
    expect(new Set(chosen)).to.deep.equal(new Set(["a", "b", "c"]));
    members.remove("a");
    for (const [index, work] of works.entries()) {
      if (chosen[index] === "a") expect(members.chosenFor(work)).to.be.oneOf(["b", "c"]);
      else expect(members.chosenFor(work)).to.equal(chosen[index]);
    }
  });

  it("after() goes round all other members in the order of their names", () => {
    const members = new Members(SHARDS);
    expect(members.after("b")).to.deep.equal([]);
    for (const host of ["c", "a", "d", "b"]) members.add(host, stays);
    expect(members.after("b")).to.deep.equal(["c", "d", "a"]);
    expect(members.after("d")).to.deep.equal(["a", "b", "c"]);
    expect(members.after("bb")).to.deep.equal(["c", "d", "a", "b"]);
    members.remove("c");
    expect(members.after("b")).to.deep.equal(["d", "a"]);
  });

  it("retain() removes all members that it does not name, but not this host", () => {
    const members = new Members(SHARDS);
    for (const host of ["a", "b", "own"]) members.add(host, stays);
    members.retain(new Set(["b"]), "own");
    expect(["a", "b", "own"].filter((host) => members.has(host))).to.deep.equal(["b", "own"]);
  });
});
