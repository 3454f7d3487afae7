import { once } from "node:events";
import { request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { connect, type Socket } from "node:net";
import { buffer, text } from "node:stream/consumers";
import { expect } from "chai";
import { WebSocket, WebSocketServer } from "ws";
import { EGRESS_FAILURES_MAX, EGRESS_HEADER_BYTES_MAX } from "../../schemas/limits.ts";
import { startHttpServer, startTcpServer } from "../../scripts/testing/loopback-server.ts";
import { createAddressPolicy } from "./address-policy.ts";
import { createEgressGuard, type EgressGuardOptions } from "./egress-guard.ts";
import { EgressProxy, type EgressProxyOptions } from "./egress-proxy.ts";

const NAMES: Record<string, string[]> = {
  "open.test": ["127.0.0.2"],
  "inside.test": ["127.0.0.1"],
  "both.test": ["127.0.0.2", "10.0.0.1"],
  "nothing.test": [],
};

describe("EgressProxy", () => {
  describe("for http:", () => {
    it("passes a request on with its path, headers and body, and the answer back", async () => {
      await using origin = await startHttpServer(async (request, response) => {
        const body = await text(request);
        response.writeHead(207, "Some", {
          "X-Seen": `${request.method} ${request.url} ${body}`,
          "Set-Cookie": ["a=1", "b=2"],
        });
        response.end(JSON.stringify(request.rawHeaders));
      });
      await using proxy = await openProxy();
      const answer = await ask(proxy, `http://open.test:${origin.port}/a%20b?c=d`, {
        method: "POST",
        headers: {
          Host: "other.test",
          "X-Kept": "1",
          "Proxy-Connection": "keep-alive",
          "Proxy-Secret": "x",
          Connection: "keep-alive, X-Hop",
          "X-Hop": "y",
          Upgrade: "h2c",
          TE: "trailers",
          "Content-Length": "5",
        },
        body: "hello",
      });
      expect(answer.status).to.equal(207);
      expect(answer.message).to.equal("Some");
      expect(answer.headers["x-seen"]).to.equal("POST /a%20b?c=d hello");
      expect(answer.headers["set-cookie"]).to.deep.equal(["a=1", "b=2"]);
      expect(JSON.parse(answer.body)).to.deep.equal([
        "Host",
        `open.test:${origin.port}`,
        "X-Kept",
        "1",
        "Content-Length",
        "5",
        "Connection",
        "close",
      ]);
    });

    it("frames a chunked body anew, and a missing one as empty", async () => {
      await using origin = await startHttpServer(async (request, response) => {
        response.end(
          `${request.headers["transfer-encoding"]} ${request.headers["content-length"]} ${await text(request)}`,
        );
      });
      await using proxy = await openProxy();
      const url = `http://open.test:${origin.port}/`;
      const chunked = {
        method: "DELETE",
        headers: { "Transfer-Encoding": "chunked" },
        body: "abc",
      };
      expect((await ask(proxy, url, chunked)).body).to.equal("chunked undefined abc");
      expect(
        (await ask(proxy, url, { method: "POST", headers: { "Content-Length": "0" } })).body,
      ).to.equal("undefined 0 ");
      expect((await ask(proxy, url)).body).to.equal("undefined undefined ");
    });

    it("refuses a request with both Content-Length and Transfer-Encoding", async () => {
      await using proxy = await openProxy();
      const reply = await talk(
        proxy,
        `POST http://open.test/ HTTP/1.1\r\nHost: open.test\r\n${authorization(proxy)}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      );
      expect(reply).to.match(/^HTTP\/1.1 400 /);
    });

    for (const target of [
      "/path",
      "https://open.test/",
      "ftp://open.test/",
      "open.test:80",
      "http://",
      "*",
    ]) {
      it(`answers 400 to the target "${target}"`, async () => {
        await using proxy = await openProxy();
        const reply = await talk(
          proxy,
          `GET ${target} HTTP/1.1\r\nHost: x\r\n${authorization(proxy)}\r\n`,
        );
        expect(reply).to.match(/^HTTP\/1.1 400 /);
      });
    }

    it("keeps a connection to an origin for safe requests, and not for others", async () => {
      await using origin = await startHttpServer((_request, response) => response.end("ok"));
      await using proxy = await openProxy();
      for (let round = 0; round < 3; round += 1)
        await ask(proxy, `http://open.test:${origin.port}/`);
      expect(origin.accepted()).to.equal(1);
      await ask(proxy, `http://open.test:${origin.port}/`, { method: "POST" });
      expect(origin.accepted()).to.equal(2);
    });

    it("asks again over a new connection when a kept one turns out closed", async () => {
      let answers = 0;
      await using origin = await startTcpServer((socket) => {
        let served = false;
        socket.on("data", () => {
          // As an origin does whose idle time ended while the request was under way.
          if (served) {
            socket.resetAndDestroy();
            return;
          }
          served = true;
          answers += 1;
          socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        });
      });
      await using proxy = await openProxy();
      for (let round = 0; round < 3; round += 1) {
        expect((await ask(proxy, `http://open.test:${origin.port}/`)).body).to.equal("ok");
      }
      expect(answers).to.equal(3);
      expect(proxy.failures).to.deep.equal([]);
    });

    it("does not pass on a label that only the proxy may give", async () => {
      await using origin = await startHttpServer((_request, response) =>
        response.writeHead(403, { "X-Trunkline-Egress": "refused" }).end(),
      );
      await using proxy = await openProxy();
      const answer = await ask(proxy, `http://open.test:${origin.port}/`);
      expect(answer.status).to.equal(403);
      expect(answer.headers).not.to.have.property("x-trunkline-egress");
    });

    it("cuts the client off when the answer is cut off, and says so", async () => {
      await using origin = await startTcpServer((socket) => {
        socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"));
      });
      await using proxy = await openProxy();
      const error = await ask(proxy, `http://open.test:${origin.port}/`).catch((cause) => cause);
      expect(error).to.have.property("code", "ECONNRESET");
      expect(codes(proxy)).to.deep.equal(["connection_closed"]);
    });
  });

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

  describe("tells how an origin failed:", () => {
    it("refused", async () => {
      const port = await unusedPort();
      await using proxy = await openProxy();
      expect(
        (await ask(proxy, `http://open.test:${port}/`)).headers["x-trunkline-egress"],
      ).to.equal("connection_refused");
      expect(await talk(proxy, connectTo(proxy, `open.test:${port}`))).to.include(
        "connection_refused",
      );
      expect(proxy.failureOf(`http://open.test:${port}/`)).to.include({
        code: "connection_refused",
      });
    });

    it("closed without an answer", async () => {
      await using origin = await startTcpServer((socket) =>
        socket.once("data", () => socket.destroy()),
      );
      await using proxy = await openProxy();
      expect((await ask(proxy, `http://open.test:${origin.port}/`)).status).to.equal(502);
      expect(codes(proxy)).to.deep.equal(["connection_closed"]);
    });

    it("switched protocols unasked", async () => {
      await using origin = await startTcpServer((socket) =>
        socket.once("data", () =>
          socket.write("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
        ),
      );
      await using proxy = await openProxy();
      expect((await ask(proxy, `http://open.test:${origin.port}/`)).status).to.equal(502);
    });

    it("spoke something else", async () => {
      await using origin = await startTcpServer((socket) => socket.end("220 mail.test ESMTP\r\n"));
      await using proxy = await openProxy();
      expect((await ask(proxy, `http://open.test:${origin.port}/`)).status).to.equal(502);
      expect(codes(proxy)).to.deep.equal(["network_failed"]);
    });

    it("silent", async () => {
      await using origin = await startTcpServer(() => {});
      await using proxy = await openProxy({ idleMs: 40 });
      expect((await ask(proxy, `http://open.test:${origin.port}/`)).status).to.equal(504);
      expect(codes(proxy)).to.deep.equal(["navigation_timed_out"]);
      const tunnel = await openTunnel(proxy, `open.test:${origin.port}`);
      await gone(tunnel);
    });
  });

  describe("CONNECT", () => {
    it("carries bytes both ways, however many", async () => {
      await using origin = await startTcpServer((socket) => socket.pipe(socket));
      await using proxy = await openProxy();
      const tunnel = await openTunnel(proxy, `open.test:${origin.port}`);
      const sent = Buffer.alloc(5_000_000, "0123456789");
      tunnel.end(sent);
      expect((await buffer(tunnel)).equals(sent)).to.equal(true);
      expect(proxy.bytes).to.deep.equal({ received: sent.length, sent: sent.length });
    });

    it("passes on bytes that came with the request itself", async () => {
      await using origin = await startTcpServer((socket) => socket.pipe(socket));
      await using proxy = await openProxy();
      const client = connect(portOf(proxy), "127.0.0.1");
      client.write(`${connectTo(proxy, `open.test:${origin.port}`)}early`);
      let received = "";
      client.on("data", (chunk) => {
        received += chunk;
        if (received.endsWith("early")) client.end();
      });
      await once(client, "close");
      expect(received).to.match(/^HTTP\/1.1 200 [\s\S]*\r\n\r\nearly$/);
    });

    it("passes on the end of one side while the other still sends", async () => {
      await using origin = await startTcpServer((socket) => {
        let received = "";
        socket.on("data", (chunk) => {
          received += chunk;
        });
        socket.on("end", () => socket.end(`got ${received}`));
      });
      await using proxy = await openProxy();
      const tunnel = await openTunnel(proxy, `open.test:${origin.port}`);
      tunnel.end("request");
      expect(await text(tunnel)).to.equal("got request");
    });

    it("stops reading from a side while the other does not take it", async () => {
      // More than the buffers of four loopback sockets hold.
      const total = 32 * 1024 * 1024;
      await using origin = await startTcpServer((socket) => socket.end(Buffer.alloc(total)));
      await using proxy = await openProxy();
      const tunnel = await openTunnel(proxy, `open.test:${origin.port}`);
      await once(tunnel, "readable");
      await turns(200);
      expect(proxy.bytes.received).to.be.lessThan(total - 4 * 1024 * 1024);
      expect((await buffer(tunnel)).length).to.equal(total);
    });

    it("carries a WebSocket", async () => {
      await using origin = await startHttpServer(() => {});
      const sockets = new WebSocketServer({ server: origin.server });
      sockets.on("connection", (socket) =>
        socket.on("message", (message) => socket.send(`echo ${message}`)),
      );
      await using proxy = await openProxy();
      const tunnel = await openTunnel(proxy, `open.test:${origin.port}`);
      const socket = new WebSocket(`ws://open.test:${origin.port}/`, {
        createConnection: () => tunnel.resume(),
      });
      await once(socket, "open");
      socket.send("hello");
      const [message] = await once(socket, "message");
      expect(String(message)).to.equal("echo hello");
      socket.close();
      await once(socket, "close");
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

function openProxy(
  options: Partial<EgressProxyOptions> = {},
  guarded: Partial<EgressGuardOptions> = {},
) {
  const policy = createAddressPolicy({ allow: ["127.0.0.2/32"] });
  const lookup = async (name: string) => {
    const addresses = NAMES[name];
    if (addresses === undefined) throw Object.assign(new Error("not found"), { code: "ENOTFOUND" });
    return addresses;
  };
  return EgressProxy.open({ guard: createEgressGuard({ policy, lookup, ...guarded }), ...options });
}

interface Answer {
  status: number | undefined;
  message: string | undefined;
  headers: IncomingMessage["headers"];
  body: string;
}

/** One request through the proxy, over a connection of its own. */
async function ask(
  proxy: EgressProxy,
  url: string,
  options: RequestOptions & { body?: string } = {},
): Promise<Answer> {
  const { body, ...rest } = options;
  const { username, password } = proxy.credentials;
  const sent = httpRequest({
    ...rest,
    host: "127.0.0.1",
    port: portOf(proxy),
    path: url,
    agent: false,
    maxHeaderSize: 2 * EGRESS_HEADER_BYTES_MAX,
    headers: {
      Host: "x",
      ...rest.headers,
      "Proxy-Authorization": `Basic ${btoa(`${username}:${password}`)}`,
    },
  });
  sent.end(body);
  const [answer]: IncomingMessage[] = await once(sent, "response");
  if (answer === undefined) throw new Error("no answer");
  const { statusCode: status, statusMessage: message, headers } = answer;
  return { status, message, headers, body: await text(answer) };
}

/** Sends bytes as they are, and reads until the proxy closes or has answered a head. */
async function talk(proxy: EgressProxy, bytes: string): Promise<string> {
  const client = connect(portOf(proxy), "127.0.0.1");
  client.write(bytes);
  try {
    return await text(client);
  } finally {
    client.destroy();
  }
}

async function openTunnel(proxy: EgressProxy, authority: string): Promise<Socket> {
  const client = connect(portOf(proxy), "127.0.0.1");
  client.write(connectTo(proxy, authority));
  const [chunk] = await once(client, "data");
  client.pause();
  const head = "HTTP/1.1 200 Connection Established\r\n\r\n";
  expect(String(chunk.subarray(0, head.length))).to.equal(head);
  if (chunk.length > head.length) client.unshift(chunk.subarray(head.length));
  return client;
}

function connectTo(proxy: EgressProxy, authority: string): string {
  return `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${authorization(proxy)}\r\n`;
}

function authorization(proxy: EgressProxy): string {
  const { username, password } = proxy.credentials;
  return `Proxy-Authorization: Basic ${btoa(`${username}:${password}`)}\r\n`;
}

function portOf(proxy: EgressProxy): number {
  return Number(new URL(proxy.url).port);
}

function codes(proxy: EgressProxy): string[] {
  return proxy.failures.map((failure) => failure.code);
}

async function unusedPort(): Promise<number> {
  await using server = await startTcpServer(() => {});
  return server.port;
}

/** The socket's close, whether it was ended or reset. */
async function gone(socket: Socket): Promise<void> {
  await new Promise((resolve) => {
    socket
      .resume()
      .on("error", () => {})
      .once("close", resolve);
  });
}

/** Lets what is ready happen: so many turns of the event loop. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
