import { resolve } from "node:path";
import { expect } from "chai";
import { configFromEnvironment } from "./config.ts";

describe("config", () => {
  it("configFromEnvironment() has a default for everything", () => {
    expect(configFromEnvironment({})).to.deep.equal({
      host: "127.0.0.1",
      port: 8787,
      publicUrl: "http://127.0.0.1:8787",
      dataDir: resolve("data"),
      natsUrl: undefined,
      natsCredsFile: undefined,
      replicas: 1,
      roles: ["gateway", "actors", "browser"],
      egressAllow: [],
      dnsServers: [],
      dnsPollSeconds: 60,
      dnsWindowSeconds: 172_800,
      browserSecondsPerDay: 600,
      appsDomain: "apps.localhost:8787",
      signup: "open",
      ai: undefined,
      shutdownSeconds: 20,
      chromium: undefined,
      otlpEndpoint: undefined,
      requestsPerWindow: 1_200,
      trustProxy: undefined,
    });
  });

  it("configFromEnvironment() takes an empty value for an unset one", () => {
    expect(configFromEnvironment({ TRUNKLINE_PORT: "", TRUNKLINE_NATS_URL: "" })).to.include({
      port: 8787,
      natsUrl: undefined,
    });
  });

  it("configFromEnvironment() derives the public URL and the apps' domain from host and port", () => {
    const config = configFromEnvironment({ TRUNKLINE_HOST: "::1", TRUNKLINE_PORT: "80" });
    expect(config).to.include({ publicUrl: "http://[::1]:80", appsDomain: "apps.localhost:80" });
  });

  it("configFromEnvironment() reads lists, dropping blanks and repetitions of roles", () => {
    const config = configFromEnvironment({
      TRUNKLINE_ROLES: "browser, actors,browser",
      TRUNKLINE_EGRESS_ALLOW: "10.0.0.0/8, fd00::/8",
      TRUNKLINE_DNS_SERVERS: "192.0.2.1,192.0.2.1:5353,2001:db8::1,[2001:db8::1]:53",
      TRUNKLINE_NATS_URL: "nats://a:4222, tls://b:4222",
    });
    expect(config.roles).to.deep.equal(["browser", "actors"]);
    expect(config.egressAllow).to.deep.equal(["10.0.0.0/8", "fd00::/8"]);
    expect(config.dnsServers).to.have.length(4);
    expect(config.natsUrl).to.equal("nats://a:4222,tls://b:4222");
  });

  it("configFromEnvironment() takes the slash off the end of a URL", () => {
    const config = configFromEnvironment({ TRUNKLINE_PUBLIC_URL: "https://a.example/sub/" });
    expect(config.publicUrl).to.equal("https://a.example/sub");
  });

  it("configFromEnvironment() takes an AI endpoint with or without a key", () => {
    const ai = { TRUNKLINE_AI_BASE_URL: "https://a.example/v1", TRUNKLINE_AI_MODEL: "small" };
    expect(configFromEnvironment(ai).ai).to.deep.equal({
      baseUrl: "https://a.example/v1",
      key: undefined,
      model: "small",
    });
  });

  const bounds = [
    ["TRUNKLINE_PORT", "1", "65535", "0", "65536"],
    ["TRUNKLINE_DNS_POLL_SECONDS", "1", "31536000", "0", "31536001"],
    ["TRUNKLINE_DNS_WINDOW_SECONDS", "1", "31536000", "0", "31536001"],
    ["TRUNKLINE_BROWSER_SECONDS_PER_DAY", "0", "31536000", "-1", "31536001"],
    ["TRUNKLINE_SHUTDOWN_SECONDS", "1", "3600", "0", "3601"],
  ] as const;
  for (const [name, min, max, ...outside] of bounds) {
    it(`configFromEnvironment() takes ${name} from ${min} to ${max}`, () => {
      for (const value of [min, max]) configFromEnvironment({ [name]: value });
      for (const value of [...outside, "many", "1.5", " 5"]) {
        expect(() => configFromEnvironment({ [name]: value })).to.throw(
          `${name}: expected a whole number from ${min} to ${max}, found "${value}"`,
        );
      }
    });
  }

  const faults = [
    ["TRUNKLINE_HOST", "a b", "a host name or an IP address"],
    ["TRUNKLINE_PUBLIC_URL", "ftp://a", "an http:// or https:// URL without a query"],
    ["TRUNKLINE_NATS_URL", "http://a:4222", "nats:// or tls:// URLs, separated by commas"],
    ["TRUNKLINE_REPLICAS", "2", '"1" or "3" or "5"'],
    ["TRUNKLINE_ROLES", "gateway,cook", "roles of gateway, actors, browser, separated by commas"],
    ["TRUNKLINE_EGRESS_ALLOW", "10.0.0.1", "CIDR ranges"],
    ["TRUNKLINE_DNS_SERVERS", "dns.example", "IP addresses"],
    ["TRUNKLINE_APPS_DOMAIN", "https://a", "a domain in lower case"],
    ["TRUNKLINE_SIGNUP", "maybe", '"open" or "closed"'],
    ["TRUNKLINE_AI_BASE_URL", "a.example", "an http:// or https:// URL"],
  ] as const;
  for (const [name, value, expected] of faults) {
    it(`configFromEnvironment() refuses a wrong ${name}, naming what is valid`, () => {
      const read = () => configFromEnvironment({ [name]: value });
      expect(read).to.throw(`${name}: expected ${expected}`);
      expect(read).to.throw(`, found "${value}"`);
    });
  }

  it("configFromEnvironment() names every wrong value, each once, on a line of its own", () => {
    const read = () => configFromEnvironment({ TRUNKLINE_PORT: "x", TRUNKLINE_SIGNUP: "y" });
    expect(read).to.throw(/^TRUNKLINE_PORT: [^\n]+\nTRUNKLINE_SIGNUP: [^\n]+$/);
  });

  it("configFromEnvironment() refuses an AI model without an endpoint, and the reverse", () => {
    expect(() => configFromEnvironment({ TRUNKLINE_AI_MODEL: "small" })).to.throw(
      "TRUNKLINE_AI_BASE_URL: expected",
    );
    expect(() => configFromEnvironment({ TRUNKLINE_AI_BASE_URL: "https://a.example" })).to.throw(
      "TRUNKLINE_AI_MODEL: expected",
    );
  });

  it("configFromEnvironment() keeps a credential out of its message", () => {
    const read = () => configFromEnvironment({ TRUNKLINE_NATS_URL: "http://me:secret@a:4222" });
    expect(read).to.throw(/^((?!secret).)*$/);
  });
});
