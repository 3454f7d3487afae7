import { expect } from "chai";
import {
  countersOf,
  exactAddressOf,
  NETWORKS_PER_WIDER_MAX,
  networkOf,
  widerNetworkOf,
} from "./network-of.ts";

describe("networkOf", () => {
  it("is the IPv4 address, or the /64 of an IPv6 address, with a port or without", () => {
    for (const text of ["203.0.113.1", "203.0.113.1:4711", "::ffff:203.0.113.1"]) {
      expect([networkOf(text), exactAddressOf(text)], text).to.deep.equal([
        ...["203.0.113.1", "203.0.113.1"],
      ]);
    }
    for (const text of ["2001:db8::1", "[2001:db8::1]:80", "[2001:db8::1]"]) {
      expect([networkOf(text), exactAddressOf(text)], text).to.deep.equal([
        ...["20010db800000000", "2001:db8::1"],
      ]);
    }
    expect(networkOf("2001:db8::2")).to.equal(networkOf("2001:db8::1"));
    expect(networkOf("2001:db8:0:1::1")).to.not.equal(networkOf("2001:db8::1"));
  });

  it("is within the /48 that widerNetworkOf() returns; an IPv4 address is not", () => {
    const wider = (address: string) => widerNetworkOf(networkOf(address));
    expect(wider("2001:db8:0:1::1")).to.equal(wider("2001:db8:0:ffff::1"));
    expect(wider("2001:db8:1::1")).to.not.equal(wider("2001:db8::1"));
    for (const text of ["203.0.113.1", "one.example"]) {
      expect(wider(text)).to.equal(networkOf(text));
    }
  });

  it("has counters of its own and of its /48, which has NETWORKS_PER_WIDER_MAX times the limit", () => {
    expect(countersOf("act", networkOf("2001:db8::1"), 20)).to.deep.equal([
      { key: "act-from 20010db800000000", limit: 20 },
      { key: "act-from 20010db80000/48", limit: 20 * NETWORKS_PER_WIDER_MAX },
    ]);
    const one = [{ key: "act-from 203.0.113.1", limit: 20 }];
    expect(countersOf("act", networkOf("203.0.113.1"), 20)).to.deep.equal(one);
  });

  it("tells unreadable addresses apart", () => {
    expect(networkOf("one.example")).to.not.equal(networkOf("two.example"));
    expect(networkOf("one.example")).to.equal(networkOf("one.example"));
    expect(exactAddressOf("one.example")).to.not.equal(exactAddressOf("two.example"));
  });
});
