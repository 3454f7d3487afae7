import { expect } from "chai";
import { LEASE_FORM } from "./host-lease.ts";
import { LEASE_UNSEEN_MS_MAX, LivingHosts } from "./living-hosts.ts";

describe("LivingHosts", () => {
  const start = () => {
    const time = { now: 1_000 };
    const clock = { now: () => time.now, monotonic: () => time.now, wait: async () => {} };
    return { time, hosts: new LivingHosts(clock) };
  };

  it("isAlive() holds while renewals are seen, and LEASE_UNSEEN_MS_MAX longer", () => {
    const { time, hosts } = start();
    hosts.see("a", 1, { leaving: false });
    time.now += LEASE_UNSEEN_MS_MAX;
    expect(hosts.isAlive("a")).to.equal(true);
    hosts.see("a", 2, { leaving: false });
    time.now += LEASE_UNSEEN_MS_MAX;
    expect(hosts.isAlive("a")).to.equal(true);
    time.now += 1;
    expect(hosts.isAlive("a")).to.equal(false);
    expect(hosts.staying()).to.deep.equal([]);
  });

  it("see() of the same sequence counts as no renewal", () => {
    const { time, hosts } = start();
    hosts.see("ghost", 7, { leaving: false });
    time.now += LEASE_UNSEEN_MS_MAX + 1;
    hosts.see("ghost", 7, { leaving: false });
    expect(hosts.isAlive("ghost")).to.equal(false);
    expect(hosts.hasEnded("ghost", 7)).to.equal(true);
    expect(hosts.hasEnded("ghost", 8)).to.equal(false);
  });

  it("nextAfter() goes round all living hosts of a server, in the order of their names", () => {
    const { time, hosts } = start();
    const here = { leaving: false, server: "here" };
    hosts.see("ghost", 1, here);
    time.now += LEASE_UNSEEN_MS_MAX + 1;
    expect(hosts.nextAfter("a", "here")).to.equal(undefined);
    hosts.see("a", 2, here);
    hosts.see("aa", 3, { ...here, server: "there" });
    hosts.see("ab", 4, { leaving: false });
    expect(hosts.nextAfter("a", "here")).to.equal(undefined);
    hosts.see("c", 5, { ...here, leaving: true });
    hosts.see("b", 6, here);
    expect(hosts.nextAfter("a", "here")).to.deep.equal({ host: "b", sequence: 6 });
    expect(hosts.nextAfter("b", "here")).to.deep.equal({ host: "c", sequence: 5 });
    expect(hosts.nextAfter("c", "here")).to.deep.equal({ host: "a", sequence: 2 });
  });

  it("staying() omits hosts that leave, are forgotten, were never seen or are of the first release", () => {
    const { hosts } = start();
    hosts.see("stays", 1, { leaving: false, form: LEASE_FORM });
    hosts.see("leaves", 2, { leaving: true, form: LEASE_FORM });
    hosts.see("gone", 3, { leaving: false, form: LEASE_FORM });
    hosts.see("first release", 4, { leaving: false });
    hosts.forget("gone");
    expect(hosts.staying()).to.deep.equal(["stays"]);
    expect(hosts.isAlive("gone")).to.equal(false);
    expect(hosts.hasEnded("never", 1)).to.equal(false);
  });
});
