import { Resolver } from "node:dns/promises";
import { resolve } from "node:path";
import { expect } from "chai";
import express from "express";
import { mapLayout } from "../schemas/data-layout.ts";
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
      natsNkeys: undefined,
      natsTls: undefined,
      replicas: 1,
      layout: mapLayout(() => undefined),
      storeBytes: undefined,
      storeSizes: {
        ...{ packs: undefined, crawl: undefined, renderJobs: undefined },
        ...{ agents: undefined, apps: undefined },
      },
      roles: ["gateway", "actors", "browser"],
      egress: { allow: [], deny: [] },
      browserSecondsPerDay: 600,
      browserIdleSeconds: 60,
      crawlBytesPerAccount: undefined,
      agentLimits: { agents: 10_000, bytes: 1_073_741_824 },
      ai: undefined,
      signup: "open",
      leaveSeconds: 0,
      shutdownSeconds: 20,
      chromium: undefined,
      otlpEndpoint: undefined,
      requestsPerWindow: 1_200,
      gitSizes: { fileBytes: 33_554_432, repoBytes: 1_000_000_000, accountBytes: 8 * 1024 ** 3 },
      gitCa: undefined,
      trustProxy: undefined,
      dnsServers: [],
      dnsPollSeconds: 60,
      dnsWindowSeconds: 172_800,
      appsDomain: "apps.localhost:8787",
      appsPorts: { first: 8788, last: 8887 },
      logLevel: "info",
      metricsToken: undefined,
      metricsPort: undefined,
      secretsKeys: [],
    });
  });

  it("configFromEnvironment() treats an empty value as unset", () => {
    expect(configFromEnvironment({ TRUNKLINE_PORT: "", TRUNKLINE_NATS_URL: "" })).to.include({
      port: 8787,
      natsUrl: undefined,
    });
  });

  it("configFromEnvironment() derives the public URL from host and port", () => {
    const config = configFromEnvironment({ TRUNKLINE_HOST: "::1", TRUNKLINE_PORT: "80" });
    expect(config).to.include({ publicUrl: "http://[::1]:80" });
  });

  it("configFromEnvironment() reads lists, dropping blanks and repetitions of roles", () => {
    const config = configFromEnvironment({
      TRUNKLINE_ROLES: "browser, actors,browser",
      TRUNKLINE_EGRESS_ALLOW: "10.0.0.0/8, fd00::/8",
      TRUNKLINE_EGRESS_DENY: "203.0.113.7/32,2001:db8::/32",
      TRUNKLINE_NATS_URL: "nats://a:4222, tls://b:4222",
    });
    expect(config.roles).to.deep.equal(["browser", "actors"]);
    expect(config.egress.allow).to.deep.equal(["10.0.0.0/8", "fd00::/8"]);
    expect(config.egress.deny).to.deep.equal(["203.0.113.7/32", "2001:db8::/32"]);
    expect(config.natsUrl).to.equal("nats://a:4222,tls://b:4222");
  });

  it("configFromEnvironment() accepts a domain of apps with or without a port, and nothing else", () => {
    for (const domain of ["apps.example.com", "localhost", "apps.example:8443"]) {
      const { appsDomain } = configFromEnvironment({ TRUNKLINE_APPS_DOMAIN: domain });
      expect(appsDomain).to.equal(domain);
    }
    for (const domain of ["https://a.example", "a..b", "A.example", ".a", "a.example/", "a:b"]) {
      expect(() => configFromEnvironment({ TRUNKLINE_APPS_DOMAIN: domain }), domain).to.throw(
        `TRUNKLINE_APPS_DOMAIN: expected a domain in lower case`,
      );
    }
  });

  it("TRUNKLINE_APPS_PORTS is a range, by default the ports after the gateway's own", () => {
    const read = (settings: NodeJS.ProcessEnv) => configFromEnvironment(settings).appsPorts;
    expect(read({ TRUNKLINE_PORT: "65500" })).to.deep.equal({ first: 65_501, last: 65_535 });
    expect(read({ TRUNKLINE_PORT: "65535" })).to.equal(undefined);
    expect(read({ TRUNKLINE_APPS_PORTS: "9000-9999" })).to.deep.equal({ first: 9000, last: 9999 });
    for (const ports of ["9000-10000", "9000", "9001-9000", "0-5", "65530-65536", "a-b"]) {
      expect(() => read({ TRUNKLINE_APPS_PORTS: ports }), ports).to.throw(
        `TRUNKLINE_APPS_PORTS: expected a range of at most 1000 ports, such as "8801-8900", found "${ports}"`,
      );
    }
  });

  it("apps have ports only on a single machine whose platform is not at localhost itself", () => {
    const loopback = { TRUNKLINE_PUBLIC_URL: "http://127.0.0.1:9000/" };
    expect(configFromEnvironment(loopback).appsPorts).to.not.equal(undefined);
    for (const settings of [
      { TRUNKLINE_HOST: "0.0.0.0" },
      { TRUNKLINE_PUBLIC_URL: "http://localhost:8787" },
      { TRUNKLINE_PUBLIC_URL: "http://127.0.0.1.example" },
      { TRUNKLINE_PUBLIC_URL: "https://127.0.0.1" },
      { TRUNKLINE_APPS_DOMAIN: "apps.example" },
      { TRUNKLINE_NATS_URL: "nats://a" },
    ]) {
      expect(configFromEnvironment(settings).appsPorts, JSON.stringify(settings)).to.equal(
        undefined,
      );
      const both = () => configFromEnvironment({ ...settings, TRUNKLINE_APPS_PORTS: "1-5" });
      expect(both).to.throw("TRUNKLINE_APPS_PORTS: expected no ports of apps, which need");
    }
  });

  it("configFromEnvironment() removes the slash at the end of a URL", () => {
    const config = configFromEnvironment({ TRUNKLINE_PUBLIC_URL: "https://a.example/sub/" });
    expect(config.publicUrl).to.equal("https://a.example/sub");
  });

  it("configFromEnvironment() accepts an AI endpoint with or without a key", () => {
    const ai = { TRUNKLINE_AI_BASE_URL: "https://a.example/v1/", TRUNKLINE_AI_MODEL: "small" };
    const expected = { baseUrl: "https://a.example/v1", key: undefined, model: "small" };
    expect(configFromEnvironment(ai).ai).to.deep.equal(expected);
    const { ai: withKey } = configFromEnvironment({ ...ai, TRUNKLINE_AI_KEY: "secret" });
    expect(withKey).to.deep.equal({ ...expected, key: "secret" });
  });

  it("configFromEnvironment() refuses an incomplete AI endpoint, names the missing settings, and does not repeat the key", () => {
    const url = /^TRUNKLINE_AI_BASE_URL: expected [^\n]+, found nothing$/m;
    const model = /^TRUNKLINE_AI_MODEL: expected [^\n]+, found nothing$/m;
    const part = (name: string, value: string) => () => configFromEnvironment({ [name]: value });
    expect(part("TRUNKLINE_AI_MODEL", "small")).to.throw(url);
    expect(part("TRUNKLINE_AI_BASE_URL", "https://a.example")).to.throw(model);
    for (const missing of [url, model, /^((?!secret)[\s\S])*$/]) {
      expect(part("TRUNKLINE_AI_KEY", "secret")).to.throw(missing);
    }
  });

  it("TRUNKLINE_LOG_LEVEL is one of six", () => {
    const read = (value: string) => configFromEnvironment({ TRUNKLINE_LOG_LEVEL: value });
    expect(read("trace").logLevel).to.equal("trace");
    expect(() => read("verbose")).to.throw(
      'TRUNKLINE_LOG_LEVEL: expected "trace" or "debug" or "info" or "warn" or "error" or "fatal", found "verbose"',
    );
  });

  it("TRUNKLINE_METRICS_PORT differs from the other ports", () => {
    const read = (value: string) => configFromEnvironment({ TRUNKLINE_METRICS_PORT: value });
    expect(read("9090").metricsPort).to.equal(9090);
    expect(() => read("8787")).to.throw("expected another port than TRUNKLINE_PORT");
    for (const value of ["0", "65536", "x"]) {
      expect(() => read(value)).to.throw("TRUNKLINE_METRICS_PORT: expected a whole number from 1");
    }
  });

  it("TRUNKLINE_METRICS_TOKEN has 16 to 256 characters, and is in no error", () => {
    const read = (value: string) => configFromEnvironment({ TRUNKLINE_METRICS_TOKEN: value });
    for (const token of ["a".repeat(16), "b".repeat(256), "abcdefghijklm+/-._~="]) {
      expect(read(token).metricsToken).to.equal(token);
    }
    for (const token of [
      "a".repeat(15),
      "b".repeat(257),
      "with a space in it",
      "ünfassbar-geheim",
    ]) {
      expect(() => read(token)).to.throw(
        /^TRUNKLINE_METRICS_TOKEN: expected 16 to 256 letters, digits or -\._~\+\/, found another value$/,
      );
    }
  });

  it("configFromEnvironment() accepts secret keys, and does not repeat refused ones", () => {
    const keys = [1, 2].map((byte) => Buffer.alloc(32, byte).toString("base64"));
    const read = (value: string) => configFromEnvironment({ TRUNKLINE_SECRETS_KEY: value });
    expect(read(keys.join(", ")).secretsKeys).to.deep.equal(keys);
    expect(() => read(`${keys[0]},slip`)).to.throw(
      /^TRUNKLINE_SECRETS_KEY: expected keys of 32 bytes in base64[^\n]*, found another value$/,
    );
  });

  const bounds = [
    ["TRUNKLINE_PORT", "1", "65535", "0", "65536"],
    ["TRUNKLINE_BROWSER_SECONDS_PER_DAY", "0", "31536000", "-1", "31536001"],
    ["TRUNKLINE_BROWSER_IDLE_SECONDS", "0", "31536000", "-1", "31536001"],
    ["TRUNKLINE_CRAWL_BYTES_PER_ACCOUNT", "0", "100000000000000", "-1", "100000000000001"],
    ["TRUNKLINE_AGENTS_PER_ACCOUNT", "1", "100000", "0", "100001"],
    ["TRUNKLINE_AGENT_BYTES_PER_ACCOUNT", "0", "100000000000000", "-1", "100000000000001"],
    ["TRUNKLINE_REQUESTS_PER_5_MINUTES", "0", "1000000000", "-1", "1000000001"],
    ["TRUNKLINE_GIT_FILE_BYTES", "1000000", "134217728", "999999", "134217729"],
    ["TRUNKLINE_GIT_REPO_BYTES", "1000000", "2000000000", "999999", "2000000001"],
    ["TRUNKLINE_GIT_BYTES_PER_ACCOUNT", "0", "100000000000000", "-1", "100000000000001"],
    ["TRUNKLINE_LEAVE_SECONDS", "0", "300", "-1", "301"],
    ["TRUNKLINE_SHUTDOWN_SECONDS", "1", "3600", "0", "3601"],
  ] as const;
  for (const [name, min, max, ...outside] of bounds) {
    it(`configFromEnvironment() accepts ${name} from ${min} to ${max}`, () => {
      for (const value of [min, max]) configFromEnvironment({ [name]: value });
      for (const value of [...outside, "many", "1.5", " 5"]) {
        expect(() => configFromEnvironment({ [name]: value })).to.throw(
          `${name}: expected a whole number from ${min} to ${max}, found "${value}"`,
        );
      }
    });
  }

  it("configFromEnvironment() reads the layout of the data, from the smallest numbers to the largest", () => {
    for (const [shards, stateStreams, others] of [
      [8, 1, 1],
      [4_096, 64, 16],
    ] as const) {
      const { layout } = configFromEnvironment({
        TRUNKLINE_SHARDS: String(shards),
        TRUNKLINE_STATE_STREAMS: String(stateStreams),
        TRUNKLINE_MAIL_STREAMS: String(others),
        TRUNKLINE_TASK_STREAMS: String(others),
        TRUNKLINE_AGENT_STREAMS: String(others),
        TRUNKLINE_PACK_STREAMS: String(others),
      });
      expect(layout).to.deep.equal({
        ...{ shards, stateStreams, mailStreams: others, taskStreams: others },
        ...{ agentStreams: others, packStreams: others },
      });
    }
  });

  const faults = [
    ["TRUNKLINE_HOST", "a b", "a host name or an IP address"],
    ["TRUNKLINE_PUBLIC_URL", "ftp://a", "an http:// or https:// URL without a query"],
    ["TRUNKLINE_NATS_URL", "http://a:4222", "nats:// or tls:// URLs, separated by commas"],
    ["TRUNKLINE_REPLICAS", "2", '"1" or "3" or "5"'],
    ...["4", "100", "8192", "64.0", "-64", "0x40", "many"].map(
      (value) => ["TRUNKLINE_SHARDS", value, "a power of two from 8 to 4096"] as const,
    ),
    ...["0", "3", "128", "one"].map(
      (value) => ["TRUNKLINE_STATE_STREAMS", value, "a power of two from 1 to 64"] as const,
    ),
    ["TRUNKLINE_ROLES", "gateway,cook", "roles of gateway, actors, browser, separated by commas"],
    ...["10.0.0.1", "10.0.0.0/33", "example.com/8", "fd00::/129", "10.0.0.0/-1", "/8"].flatMap(
      (value) => [
        ["TRUNKLINE_EGRESS_ALLOW", value, "CIDR ranges"] as const,
        ["TRUNKLINE_EGRESS_DENY", value, "CIDR ranges"] as const,
      ],
    ),
    ["TRUNKLINE_AI_BASE_URL", "a.example", "an http:// or https:// URL"],
    ["TRUNKLINE_REPLICAS", "3", '"1" without a cluster, which TRUNKLINE_NATS_URL names'],
    ["TRUNKLINE_NATS_CREDS", "a.creds", "TRUNKLINE_NATS_URL with it"],
    ["TRUNKLINE_NATS_NKEYS", "a.nk", "TRUNKLINE_NATS_URL with it"],
    ["TRUNKLINE_NATS_CA", "ca.pem", "TRUNKLINE_NATS_URL with it"],
    ...["yes", "true", "1", "10.0.0", "10.0.0.0/0", "10.0.0.0/33", "fe80::1%eth0", "loopback,"].map(
      (value) => ["TRUNKLINE_TRUST_PROXY", value, "addresses, CIDR ranges or loopback"] as const,
    ),
    ...["dns.example", "10.0.0", "10.0.0.1:0", "10.0.0.1:65536", "[fd00::1", "[10.0.0.1]:53"].map(
      (value) => ["TRUNKLINE_DNS_SERVERS", value, "IP addresses"] as const,
    ),
    ["TRUNKLINE_DNS_POLL_SECONDS", "0", "a whole number from 1"],
    ["TRUNKLINE_DNS_WINDOW_SECONDS", "-1", "a whole number from 1"],
  ] as const;
  for (const [name, value, expected] of faults) {
    it(`configFromEnvironment() refuses "${value}" as ${name}, and names valid values`, () => {
      const read = () => configFromEnvironment({ [name]: value });
      expect(read).to.throw(`${name}: expected ${expected}`);
      expect(read).to.throw(`, found "${value}"`);
    });
  }

  it("configFromEnvironment() accepts the same proxies as Express", () => {
    const value = "loopback, linklocal,uniquelocal, 10.0.0.1,10.0.0.0/1, 10.0.0.0/32,::1, fd00::/8";
    const { trustProxy } = configFromEnvironment({ TRUNKLINE_TRUST_PROXY: value });
    expect(trustProxy).to.equal(value.replaceAll(" ", ""));
    expect(() => express().set("trust proxy", trustProxy)).to.not.throw();
  });

  it("configFromEnvironment() accepts the same DNS servers as Node's resolver", () => {
    const servers = ["10.0.0.53", "10.0.0.53:5353", "fd00::1", "[fd00::1]", "[fd00::1]:65535"];
    const { dnsServers } = configFromEnvironment({ TRUNKLINE_DNS_SERVERS: servers.join(", ") });
    expect(dnsServers).to.deep.equal(servers);
    expect(() => new Resolver().setServers(dnsServers)).to.not.throw();
  });

  it("configFromEnvironment() accepts replicas and credentials for a cluster", () => {
    const config = configFromEnvironment({
      TRUNKLINE_NATS_URL: "nats://a:4222",
      TRUNKLINE_REPLICAS: "3",
      TRUNKLINE_NATS_CREDS: "a.creds",
    });
    expect(config).to.include({ replicas: 3, natsCredsFile: "a.creds", natsTls: undefined });
  });

  it("configFromEnvironment() accepts the seeds and certificates of a cluster, and refuses half of them", () => {
    const environment = {
      TRUNKLINE_NATS_URL: "nats://a:4222",
      TRUNKLINE_NATS_NKEYS: "bus",
      TRUNKLINE_NATS_CA: "ca.pem",
      TRUNKLINE_NATS_CERT: "one.pem",
      TRUNKLINE_NATS_CERT_KEY: "one.key",
    };
    const { natsNkeys, natsTls } = configFromEnvironment(environment);
    expect(natsNkeys).to.equal("bus");
    expect(natsTls).to.deep.equal({ caFile: "ca.pem", certFile: "one.pem", keyFile: "one.key" });
    const faults = [
      [{ TRUNKLINE_NATS_CERT_KEY: "" }, "TRUNKLINE_NATS_CERT_KEY: expected the private key"],
      [{ TRUNKLINE_NATS_CERT: "" }, "TRUNKLINE_NATS_CERT: expected the certificate"],
      [{ TRUNKLINE_NATS_CREDS: "a.creds" }, "TRUNKLINE_NATS_NKEYS: expected nothing beside"],
    ] as const;
    for (const [change, text] of faults) {
      expect(() => configFromEnvironment({ ...environment, ...change })).to.throw(text);
    }
  });

  it("configFromEnvironment() names each invalid value once, on a separate line", () => {
    const read = () => configFromEnvironment({ TRUNKLINE_PORT: "x", TRUNKLINE_REPLICAS: "y" });
    expect(read).to.throw(/^TRUNKLINE_PORT: [^\n]+\nTRUNKLINE_REPLICAS: [^\n]+$/);
  });

  it("configFromEnvironment() keeps a credential out of its message", () => {
    const read = () => configFromEnvironment({ TRUNKLINE_NATS_URL: "http://me:secret@a:4222" });
    expect(read).to.throw(/^((?!secret).)*$/);
  });
});
