import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import express, { type ErrorRequestHandler, type RequestHandler, type Response } from "express";
import { ActorError, ERRORS } from "../../../schemas/errors.ts";
import { RENDER_BODY_BYTES_MAX } from "../../../schemas/limits.ts";
import { SMALL_BODY_BYTES_MAX } from "../../../schemas/memory-limits.ts";
import { type TestGateway, testGateway } from "../../testing/test-gateway.ts";
import type { ByteBudget } from "../byte-budget.ts";
import { localsOf } from "../locals.ts";
import { endStalledBodies } from "./end-stalled-bodies.ts";
import { bodyBudget, readBody } from "./read-body.ts";

const STALL_MS = 200;

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

  it("refuses content types other than JSON", async () => {
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

  it("reads JSON under its usual content types", async () => {
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

  it("names the position where malformed JSON fails", async () => {
    const { status, json } = await post('{\n  "name": ,\n}');
    expect(status).to.equal(400);
    expect(json?.errors[0]?.message).to.equal(
      "Cannot accept body: expected a value at line 2, column 11 (position 12)",
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

  it("reads a chunked body, and refuses one that grows past the limit", async () => {
    const headers = { "Content-Type": "application/json" };
    const ask = (count: number) =>
      gateway.ask(tokens(), { method: "POST", headers, body: spaces(count) });
    expect((await ask(2)).status).to.equal(400);
    expect((await ask(100)).status).to.equal(413);
  });

  it("reports no fault when a client disconnects while it sends", async () => {
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

  it("refuses invalid brotli", async () => {
    const refused = await post("no brotli", { "Content-Encoding": "br" });
    expect(refused.status).to.equal(400);
    expect(refused.json?.errors[0]?.message).to.contain("cannot be unpacked");
  });

  it("reads no body before authentication", async () => {
    const refused = await gateway.ask(tokens(), {
      method: "POST",
      token: null,
      headers: { "Content-Type": "text/plain" },
      body: "x",
    });
    expect(refused.status).to.equal(401);
  });
});

describe("readBody()", () => {
  const CHUNKED = { "Content-Type": "application/json" };
  /** Twice the share of one account. */
  const BODIES_BYTES = 1024 * 1024;
  const SMALL_BYTES = 4 * SMALL_BODY_BYTES_MAX;
  let budget: ByteBudget;
  let server: Server;
  let url: string;
  let held: Response[];

  beforeEach(async () => {
    budget = bodyBudget({ bytesMax: BODIES_BYTES, smallBytesMax: SMALL_BYTES });
    held = [];
    const app = express();
    app.use((request, response, next) => {
      const accountId = request.get("x-account") ?? "a";
      localsOf(response).caller = { accountId, tokenId: "t", permissions: [] };
      next();
    });
    const hold: RequestHandler = (_request, response) => {
      held.push(response);
      response.write("read");
    };
    app.post("/", readBody({ bytesMax: RENDER_BODY_BYTES_MAX }, budget), hold);
    const echo: RequestHandler = (_request, response) => {
      response.json(localsOf(response).body);
    };
    app.post("/optional", readBody({ bytesMax: 100, isOptional: true }, budget), echo);
    const form = readBody({ bytesMax: 10_000, takesFiles: true }, budget);
    app.post("/form", endStalledBodies(STALL_MS), form, echo);
    const refuse: ErrorRequestHandler = (error, _request, response, _next) => {
      response.status(error instanceof ActorError ? ERRORS[error.code].status : 500);
      response.end(String(error));
    };
    server = createServer(app.use(refuse)).listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    url = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/`;
  });
  afterEach(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });

  const post = (body: ReadableStream | string, headers: Record<string, string> = CHUNKED) =>
    fetch(url, { method: "POST", headers, body, duplex: "half" });

  it("reads an absent body as an empty object where it may be absent, and no broken one", async () => {
    const optional = (body?: string, headers = {}) =>
      fetch(`${url}optional`, { method: "POST", headers, ...(body !== undefined && { body }) });
    expect(await (await optional()).json()).to.deep.equal({});
    expect(await (await optional('{"a":1}', CHUNKED)).json()).to.deep.equal({ a: 1 });
    expect((await optional("{", CHUNKED)).status).to.equal(400);
    expect((await optional("{}", { "content-type": "text/plain" })).status).to.equal(415);
  });

  describe("of forms", () => {
    const type = "multipart/form-data; boundary=b";
    const head = '--b\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\n';

    it("counts their bytes, and takes them packed too", async () => {
      const body = gzipSync(`${head}abc\r\n--b--\r\n`);
      const headers = { "Content-Type": type, "Content-Encoding": "gzip" };
      const answer = await fetch(`${url}form`, { method: "POST", headers, body });
      expect(await answer.json()).to.deep.equal({ files: [{ name: "a", base64: "YWJj" }] });
      while (budget.bytes > 0) await new Promise(setImmediate);
      const others = budget.open(["a"]);
      others.take(BODIES_BYTES / 2);
      const small = budget.open(["a"]);
      small.take(SMALL_BODY_BYTES_MAX);
      const rest = budget.open(["a"]);
      rest.take(SMALL_BODY_BYTES_MAX);
      expect((await fetch(`${url}form`, { method: "POST", headers, body })).status).to.equal(503);
      const bomb = gzipSync(`${head}${"x".repeat(10_000)}\r\n--b--\r\n`);
      for (const held of [others, small, rest]) held.release();
      const refused = await fetch(`${url}form`, { method: "POST", headers, body: bomb });
      expect(refused.status).to.equal(413);
    });

    it("ends a form that stops halfway, and releases its bytes", async () => {
      const socket = connect(Number(new URL(url).port), "127.0.0.1");
      socket.on("error", () => {});
      socket.write(`POST /form HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\n`);
      socket.write(`Content-Length: 5000\r\n\r\n${head}abc`);
      while (budget.bytes === 0) await new Promise(setImmediate);
      await once(socket, "close");
      while (budget.bytes > 0) await new Promise(setImmediate);
    });
  });

  it("counts the bytes read of a body until its response ends", async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => post(spaces(1))));
    expect(answers.map(({ status }) => status)).to.deep.equal(new Array(8).fill(200));
    expect(budget.bytes).to.equal(8 * 1026);
    for (const response of held) response.end();
    await Promise.all(answers.map((answer) => answer.text()));
    while (budget.bytes > 0) await new Promise(setImmediate);
    expect(budget.bytes).to.equal(0);
  });

  it("does not count bytes that Content-Length announces and the client has not sent", async () => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.write(
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
        `Content-Length: ${RENDER_BODY_BYTES_MAX}\r\nExpect: 100-continue\r\n\r\n`,
    );
    await once(socket, "data");
    socket.write("{");
    while (budget.bytes === 0) await new Promise(setImmediate);
    expect(budget.bytes).to.equal(1);
    socket.destroy();
    while (budget.bytes > 0) await new Promise(setImmediate);
  });

  it("accepts large bodies up to an account's share, and refuses one byte more", async () => {
    const share = BODIES_BYTES / 2;
    const bytes = 128 * 1024 + 2;
    for (const body of ["{}".padStart(bytes), spaces(128)]) {
      const others = budget.open(["a"]);
      others.take(share - bytes);
      expect((await post(body)).status).to.equal(200);
      held.pop()?.end();
      while (budget.bytes > share - bytes) await new Promise(setImmediate);
      others.take(1);
      const refused = await post(typeof body === "string" ? body : spaces(128));
      expect(refused.status).to.equal(503);
      expect(await refused.text()).to.contain("too many large uploads");
      while (budget.bytes > share - bytes + 1) await new Promise(setImmediate);
      others.release();
    }
  });

  it("accepts bodies of other accounts, and small ones of all, while one account holds its share", async () => {
    const large = "{}".padStart(BODIES_BYTES / 2);
    const as = (account: string) => ({ ...CHUNKED, "X-Account": account });
    expect((await post(large, as("a"))).status).to.equal(200);
    expect((await post("{}".padStart(SMALL_BODY_BYTES_MAX + 1), as("a"))).status).to.equal(503);
    expect((await post("{}", as("a"))).status).to.equal(200);
    expect((await post(large, as("b"))).status).to.equal(200);
    expect((await post("{}".padStart(SMALL_BODY_BYTES_MAX + 1), as("c"))).status).to.equal(503);
    expect((await post("{}", as("c"))).status).to.equal(200);
    expect((await post("{}".padStart(SMALL_BODY_BYTES_MAX), as("c"))).status).to.equal(200);
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
