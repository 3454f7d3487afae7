import { expect } from "chai";
import { EGRESS_HEADER_BYTES_MAX } from "../../schemas/limits.ts";
import {
  ask,
  authorization,
  codes,
  connectTo,
  openProxy,
  talk,
} from "../../scripts/testing/egress-proxy-client.ts";
import { startHttpServer } from "../../scripts/testing/loopback-server.ts";

describe("EgressProxy refuses", () => {
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

  it("the target of a redirect, which is a separate request", async () => {
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

  it("clients without the credentials", async () => {
    await using proxy = await openProxy();
    await using other = await openProxy();
    const challenge = /^HTTP\/1.1 407 [\s\S]*Proxy-Authenticate: Basic /;
    for (const header of ["", authorization(other), "Proxy-Authorization: Basic\r\n"]) {
      // The connection stays open for a GET, which a browser repeats with its credentials.
      for (const method of ["GET", "PUT"]) {
        const head = `${method} http://open.test/ HTTP/1.1\r\nHost: open.test\r\n${header}`;
        const close = method === "GET" ? "Connection: close\r\n" : "";
        expect(await talk(proxy, `${head}${close}\r\n`)).to.match(challenge);
      }
      expect(
        await talk(proxy, `CONNECT open.test:80 HTTP/1.1\r\nHost: open.test:80\r\n${header}\r\n`),
      ).to.match(challenge);
    }
    expect(proxy.bytes).to.deep.equal({ received: 0, sent: 0 });
  });

  it("headers past the limit, in requests and responses", async () => {
    await using origin = await startHttpServer((request, response) => {
      const length = Number(request.headers["x-length"]);
      if (length > 0) response.setHeader("X-Long", "x".repeat(length));
      response.end();
    });
    await using proxy = await openProxy();
    const url = `http://open.test:${origin.port}/`;
    const most = EGRESS_HEADER_BYTES_MAX - 1_024;
    expect((await ask(proxy, url, { headers: { "X-Length": String(most) } })).status).to.equal(200);
    expect(
      (await ask(proxy, url, { headers: { "X-Length": String(EGRESS_HEADER_BYTES_MAX) } })).status,
    ).to.equal(502);
    expect(codes(proxy)).to.deep.equal(["network_failed"]);
    expect(
      (await ask(proxy, url, { headers: { "X-Long": "x".repeat(EGRESS_HEADER_BYTES_MAX) } }))
        .status,
    ).to.equal(431);
  });
});

describe("EgressProxy resolves a name", () => {
  it("once, and dials the checked address, whatever the name resolves to later", async () => {
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
    await using proxy = await openProxy({}, { lookup: () => new Promise(() => {}), resolveMs: 20 });
    const answer = await ask(proxy, "http://slow.test/");
    expect([answer.status, codes(proxy)]).to.deep.equal([504, ["navigation_timed_out"]]);
  });
});
