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
  talk,
} from "../../scripts/testing/egress-proxy-client.ts";
import { startHttpServer, startTcpServer } from "../../scripts/testing/loopback-server.ts";

describe("HttpExchange", () => {
  it("forwards a request with its path, headers and body, and returns the response", async () => {
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

  it("re-encodes a chunked body, and sends a missing one as empty", async () => {
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

  it("streams a large body both ways", async () => {
    await using origin = await startHttpServer((request, response) => request.pipe(response));
    await using proxy = await openProxy();
    const body = "0123456789".repeat(500_000);
    const answer = await ask(proxy, `http://open.test:${origin.port}/`, { method: "POST", body });
    expect(answer.body === body).to.equal(true);
    expect(proxy.bytes.sent).to.be.greaterThan(body.length);
  });

  for (const head of ["200 O\x7fK\r\nX: 1", "200 OK\r\nX: \x7f"]) {
    it(`answers 502 for the head ${JSON.stringify(head)}, which Node parses but cannot send`, async () => {
      await using origin = await startTcpServer((socket) =>
        socket.end(`HTTP/1.1 ${head}\r\nContent-Length: 0\r\n\r\n`),
      );
      await using proxy = await openProxy();
      const answer = await ask(proxy, `http://open.test:${origin.port}/`);
      expect([answer.status, codes(proxy)]).to.deep.equal([502, ["network_failed"]]);
    });
  }

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
    for (let round = 0; round < 3; round += 1) await ask(proxy, `http://open.test:${origin.port}/`);
    expect(origin.accepted()).to.equal(1);
    await ask(proxy, `http://open.test:${origin.port}/`, { method: "POST" });
    expect(origin.accepted()).to.equal(2);
  });

  it("retries over a new connection when a reused one turns out closed", async () => {
    let answers = 0;
    await using origin = await startTcpServer((socket) => {
      let served = false;
      socket.on("data", () => {
        // Behaves like an origin whose idle timeout ends while a request is on its way.
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

  it("does not retry after a response began", async () => {
    await using origin = await startTcpServer((socket) => {
      let served = 0;
      socket.on("data", () => {
        served += 1;
        if (served === 1) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        else socket.end("HTTP/1.1 200");
      });
    });
    await using proxy = await openProxy();
    const url = `http://open.test:${origin.port}/`;
    expect((await ask(proxy, url)).body).to.equal("ok");
    expect((await ask(proxy, url)).status).to.equal(502);
    expect(origin.accepted()).to.equal(1);
  });

  it("retries only once", async () => {
    let asked = 0;
    await using origin = await startTcpServer((socket) => {
      socket.on("data", () => {
        asked += 1;
        if (asked > 1) socket.resetAndDestroy();
        else socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      });
    });
    await using proxy = await openProxy();
    const url = `http://open.test:${origin.port}/`;
    expect((await ask(proxy, url)).body).to.equal("ok");
    expect((await ask(proxy, url)).status).to.equal(502);
    expect([asked, origin.accepted()]).to.deep.equal([3, 2]);
  });

  it("does not forward a label that only the proxy may set", async () => {
    await using origin = await startHttpServer((_request, response) =>
      response.writeHead(403, { "X-Trunkline-Egress": "refused" }).end(),
    );
    await using proxy = await openProxy();
    const answer = await ask(proxy, `http://open.test:${origin.port}/`);
    expect(answer.status).to.equal(403);
    expect(answer.headers).not.to.have.property("x-trunkline-egress");
  });

  it("disconnects the client when the response breaks off, and reports the failure", async () => {
    await using origin = await startTcpServer((socket) => {
      socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"));
    });
    await using proxy = await openProxy();
    const error = await ask(proxy, `http://open.test:${origin.port}/`).catch((cause) => cause);
    expect(error).to.have.property("code", "ECONNRESET");
    expect(codes(proxy)).to.deep.equal(["connection_closed"]);
  });
});

describe("HttpExchange with an origin that fails", () => {
  it("reports a refused connection", async () => {
    const port = await unusedPort();
    await using proxy = await openProxy();
    expect((await ask(proxy, `http://open.test:${port}/`)).headers["x-trunkline-egress"]).to.equal(
      "connection_refused",
    );
    expect(await talk(proxy, connectTo(proxy, `open.test:${port}`))).to.include(
      "connection_refused",
    );
    expect(proxy.failureOf(`http://open.test:${port}/`)).to.include({
      code: "connection_refused",
    });
  });

  it("reports a connection closed without a response", async () => {
    await using origin = await startTcpServer((socket) =>
      socket.once("data", () => socket.destroy()),
    );
    await using proxy = await openProxy();
    expect((await ask(proxy, `http://open.test:${origin.port}/`)).status).to.equal(502);
    expect(codes(proxy)).to.deep.equal(["connection_closed"]);
  });

  it("reports an unrequested switch of protocols", async () => {
    await using origin = await startTcpServer((socket) =>
      socket.once("data", () =>
        socket.write("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
      ),
    );
    await using proxy = await openProxy();
    expect((await ask(proxy, `http://open.test:${origin.port}/`)).status).to.equal(502);
  });

  it("reports a response in another protocol", async () => {
    await using origin = await startTcpServer((socket) => socket.end("220 mail.test ESMTP\r\n"));
    await using proxy = await openProxy();
    expect((await ask(proxy, `http://open.test:${origin.port}/`)).status).to.equal(502);
    expect(codes(proxy)).to.deep.equal(["network_failed"]);
  });

  it("reports an origin that does not respond", async () => {
    await using origin = await startTcpServer(() => {});
    await using proxy = await openProxy({ idleMs: 40 });
    expect((await ask(proxy, `http://open.test:${origin.port}/`)).status).to.equal(504);
    expect(codes(proxy)).to.deep.equal(["navigation_timed_out"]);
    const tunnel = await openTunnel(proxy, `open.test:${origin.port}`);
    await gone(tunnel);
  });
});

async function unusedPort(): Promise<number> {
  await using server = await startTcpServer(() => {});
  return server.port;
}
