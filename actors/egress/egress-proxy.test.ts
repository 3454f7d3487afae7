import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { EGRESS_FAILURES_MAX, EGRESS_HEADER_BYTES_MAX } from "../../schemas/limits.ts";
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

describe("EgressProxy", () => {
  describe("refuses", () => {
    const addresses = [
      "127.0.0.1",
      "[::1]",
      "[::ffff:127.0.0.1]",
      "169.254.169.254",
      "2130706433",
      "0x7f.1",
      "inside.test",
      "both.test",
      "0.0.0.0",
    ];
    for (const host of addresses) {
      it(`http://${host}/ with 403 and a label`, async () => {
        await using proxy = await openProxy();
        const answer = await ask(proxy, `http://${host}/`);
        expect(answer.status).to.equal(403);
        expect(answer.headers["x-trunkline-egress"]).to.equal("refused");
        expect(answer.body).not.to.match(/loopback|private|10\.0/);
        expect(proxy.failureOf(`http://${host}/`)).to.include({
          code: "address_refused",
          port: 80,
        });
      });

      it(`CONNECT ${host}:443 with 403 and a label`, async () => {
        await using proxy = await openProxy();
        const reply = await talk(proxy, connectTo(proxy, `${host}:443`));
        expect(reply).to.match(/^HTTP\/1.1 403 .*\r\nX-Trunkline-Egress: refused\r\n/);
        expect(proxy.failureOf(`https://${host}/`)).to.include({
          code: "address_refused",
          port: 443,
        });
      });
    }

    it("a blocked port", async () => {
      await using proxy = await openProxy();
      expect((await ask(proxy, "http://open.test:25/")).status).to.equal(403);
      expect(await talk(proxy, connectTo(proxy, "open.test:22"))).to.match(/^HTTP\/1.1 403 /);
      expect(proxy.failureOf("http://open.test:25/")?.detail).to.equal("port 25 is blocked");
    });

    it("a redirect's target, being a request of its own", async () => {
      await using origin = await startHttpServer((_request, response) =>
        response.writeHead(302, { Location: "http://127.0.0.1/" }).end(),
      );
      await using proxy = await openProxy();
      const answer = await ask(proxy, `http://open.test:${origin.port}/`);
      expect(answer.status).to.equal(302);
      expect((await ask(proxy, answer.headers.location ?? "")).status).to.equal(403);
    });

    for (const authority of [
      "open.test",
      "open.test:",
      "open.test:65536",
      "open.test:80/x",
      "user@open.test:80",
      "[::1:80",
      ":80",
      "open.test:80:80",
    ]) {
      it(`CONNECT ${authority} as malformed`, async () => {
        await using proxy = await openProxy();
        expect(await talk(proxy, connectTo(proxy, authority))).to.match(/^HTTP\/1.1 400 /);
      });
    }

    it("whoever does not know the credentials", async () => {
      await using proxy = await openProxy();
      await using other = await openProxy();
      const challenge = /^HTTP\/1.1 407 [\s\S]*Proxy-Authenticate: Basic /;
      for (const header of ["", authorization(other), "Proxy-Authorization: Basic\r\n"]) {
        expect(
          await talk(proxy, `GET http://open.test/ HTTP/1.1\r\nHost: open.test\r\n${header}\r\n`),
        ).to.match(challenge);
        expect(
          await talk(proxy, `CONNECT open.test:80 HTTP/1.1\r\nHost: open.test:80\r\n${header}\r\n`),
        ).to.match(challenge);
      }
      expect(proxy.bytes).to.deep.equal({ received: 0, sent: 0 });
    });

    it("headers past the limit, either way", async () => {
      await using origin = await startHttpServer((request, response) => {
        const length = Number(request.headers["x-length"]);
        if (length > 0) response.setHeader("X-Long", "x".repeat(length));
        response.end();
      });
      await using proxy = await openProxy();
      const url = `http://open.test:${origin.port}/`;
      const most = EGRESS_HEADER_BYTES_MAX - 1_024;
      expect((await ask(proxy, url, { headers: { "X-Length": String(most) } })).status).to.equal(
        200,
      );
      expect(
        (await ask(proxy, url, { headers: { "X-Length": String(EGRESS_HEADER_BYTES_MAX) } }))
          .status,
      ).to.equal(502);
      expect(codes(proxy)).to.deep.equal(["network_failed"]);
      expect(
        (await ask(proxy, url, { headers: { "X-Long": "x".repeat(EGRESS_HEADER_BYTES_MAX) } }))
          .status,
      ).to.equal(431);
    });
  });

  describe("resolves a name", () => {
    it("once, and dials what it checked, whatever the name says later", async () => {
      await using open = await startHttpServer((_request, response) => response.end("open"));
      let lookups = 0;
      await using proxy = await openProxy(
        {},
        { lookup: async () => (lookups++ === 0 ? ["127.0.0.2"] : ["127.0.0.1"]) },
      );
      const url = `http://rebinding.test:${open.port}/`;
      const answers = await Promise.all([
        ask(proxy, url),
        ask(proxy, url),
        ask(proxy, url, { method: "POST" }),
      ]);
      expect(answers.map((answer) => answer.body)).to.deep.equal(["open", "open", "open"]);
      expect(lookups).to.equal(1);
    });

    const failures = [
      ["nothing.test", 80, 502, "name_not_resolved"],
      ["unknown.test", 80, 502, "name_not_resolved"],
    ] as const;
    for (const [host, port, status, code] of failures) {
      it(`and answers ${status} ${code} for ${host}`, async () => {
        await using proxy = await openProxy();
        const answer = await ask(proxy, `http://${host}:${port}/`);
        expect(answer.status).to.equal(status);
        expect(answer.headers["x-trunkline-egress"]).to.equal(code);
        expect(await talk(proxy, connectTo(proxy, `${host}:443`))).to.include(
          `X-Trunkline-Egress: ${code}`,
        );
        expect(proxy.failureOf(`https://${host}`)).to.include({ code });
      });
    }

    it("within its deadline", async () => {
      await using proxy = await openProxy(
        {},
        { lookup: () => new Promise(() => {}), resolveMs: 20 },
      );
      const answer = await ask(proxy, "http://slow.test/");
      expect([answer.status, codes(proxy)]).to.deep.equal([504, ["navigation_timed_out"]]);
    });
  });

  describe("with a cap on bytes", () => {
    it("passes what fits, to the byte", async () => {
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

    it("cuts every connection past it, refuses more, and starts anew with the next task", async () => {
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

  it("opens as many connections at once as the limit says, and no more", async () => {
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

  it("accepts twice as many clients as that, and drops one more", async () => {
    await using proxy = await openProxy({ connectionsMax: 2 });
    const clients = Array.from({ length: 5 }, () => connect(portOf(proxy), "127.0.0.1"));
    const dropped = await Promise.race(clients.map((client) => gone(client).then(() => client)));
    expect(clients.filter((client) => client.destroyed)).to.deep.equal([dropped]);
    for (const client of clients) client.destroy();
  });

  it("begin() starts counters and failures anew, and leaves connections as they are", async () => {
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

  it("remembers the latest failures, as many as the limit says", async () => {
    await using proxy = await openProxy();
    for (let index = 0; index <= EGRESS_FAILURES_MAX; index += 1)
      await ask(proxy, `http://unknown-${index}.test/`);
    await ask(proxy, "http://unknown-5.test/");
    expect(proxy.failures).to.have.lengthOf(EGRESS_FAILURES_MAX);
    expect(proxy.failures.at(-1)?.host).to.equal("unknown-5.test");
    expect(proxy.failureOf("http://unknown-0.test/")).to.equal(undefined);
  });

  it("lets go of the origin when the client leaves, answered or not", async () => {
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

  it("stops connecting when the client leaves", async () => {
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<string[]>();
    await using origin = await startTcpServer(() => {});
    await using proxy = await openProxy(
      {},
      {
        lookup: () => {
          asked.resolve();
          return answer.promise;
        },
      },
    );
    const client = connect(portOf(proxy), "127.0.0.1");
    client.write(connectTo(proxy, `late.test:${origin.port}`));
    await asked.promise;
    client.destroy();
    await turns(20);
    answer.resolve(["127.0.0.2"]);
    await turns(20);
    expect(origin.accepted()).to.equal(0);
    expect(proxy.failures).to.deep.equal([]);
  });

  it("close() leaves no socket, on either side", async () => {
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
