import { expect } from "chai";
import { createAddressPolicy, EGRESS_OWN_ADDRESSES_KEPT_MS } from "./address-policy.ts";

const policy = createAddressPolicy({ ownAddresses: () => ["93.184.215.7"] });

const PUBLIC = [
  "1.1.1.1",
  "8.8.8.8",
  "9.255.255.255",
  "11.0.0.0",
  "100.63.255.255",
  "100.128.0.0",
  "126.255.255.255",
  "128.0.0.0",
  "169.253.255.255",
  "169.255.0.0",
  "172.15.255.255",
  "172.32.0.0",
  "192.0.1.0",
  "192.167.255.255",
  "192.169.0.0",
  "198.17.255.255",
  "198.20.0.0",
  "223.255.255.255",
  "168.63.129.15",
  "2606:4700:4700::1111",
  "2001:4860:4860::8888",
  "2a00::1",
  "2001:200::1",
  "::ffff:1.1.1.1",
  "::ffff:101:101",
  "64:ff9b::1.1.1.1",
  "64:ff9b::808:808",
];

const REFUSED: [why: string, addresses: string[]][] = [
  ["loopback", ["127.0.0.1", "127.0.0.0", "127.255.255.255", "::1", "0:0:0:0:0:0:0:1"]],
  [
    "private",
    [
      "10.0.0.0",
      "10.255.255.255",
      "172.16.0.0",
      "172.31.255.255",
      "192.168.0.0",
      "192.168.255.255",
    ],
  ],
  [
    "linkLocal",
    ["169.254.0.0", "169.254.169.254", "169.254.255.255", "fe80::1", "fe80::1%lo", "febf::1"],
  ],
  ["uniqueLocal", ["fc00::", "fd00:ec2::254", "fd20:ce::254", "fdff::1"]],
  ["deprecatedSiteLocal", ["fec0::1", "feff::1"]],
  ["carrierGradeNat", ["100.64.0.0", "100.100.100.200", "100.127.255.255"]],
  ["multicast", ["224.0.0.0", "239.255.255.255", "ff02::1", "ff0e::1"]],
  ["broadcast", ["255.255.255.255"]],
  ["unspecified", ["0.0.0.0", "0.255.255.255", "::"]],
  [
    "reserved",
    [
      "192.0.0.0",
      "192.0.0.192",
      "192.0.2.1",
      "192.88.99.1",
      "198.18.0.0",
      "198.19.255.255",
      "198.51.100.1",
      "203.0.113.1",
      "240.0.0.0",
      "255.255.255.254",
      "2001:db8::1",
      "3fff::1",
      "2001:1::1",
    ],
  ],
  ["reserved", ["::127.0.0.1", "::1.1.1.1", "::2", "1fff::1", "4000::1", "8000::1", "fb00::1"]],
  ["6to4", ["2002:7f00:1::", "2002:a00:1::1", "2002:101:101::"]],
  ["teredo", ["2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001::1"]],
  ["rfc6052", ["64:ff9b:1::7f00:1", "64:ff9b:1:7f00:0:100::", "64:ff9b:1::1.1.1.1"]],
  ["rfc6145", ["::ffff:0:127.0.0.1", "::ffff:0:1.1.1.1"]],
  ["discard", ["100::1"]],
  ["segmentRouting", ["5f00::1"]],
  ["benchmarking", ["2001:2::1"]],
  [
    "loopback",
    [
      "::ffff:127.0.0.1",
      "::ffff:7f00:1",
      "0:0:0:0:0:ffff:7f00:0001",
      "64:ff9b::127.0.0.1",
      "64:ff9b::7f00:1",
    ],
  ],
  ["private", ["::ffff:10.0.0.1", "::ffff:192.168.1.1", "64:ff9b::10.0.0.1", "64:ff9b::c0a8:1"]],
  ["linkLocal", ["::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "64:ff9b::a9fe:a9fe"]],
  ["unspecified", ["::ffff:0.0.0.0", "64:ff9b::"]],
  ["a service of the cloud", ["168.63.129.16", "::ffff:168.63.129.16", "64:ff9b::a83f:8110"]],
  ["an address of this machine", ["93.184.215.7", "::ffff:93.184.215.7", "64:ff9b::5db8:d707"]],
  [
    "not an IP address",
    ["", "localhost", "127.1", "0x7f.0.0.1", "2130706433", "[::1]", "1.1.1.1:80", " 1.1.1.1"],
  ],
];

describe("AddressPolicy", () => {
  for (const address of PUBLIC) {
    it(`refusal() lets ${address} through`, () => {
      expect(policy.refusal(address)).to.equal(undefined);
    });
  }

  for (const [why, addresses] of REFUSED) {
    for (const address of addresses) {
      it(`refusal() refuses "${address}": ${why}`, () => {
        expect(policy.refusal(address)).to.include(why);
      });
    }
  }

  it("refusal() refuses every textual form that a URL parser turns into a refused IPv4 address", () => {
    const random = seededRandom(20_261_121);
    for (let round = 0; round < 500; round += 1) {
      const address = randomRefusedIPv4(random);
      for (const form of formsOf(address)) {
        const { hostname } = new URL(`http://${form}/`);
        const host = hostname.replace(/^\[(.*)\]$/, "$1");
        expect(policy.refusal(host), `${form} is ${host}`).to.be.a("string");
      }
    }
  });

  it("refusal() lets allowed ranges through, up to their edges, in mapped and NAT64 form too", () => {
    const opened = createAddressPolicy({ allow: ["10.1.0.0/16", "127.0.0.2/32", "fd00:1::/32"] });
    for (const address of [
      "10.1.0.0",
      "10.1.255.255",
      "127.0.0.2",
      "::ffff:10.1.2.3",
      "64:ff9b::a01:203",
      "fd00:1::1",
    ]) {
      expect(opened.refusal(address), address).to.equal(undefined);
    }
    for (const address of [
      "10.0.255.255",
      "10.2.0.0",
      "127.0.0.1",
      "127.0.0.3",
      "fd00:2::1",
      "::ffff:127.0.0.1",
    ]) {
      expect(opened.refusal(address), address).to.be.a("string");
    }
  });

  it("refusal() admits an allowed range that was written as mapped IPv6", () => {
    const opened = createAddressPolicy({ allow: ["::ffff:10.1.0.0/112"] });
    expect(opened.refusal("10.1.255.255")).to.equal(undefined);
    expect(opened.refusal("10.2.0.0")).to.equal("in the range private");
  });

  it("refusal() admits an address of this machine that the operator allowed", () => {
    const opened = createAddressPolicy({
      allow: ["93.184.215.7/32"],
      ownAddresses: () => ["93.184.215.7"],
    });
    expect(opened.refusal("93.184.215.7")).to.equal(undefined);
  });

  it("refusal() refuses an address that the machine gets later, within a second", () => {
    const addresses = ["93.184.215.7"];
    let time = 0;
    const living = createAddressPolicy({ ownAddresses: () => addresses, now: () => time });
    expect(living.refusal("93.184.215.8")).to.equal(undefined);
    addresses.push("93.184.215.8");
    time = EGRESS_OWN_ADDRESSES_KEPT_MS - 1;
    expect(living.refusal("93.184.215.8")).to.equal(undefined);
    time = EGRESS_OWN_ADDRESSES_KEPT_MS;
    for (const form of ["93.184.215.8", "::ffff:93.184.215.8", "64:ff9b::5db8:d708"])
      expect(living.refusal(form), form).to.equal("an address of this machine");
    addresses.pop();
    time = 2 * EGRESS_OWN_ADDRESSES_KEPT_MS;
    expect(living.refusal("93.184.215.8")).to.equal(undefined);
  });

  it("refusal() refuses denied ranges up to their edges, in mapped and NAT64 form too", () => {
    const closed = createAddressPolicy({
      allow: ["10.0.0.0/8", "64:ff9b::/96"],
      deny: ["8.8.8.0/24", "10.1.0.0/16", "2606:4700::/32", "::ffff:1.1.1.0/120"],
    });
    for (const address of [
      ...["8.8.8.0", "8.8.8.255", "::ffff:8.8.8.8", "64:ff9b::808:808", "10.1.0.0"],
      ...["10.1.255.255", "2606:4700::", "2606:4700:ffff::1", "1.1.1.0", "1.1.1.255"],
    ]) {
      expect(closed.refusal(address), address).to.equal("in a range the operator denied");
    }
    for (const address of [
      ...["8.8.7.255", "8.8.9.0", "10.0.255.255", "10.2.0.0", "2606:46ff::1", "2606:4701::"],
      ...["1.1.0.255", "1.1.2.0", "64:ff9b::808:909"],
    ]) {
      expect(closed.refusal(address), address).to.equal(undefined);
    }
  });

  it("createAddressPolicy() names an invalid CIDR range", () => {
    for (const ranges of [{ allow: ["10.0.0.0"] }, { deny: ["10.0.0.0"] }])
      expect(() => createAddressPolicy(ranges)).to.throw('Cannot read range "10.0.0.0"');
  });
});

/**
 * Returns notations of one IPv4 address that Chromium and the URL standard normalise to its usual form (WHATWG URL,
 * section 3.5).
 */
function formsOf([a, b, c, d]: [number, number, number, number]): string[] {
  const whole = ((a * 256 + b) * 256 + c) * 256 + d;
  const hex = (value: number) => `0x${value.toString(16)}`;
  const octal = (value: number) => `0${value.toString(8)}`;
  const wide = `\uff11`;
  return [
    `${a}.${b}.${c}.${d}`,
    `${a}.${b}.${c}.${d}.`,
    `${whole}`,
    hex(whole),
    hex(whole).toUpperCase().replace("0X", "0x"),
    octal(whole),
    `${a}.${whole % 2 ** 24}`,
    `${hex(a)}.${octal(b)}.${c * 256 + d}`,
    [a, b, c, d].map(hex).join("."),
    [a, b, c, d].map(octal).join("."),
    `${hex(a)}.${hex(b)}.${octal(c)}.${d}`,
    `%3${`${a}`.slice(0, 1)}${`${a}`.slice(1)}.${octal(b)}.${c}.${d}`,
    `${a}.${b}.${c}.${d}`.replaceAll("1", wide),
    `${a}。${b}｡${c}．${d}`,
    `[::ffff:${a}.${b}.${c}.${d}]`,
    `[::ffff:${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}]`,
    `[::${a}.${b}.${c}.${d}]`,
    `[64:ff9b::${a}.${b}.${c}.${d}]`,
    `[2002:${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}::]`,
    `[0:0:0:0:0:FFFF:${(a * 256 + b).toString(16).toUpperCase()}:${(c * 256 + d).toString(16)}]`,
  ];
}

function randomRefusedIPv4(random: () => number): [number, number, number, number] {
  const byte = () => Math.floor(random() * 256);
  const heads: [number, number, number][] = [
    [127, byte(), byte()],
    [10, byte(), byte()],
    [192, 168, byte()],
    [169, 254, byte()],
    [172, 16 + Math.floor(random() * 16), byte()],
    [100, 64 + Math.floor(random() * 64), byte()],
    [224 + Math.floor(random() * 32), byte(), byte()],
    [0, byte(), byte()],
    [198, 18, byte()],
  ];
  const head = heads[Math.floor(random() * heads.length)] ?? [127, 0, 0];
  return [...head, byte()];
}

/** Generates pseudo-random numbers by the algorithm mulberry32. They are the same in every run. */
function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
