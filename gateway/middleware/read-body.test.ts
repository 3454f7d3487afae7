import { once } from "node:events";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { BODIES_BYTES_MAX, RENDER_BODY_BYTES_MAX } from "../../schemas/limits.ts";
import { type TestGateway, testGateway } from "../testing/test-gateway.ts";

describe("read body", () => {
  let gateway: TestGateway;
  beforeEach(async () => {
    gateway = await testGateway();
  });
  afterEach(() => gateway.stop());
  const tokens = () => `/v4/accounts/${gateway.accountId}/tokens`;
  const post = (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
    gateway.ask(tokens(), {
      method: "POST",
      body,
      headers: { "Content-Type": "application/json", ...headers },
    });

  it("refuses what is not JSON by its type", async () => {
    for (const type of [
      "text/plain",
      "application/x-www-form-urlencoded",
      "application/json; charset=latin1",
      "application/jsonp",
      "",
    ]) {
      const { status, json } = await post("{}", { "Content-Type": type });
      expect(status, type).to.equal(415);
      expect(json?.errors[0]?.message).to.contain("application/json");
    }
  });

  it("reads JSON under its usual names", async () => {
    for (const type of [
      "application/json",
      "Application/JSON; charset=UTF-8",
      'application/json;charset="utf-8"',
      "application/merge-patch+json",
    ]) {
      const { status, json } = await post("{}", { "Content-Type": type });
      expect(status, type).to.equal(400);
      expect(json?.errors[0]?.message).to.contain("Missing");
    }
  });

  it("says where malformed JSON breaks off", async () => {
    const { status, json } = await post('{\n  "name": ,\n}');
    expect(status).to.equal(400);
    expect(json?.errors[0]?.message).to.equal(
      "Cannot read body: expected a value at line 2, column 11 (position 12)",
    );
  });

  it("refuses an empty body, a field given twice, and __proto__", async () => {
    expect((await post("")).json?.errors[0]?.message).to.contain("expected a JSON object");
    const twice = await post('{"name":"a","name":"b","policies":[]}');
    expect(twice.status).to.equal(400);
    expect(twice.json?.errors[0]?.message).to.contain("given twice");
    const proto = await post('{"__proto__":{"name":"a"},"constructor":{"prototype":{"x":1}}}');
    expect(proto.status).to.equal(400);
    expect("x" in {}).to.equal(false);
    const inherited = await post('{"constructor":{"prototype":{"x":1}}}');
    expect(inherited.json?.errors.map(({ source }) => source?.pointer)).to.include("/constructor");
  });

  it("unpacks gzip up to the limit, and refuses an encoding it does not know", async () => {
    const gzip = { "Content-Encoding": "gzip" };
    expect((await post(new Uint8Array(gzipSync("{}")), gzip)).status).to.equal(400);
    const bomb = new Uint8Array(gzipSync(`{"name":"${"a".repeat(10_000_000)}"}`));
    expect(bomb.length).to.be.below(20_000);
    expect((await post(bomb, gzip)).status).to.equal(413);
    expect((await post("{}", { "Content-Encoding": "lzma" })).status).to.equal(415);
    expect((await post("no gzip", gzip)).status).to.equal(400);
  });

  it("reads a body that comes in chunks, and refuses one that grows past the limit", async () => {
    const headers = { "Content-Type": "application/json" };
    const ask = (count: number) =>
      gateway.ask(tokens(), { method: "POST", headers, body: spaces(count) });
    expect((await ask(2)).status).to.equal(400);
    expect((await ask(100)).status).to.equal(413);
  });

  it("takes no fault in a client that leaves while it sends", async () => {
    const socket = connect(Number(new URL(gateway.url).port), "127.0.0.1");
    socket.write(
      `POST ${tokens()} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${gateway.token}\r\n` +
        "Content-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n",
    );
    await once(socket, "data");
    socket.write("{");
    const logged = gateway.logs.length;
    socket.destroy();
    while (gateway.logs.length === logged) await new Promise(setImmediate);
    expect(gateway.logs.slice(logged)).to.have.length(1);
    expect(gateway.logs.at(-1)).to.include({ msg: "request", finished: false });
  });

  it("takes no more large bodies at once than memory is meant for", async () => {
    const port = Number(new URL(gateway.url).port);
    const path = `/v4/accounts/${gateway.accountId}/browser-rendering/pdf`;
    const fitting = Math.floor(BODIES_BYTES_MAX / RENDER_BODY_BYTES_MAX);
    const sockets = Array.from({ length: fitting }, () => connect(port, "127.0.0.1"));
    for (const socket of sockets) {
      socket.write(
        `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${gateway.token}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${RENDER_BODY_BYTES_MAX}\r\n` +
          "Expect: 100-continue\r\n\r\n",
      );
    }
    await Promise.all(sockets.map((socket) => once(socket, "data")));
    const large = () =>
      gateway.ask(path, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: spaces(1),
      });
    let refused = await large();
    // The server says "continue" before it has found out who asks.
    while (refused.status !== 503) refused = await large();
    expect(refused.json?.errors[0]?.code).to.equal(2004);
    expect(refused.headers.get("retry-after")).to.equal("1");
    // Small ones are still taken.
    expect((await post("{}")).status).to.equal(400);
    const logged = gateway.logs.length;
    for (const socket of sockets) socket.destroy();
    while (gateway.logs.length < logged + fitting) await new Promise(setImmediate);
    expect((await large()).status).to.equal(400);
  });

  it("reads no body before it knows who asks", async () => {
    const refused = await gateway.ask(tokens(), {
      method: "POST",
      token: null,
      headers: { "Content-Type": "text/plain" },
      body: "x",
    });
    expect(refused.status).to.equal(401);
  });
});

function spaces(kilobytes: number): ReadableStream {
  let left = kilobytes;
  return new ReadableStream({
    pull(controller) {
      if (left-- > 0) controller.enqueue(new Uint8Array(1024).fill(0x20));
      else {
        controller.enqueue(Buffer.from("{}"));
        controller.close();
      }
    },
  });
}
