import { createServer as createTlsServer } from "node:https";
import { buffer, text } from "node:stream/consumers";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { expect } from "chai";
import { EGRESS_REDIRECTS_MAX } from "../../schemas/limits.ts";
import { listen, startHttpServer, startTcpServer } from "../../scripts/testing/loopback-server.ts";
import { selfSignedCertificate } from "../../scripts/testing/self-signed-certificate.ts";
import { until } from "../../scripts/testing/until.ts";
import { createAddressPolicy } from "./address-policy.ts";
import { EgressError } from "./egress-error.ts";
import { EgressAgents, type EgressFetchOptions, egressFetch } from "./egress-fetch.ts";
import { createEgressGuard, type EgressGuard } from "./egress-guard.ts";

const guard = createEgressGuard({
  policy: createAddressPolicy({ allow: ["127.0.0.2/32"] }),
  lookup: async (name) => (name === "inside.test" ? ["127.0.0.1"] : ["127.0.0.2"]),
});

describe("egressFetch", () => {
  let agents: EgressAgents;
  beforeEach(() => {
    agents = new EgressAgents({ guard });
  });
  afterEach(() => agents.close());

  it("egressFetch() sends method, headers and body, and returns status, headers and body", async () => {
    await using origin = await startHttpServer(async (request, response) => {
      response.writeHead(201, {
        "Set-Cookie": ["a=1", "b=2"],
        "X-Seen": `${request.method} ${request.url} ${request.headers["x-asked"]}`,
      });
      response.end(await text(request));
    });
    const answer = await get(`http://open.test:${origin.port}/a?b#c`, {
      method: "post",
      headers: { "X-Asked": "1" },
      body: "grüße",
    });
    expect(answer.status).to.equal(201);
    expect(answer.url).to.equal(`http://open.test:${origin.port}/a?b#c`);
    expect(answer.headers.get("x-seen")).to.equal("POST /a?b 1");
    expect(answer.headers.getSetCookie()).to.deep.equal(["a=1", "b=2"]);
    expect(await text(answer.body)).to.equal("grüße");
  });

  it("egressFetch() counts lookups of names for `lookupOwner`, and otherwise for its agents", async () => {
    await using origin = await startHttpServer((_, response) => void response.end());
    const owners: unknown[] = [];
    const watched: EgressGuard = {
      ...guard,
      connect(target, options) {
        owners.push(options.owner);
        return guard.connect(target, options);
      },
    };
    const shared = new EgressAgents({ guard: watched });
    try {
      for (const given of [{ lookupOwner: "an account" }, {}]) {
        const headers = { Connection: "close" };
        const url = `http://open.test:${origin.port}/`;
        await text((await get(url, { agents: shared, headers, ...given })).body);
      }
      expect(owners).to.deep.equal(["an account", shared]);
    } finally {
      shared.close();
    }
  });

  const encodings = {
    gzip: gzipSync,
    deflate: deflateSync,
    br: brotliCompressSync,
    zstd: zstdCompressSync,
  };
  for (const [encoding, compress] of Object.entries(encodings)) {
    it(`egressFetch() decodes ${encoding}, and counts the decoded bytes`, async () => {
      await using origin = await startHttpServer((request, response) => {
        expect(request.headers["accept-encoding"]).to.include(encoding);
        response
          .writeHead(200, { "Content-Encoding": encoding })
          .end(request.method === "HEAD" ? "" : compress(Buffer.alloc(100_000, "x")));
      });
      const url = `http://open.test:${origin.port}/`;
      expect(await text((await get(url, { bytesMax: 100_000 })).body)).to.equal(
        "x".repeat(100_000),
      );
      expect(await text((await get(url, { method: "HEAD" })).body)).to.equal("");
      const tooLong = await get(url, { bytesMax: 99_999 });
      expect(await refusalOf(buffer(tooLong.body))).to.include({ code: "transfer_too_large" });
    });
  }

  it("egressFetch() fails for a body that cannot be decoded or ends early", async () => {
    await using garbled = await startHttpServer((_request, response) =>
      response.writeHead(200, { "Content-Encoding": "gzip" }).end("plain"),
    );
    expect(await refusalOf(text((await get(`http://open.test:${garbled.port}/`)).body))).to.include(
      { code: "network_failed" },
    );
    await using short = await startTcpServer((socket) =>
      socket.end("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"),
    );
    expect(await refusalOf(text((await get(`http://open.test:${short.port}/`)).body))).to.include({
      code: "connection_closed",
    });
  });

  for (const url of [
    "http://127.0.0.1/",
    "http://inside.test/",
    "http://169.254.169.254/",
    "https://[::1]/",
    "http://open.test:25/",
    "file:///etc/passwd",
    "ftp://open.test/",
    "no address",
  ]) {
    it(`egressFetch() refuses ${url}`, async () => {
      expect(await refusalOf(get(url))).to.include({ code: "address_refused" });
    });
  }

  for (const location of [
    "http://127.0.0.1/",
    "//inside.test/",
    "file:///etc/passwd",
    "https://169.254.169.254/",
  ]) {
    it(`egressFetch() refuses to follow a redirect to ${location}`, async () => {
      await using origin = await startHttpServer((_request, response) =>
        response.writeHead(302, { Location: location }).end(),
      );
      expect(await refusalOf(get(`http://open.test:${origin.port}/`))).to.include({
        code: "address_refused",
      });
    });
  }

  it("egressFetch() follows redirects up to the limit and no more", async () => {
    await using origin = await startHttpServer((request, response) => {
      const left = Number(request.url?.slice(1));
      if (left > 0) response.writeHead(302, { Location: `/${left - 1}` });
      response.end("there");
    });
    const base = `http://open.test:${origin.port}`;
    const answer = await get(`${base}/${EGRESS_REDIRECTS_MAX}`);
    expect([answer.url, answer.redirects, await text(answer.body)]).to.deep.equal([
      `${base}/0`,
      EGRESS_REDIRECTS_MAX,
      "there",
    ]);
    expect(await refusalOf(get(`${base}/${EGRESS_REDIRECTS_MAX + 1}`))).to.include({
      code: "too_many_redirects",
    });
    const first = await get(`${base}/1`, { redirectsMax: 0 });
    expect([first.status, first.headers.get("location")]).to.deep.equal([302, "/0"]);
    first.body.destroy();
  });

  const redirects = [
    [301, "POST", "GET", ""],
    [302, "POST", "GET", ""],
    [303, "PUT", "GET", ""],
    [303, "HEAD", "HEAD", ""],
    [307, "POST", "POST", "body"],
    [308, "PUT", "PUT", "body"],
  ] as const;
  for (const [status, method, becomes, body] of redirects) {
    it(`egressFetch() turns ${method} into ${becomes} on ${status}`, async () => {
      await using origin = await startHttpServer(async (request, response) => {
        if (request.url === "/") return response.writeHead(status, { Location: "/next" }).end();
        return response
          .writeHead(200, { "X-Method": request.method, "X-Body": await text(request) })
          .end();
      });
      const answer = await get(`http://open.test:${origin.port}/`, {
        method,
        ...(method !== "HEAD" && { body: "body" }),
      });
      expect([answer.headers.get("x-method"), answer.headers.get("x-body")]).to.deep.equal([
        becomes,
        body,
      ]);
    });
  }

  it("egressFetch() sends credentials only to their origin", async () => {
    await using other = await startHttpServer((request, response) =>
      response.end(JSON.stringify(request.headers)),
    );
    await using origin = await startHttpServer((request, response) => {
      if (request.url === "/away")
        response.writeHead(302, { Location: `http://open.test:${other.port}/` });
      if (request.url === "/stay") response.writeHead(302, { Location: "/here" });
      response.end(JSON.stringify(request.headers));
    });
    const headers = { Authorization: "Bearer x", Cookie: "a=1", Accept: "text/plain" };
    const seen = async (path: string) =>
      JSON.parse(
        await text((await get(`http://open.test:${origin.port}${path}`, { headers })).body),
      );
    expect(await seen("/stay")).to.include({
      authorization: "Bearer x",
      cookie: "a=1",
      accept: "text/plain",
    });
    expect(await seen("/away"))
      .to.include({ accept: "text/plain" })
      .and.not.have.any.keys("authorization", "cookie");
  });

  it("egressFetch() reuses connections, and retries if one turns out closed", async () => {
    let answers = 0;
    await using origin = await startTcpServer((socket) => {
      let served = 0;
      socket.on("data", () => {
        served += 1;
        if (served > 2) socket.resetAndDestroy();
        else socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        answers += served > 2 ? 0 : 1;
      });
    });
    for (let round = 0; round < 4; round += 1) {
      expect(await text((await get(`http://open.test:${origin.port}/`)).body)).to.equal("ok");
    }
    expect([answers, origin.accepted()]).to.deep.equal([4, 2]);
  });

  it("egressFetch() retries once, and never if no more requests may leave", async () => {
    let asked = 0;
    await using origin = await startTcpServer((socket) => {
      socket.on("data", () => {
        asked += 1;
        if (asked > 2) socket.resetAndDestroy();
        else socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      });
    });
    const url = `http://open.test:${origin.port}/`;
    const both = await Promise.all([get(url), get(url)]);
    await Promise.all(both.map(({ body }) => text(body)));
    let left = 0;
    const onSent = () => {
      left += 1;
    };
    const oneMore = async () => false;
    const counted = await get(url, { onSent, oneMore }).catch((error: EgressError) => error);
    expect(counted).to.have.property("code", "connection_closed");
    expect([left, asked]).to.deep.equal([1, 3]);
    const again = await get(url).catch((error: EgressError) => error);
    expect(again).to.have.property("code", "connection_closed");
    expect([asked, origin.accepted()]).to.deep.equal([5, 3]);
  });

  it("egressFetch() does not retry after a response began, nor a request that may have had an effect", async () => {
    let begun = "HTTP/1.1 200";
    await using origin = await startTcpServer((socket) => {
      let served = 0;
      socket.on("data", () => {
        served += 1;
        if (served === 1) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        else socket.end(begun);
      });
    });
    const url = `http://open.test:${origin.port}/`;
    for (const method of ["GET", "POST"]) {
      const accepted = origin.accepted();
      await text((await get(url)).body);
      const failed = await get(url, { method }).catch((error: EgressError) => error);
      expect(failed).to.be.instanceOf(EgressError);
      expect(origin.accepted() - accepted).to.equal(1);
      begun = "";
    }
  });

  it("egressFetch() speaks TLS to a server whose certificate is valid for the name", async () => {
    const certificate = selfSignedCertificate("open.test");
    const server = createTlsServer(certificate, (_request, response) => response.end("secure"));
    await using origin = await listen(server, "127.0.0.2");
    expect(await refusalOf(get(`https://open.test:${origin.port}/`))).to.include({
      code: "certificate_invalid",
    });
    using trusting = new EgressAgents({ guard, ca: certificate.cert });
    const answer = await get(`https://open.test:${origin.port}/`, { agents: trusting });
    expect(await text(answer.body)).to.equal("secure");
    for (const host of ["other.test", "127.0.0.2"]) {
      const refusal = await refusalOf(get(`https://${host}:${origin.port}/`, { agents: trusting }));
      expect(refusal, host).to.include({ code: "certificate_invalid" });
    }
  });

  it("egressFetch() ends when no bytes arrive and when its signal aborts, before or within the body", async () => {
    await using silent = await startTcpServer(() => {});
    const url = `http://open.test:${silent.port}/`;
    expect(await refusalOf(get(url, { idleMs: 20 }))).to.include({ code: "navigation_timed_out" });
    const leaving = new AbortController();
    const fetching = refusalOf(get(url, { signal: leaving.signal }));
    leaving.abort(new Error("left"));
    expect(await fetching).to.have.property("message", "left");
    expect(await refusalOf(get(url, { signal: leaving.signal }))).to.have.property(
      "message",
      "left",
    );

    await using endless = await startHttpServer((_request, response) =>
      response.write("and so on"),
    );
    const reading = new AbortController();
    const answer = await get(`http://open.test:${endless.port}/`, { signal: reading.signal });
    const body = refusalOf(text(answer.body));
    reading.abort(new Error("left"));
    expect(await body).to.have.property("message", "left");
  });

  it("idle connections to other hosts block nothing, and the longest idle are closed", async () => {
    await using origin = await startHttpServer((_request, response) => response.end("ok"));
    await using closed = await startHttpServer(() => {});
    await closed.close();
    using few = new EgressAgents({ guard, idleMax: 3 });
    const ask = async (name: string, port = origin.port) =>
      text((await get(`http://${name}.test:${port}/`, { agents: few })).body);
    for (const name of ["a", "b", "c", "d", "e"]) expect(await ask(name)).to.equal("ok");
    expect(await refusalOf(ask("f", closed.port))).to.include({ code: "connection_refused" });
    const answered: string[] = [];
    const note = async (name: string) => {
      await ask(name);
      answered.push(name);
    };
    await Promise.all(["g", "h", "i", "j"].map(note));
    await until("three are kept", () => origin.open() === 3);
    const accepted = origin.accepted();
    // Responses may arrive in any order. The connection of the first response is idle longest.
    for (const name of answered.slice(1)) await ask(name);
    expect(origin.accepted()).to.equal(accepted);
    await ask("a");
    expect(origin.accepted()).to.equal(accepted + 1);
    await until("three are kept", () => origin.open() === 3);
  });

  it("egressFetch() ends by its signal while it waits for a connection", async () => {
    for (const scheme of ["http", "https"]) {
      const leaving = new AbortController();
      const connecting = Promise.withResolvers<void>();
      const connect = () => {
        connecting.resolve();
        return new Promise<never>(() => {});
      };
      using waiting = new EgressAgents({ guard: { connect } });
      const url = `${scheme}://open.test/`;
      const fetching = refusalOf(get(url, { agents: waiting, signal: leaving.signal }));
      await connecting.promise;
      leaving.abort(new Error("left"));
      expect(await fetching).to.have.property("message", "left");
    }
  });

  it("close() closes all connections", async () => {
    await using origin = await startHttpServer((_request, response) => response.end("ok"));
    await text((await get(`http://open.test:${origin.port}/`)).body);
    expect(origin.open()).to.equal(1);
    agents.close();
    while (origin.open() > 0) await new Promise((resolve) => setImmediate(resolve));
    expect(await refusalOf(get(`http://open.test:${origin.port}/`))).to.be.instanceOf(Error);
  });

  function get(url: string, options: Partial<EgressFetchOptions> = {}) {
    return egressFetch(url, { agents, signal: new AbortController().signal, ...options });
  }
});

async function refusalOf(promise: Promise<unknown>): Promise<EgressError> {
  try {
    await promise;
  } catch (error) {
    return error as EgressError;
  }
  throw new Error("It was not refused");
}
