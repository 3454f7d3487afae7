import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import {
  ask,
  authorization,
  codes,
  connectTo,
  gone,
  openProxy,
  openTunnel,
  portOf,
  talk,
  turns,
} from "../../scripts/testing/egress-proxy-client.ts";
import { startHttpServer, startTcpServer } from "../../scripts/testing/loopback-server.ts";
import { until } from "../../scripts/testing/until.ts";
import { createAddressPolicy } from "./address-policy.ts";
import { EGRESS_FAILURES_MAX } from "./egress-failures.ts";
import { createEgressGuard, type EgressGuard } from "./egress-guard.ts";

describe("EgressProxy", () => {
  it("countLookupsFor() names the owner of later lookups; before, the proxy itself is the owner", async () => {
    await using origin = await startHttpServer((_request, response) => response.end("x"));
    const owners: unknown[] = [];
    const real = createEgressGuard({
      policy: createAddressPolicy({ allow: ["127.0.0.2/32"] }),
      lookup: async () => ["127.0.0.2"],
    });
    const guard: EgressGuard = {
      ...real,
      connect(target, options) {
        owners.push(options.owner);
        return real.connect(target, options);
      },
    };
    await using proxy = await openProxy({ guard });
    await ask(proxy, `http://one.test:${origin.port}/`);
    proxy.countLookupsFor("an account");
    await ask(proxy, `http://two.test:${origin.port}/`);
    expect(owners).to.deep.equal([proxy, "an account"]);
  });

  describe("with a cap on bytes", () => {
    it("passes bytes up to the cap", async () => {
      await using origin = await startHttpServer((_request, response) =>
        response.end("x".repeat(100_000)),
      );
      await using free = await openProxy();
      const url = `http://open.test:${origin.port}/`;
      await ask(free, url);
      const bytesMax = free.bytes.received + free.bytes.sent;
      expect(bytesMax).to.be.greaterThan(100_000);

      await using exact = await openProxy({ bytesMax });
      expect((await ask(exact, url)).body).to.have.lengthOf(100_000);
      expect(exact.failures).to.deep.equal([]);

      await using short = await openProxy({ bytesMax: bytesMax - 1 });
      const error = await ask(short, url).catch((cause) => cause);
      expect(error).to.have.property("code", "ECONNRESET");
      expect(codes(short)).to.deep.equal(["transfer_too_large"]);
    });

    it("closes every connection past the cap, refuses more, and resets with the next task", async () => {
      await using origin = await startTcpServer((socket) => socket.pipe(socket));
      await using proxy = await openProxy({ bytesMax: 2_000 });
      const authority = `open.test:${origin.port}`;
      const [first, second] = await Promise.all([
        openTunnel(proxy, authority),
        openTunnel(proxy, authority),
      ]);
      first.resume().write("x".repeat(1_000));
      for (let got = 0; got < 1_000; ) got += ((await once(first, "data"))[0] as Buffer).length;
      expect(proxy.bytes).to.deep.equal({ received: 1_000, sent: 1_000 });
      const cut = Promise.all([gone(first), gone(second)]);
      first.write("x");
      await cut;
      expect(proxy.failureOf(`http://${authority}`)).to.include({ code: "transfer_too_large" });
      expect(await talk(proxy, connectTo(proxy, authority))).to.match(
        /^HTTP\/1.1 502 .*\r\nX-Trunkline-Egress: transfer_too_large/,
      );

      proxy.begin();
      expect([proxy.bytes, proxy.failures]).to.deep.equal([{ received: 0, sent: 0 }, []]);
      const tunnel = await openTunnel(proxy, authority);
      tunnel.end("again");
      expect(await text(tunnel)).to.equal("again");
    });
  });

  it("opens concurrent connections up to the limit and no more", async () => {
    await using origin = await startTcpServer((socket) => socket.pipe(socket));
    await using proxy = await openProxy({ connectionsMax: 2 });
    const authority = `open.test:${origin.port}`;
    const first = await openTunnel(proxy, authority);
    await openTunnel(proxy, authority);
    expect(await talk(proxy, connectTo(proxy, authority))).to.match(/^HTTP\/1.1 502 /);
    expect((await ask(proxy, `http://${authority}/`)).status).to.equal(502);
    expect(codes(proxy)).to.deep.equal(["network_failed"]);
    first.end();
    await gone(first);
    await openTunnel(proxy, authority);
  });

  it("accepts twice as many clients as connections, and drops one more", async () => {
    await using proxy = await openProxy({ connectionsMax: 2 });
    const clients = Array.from({ length: 5 }, () => connect(portOf(proxy), "127.0.0.1"));
    const dropped = await Promise.race(clients.map((client) => gone(client).then(() => client)));
    expect(clients.filter((client) => client.destroyed)).to.deep.equal([dropped]);
    for (const client of clients) client.destroy();
  });

  it("disconnects a client that sends a request before the last response, and drops both", async () => {
    await using silent = await startTcpServer(() => {});
    await using proxy = await openProxy({ connectionsMax: 1 });
    const request = `GET http://open.test:${silent.port}/ HTTP/1.1\r\nHost: x\r\n${authorization(proxy)}\r\n`;
    const client = connect(portOf(proxy), "127.0.0.1");
    client.write(request + request);
    await gone(client);
    await openTunnel(proxy, `open.test:${silent.port}`);
  });

  it("begin() resets counters and failures, and keeps connections", async () => {
    await using origin = await startTcpServer((socket) => socket.pipe(socket));
    await using proxy = await openProxy();
    const tunnel = await openTunnel(proxy, `open.test:${origin.port}`);
    tunnel.resume().write("12345");
    await once(tunnel, "data");
    await ask(proxy, "http://unknown.test/");
    expect([proxy.bytes, codes(proxy)]).to.deep.equal([
      { received: 5, sent: 5 },
      ["name_not_resolved"],
    ]);
    proxy.begin();
    tunnel.write("123");
    await once(tunnel, "data");
    expect([proxy.bytes, codes(proxy)]).to.deep.equal([{ received: 3, sent: 3 }, []]);
  });

  it("remembers the latest failures up to the limit", async () => {
    await using proxy = await openProxy();
    for (let index = 0; index <= EGRESS_FAILURES_MAX; index += 1)
      await ask(proxy, `http://unknown-${index}.test/`);
    await ask(proxy, "http://unknown-5.test/");
    expect(proxy.failures).to.have.lengthOf(EGRESS_FAILURES_MAX);
    expect(proxy.failures.at(-1)?.host).to.equal("unknown-5.test");
    expect(proxy.failureOf("http://unknown-0.test/")).to.equal(undefined);
  });

  it("closes the connection to the origin when the client disconnects, before or after a response", async () => {
    await using silent = await startTcpServer(() => {});
    await using endless = await startHttpServer((_request, response) =>
      response.write("and so on"),
    );
    await using proxy = await openProxy();
    for (const origin of [silent, endless]) {
      const client = connect(portOf(proxy), "127.0.0.1");
      client.write(
        `GET http://open.test:${origin.port}/ HTTP/1.1\r\nHost: x\r\n${authorization(proxy)}\r\n`,
      );
      const [upstream] = await once(origin.server, "connection");
      client.destroy();
      await gone(upstream);
    }
    expect(proxy.failures).to.deep.equal([]);
  });

  it("stops connecting when the client disconnects", async () => {
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<string[]>();
    await using origin = await startTcpServer(() => {});
    const resolving = createEgressGuard({
      policy: createAddressPolicy({ allow: ["127.0.0.2/32"] }),
      lookup: () => {
        asked.resolve();
        return answer.promise;
      },
    });
    let hasLeft: AbortSignal | undefined;
    const guard: EgressGuard = {
      connect(target, options) {
        hasLeft = options.signal;
        return resolving.connect(target, options);
      },
    };
    await using proxy = await openProxy({ guard });
    const client = connect(portOf(proxy), "127.0.0.1");
    client.write(connectTo(proxy, `late.test:${origin.port}`));
    await asked.promise;
    client.destroy();
    await until("the proxy has noticed that", () => hasLeft?.aborted);
    answer.resolve(["127.0.0.2"]);
    await turns(20);
    expect(origin.accepted()).to.equal(0);
    expect(proxy.failures).to.deep.equal([]);
  });

  it("close() closes all sockets, on either side", async () => {
    await using origin = await startTcpServer((socket) => socket.resume());
    const proxy = await openProxy();
    const authority = `open.test:${origin.port}`;
    const tunnel = await openTunnel(proxy, authority);
    const request = ask(proxy, `http://${authority}/`).catch((error) => error);
    const idle = connect(portOf(proxy), "127.0.0.1");
    await Promise.all([once(idle, "connect"), once(origin.server, "connection")]);
    const closed = [tunnel, idle].map(gone);
    await proxy.close();
    await proxy.close();
    await Promise.all(closed);
    expect(await request).to.be.instanceOf(Error);
    while (origin.open() > 0) await turns(1);
    expect(await talk(proxy, "GET / HTTP/1.1\r\n\r\n").catch((error) => error.code)).to.equal(
      "ECONNREFUSED",
    );
  });
});
