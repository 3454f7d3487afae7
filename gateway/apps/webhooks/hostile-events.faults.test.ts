import { createHmac } from "node:crypto";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { readAgentKey } from "../../../schemas/apps/app-names.ts";
import { FORM_FIELDS_MAX, WEBHOOK_BODY_BYTES_MAX } from "../../../schemas/apps/limits.ts";
import { JSON_DEPTH_MAX } from "../../../schemas/limits.ts";
import { type WebhookServer, webhookServer } from "./testing/webhook-server.ts";

const SECRET = "secret";
const common = { secret: "KEY", agent: "REPOS" };
const WEBHOOKS = [
  {
    ...{ ...common, path: "/body", provider: "hmac", hmac: { header: "X-Sig" } },
    entity: { body: "/of/name" },
    event_id: { body: "/id" },
  },
  {
    ...{ ...common, path: "/header", provider: "hmac", hmac: { header: "X-Sig" } },
    entity: { header: "X-Entity" },
  },
  {
    ...{ ...common, path: "/p/:entity", provider: "hmac", hmac: { header: "X-Sig" } },
    entity: { path: true },
  },
  {
    ...{ ...common, path: "/timed", provider: "hmac", entity: { header: "X-Entity" } },
    hmac: { header: "X-Sig", timestamp_header: "X-Time" },
  },
  { ...common, path: "/slack", provider: "slack", entity: { body: "/team_id" } },
  { ...common, path: "/twilio", provider: "twilio", entity: { body: "/From" } },
];

const hex = (text: string | Buffer) => createHmac("sha256", SECRET).update(text).digest("hex");

describe("a declared endpoint against a sender with its secret and bad intentions", () => {
  let server: WebhookServer;
  beforeEach(async () => {
    server = await webhookServer(WEBHOOKS, { KEY: SECRET });
  });
  afterEach(() => server[Symbol.asyncDispose]());

  const post = (path: string, body: string | Buffer, headers: Record<string, string> = {}) =>
    fetch(server.url + path, {
      method: "POST",
      headers: { "X-Sig": hex(body), ...headers },
      body,
    });
  const connected = () => {
    const { hostname, port } = new URL(server.url);
    return connect(Number(port), hostname);
  };
  const names = async () => {
    await server.actors.settled();
    return server.delivered.map(({ key }) => readAgentKey(key)?.name);
  };
  /** Returns the shortest duration of three equal requests. */
  const fastest = async (
    body: string,
    { expected, headers = {} }: { expected: number; headers?: Record<string, string> },
  ) => {
    const durations: number[] = [];
    for (let attempt = 0; attempt < 3; attempt++) {
      const begun = performance.now();
      expect((await post("/body", body, headers)).status).to.equal(expected);
      durations.push(performance.now() - begun);
    }
    return Math.min(...durations);
  };
  const named = (json: string, id = "1") => `{"id":${id},"of":{"name":${json}}}`;

  it("takes an entity that is text or a number, and reports anything else as missing", async () => {
    const refused = ["null", "true", "{}", "[]", '["a"]', '""', '"  "', '"\\ud800"'];
    for (const json of refused) {
      expect((await post("/body", named(json))).status, json).to.equal(400);
    }
    for (const body of ["", "[]", "null", "7", '{"of":null}', '{"of":[{"name":"x"}]}', "{"]) {
      expect((await post("/body", body)).status, body).to.equal(400);
    }
    expect(await names()).to.deep.equal([]);
    const taken = ['"A/B"', "0", "1.5", '"../../x"', '"%2f"', '"a\\u0000\\nb"', '"ünï"', '"."'];
    for (const [index, json] of taken.entries()) {
      expect((await post("/body", named(json, String(index)))).status, json).to.equal(202);
    }
    const expected = ["a-b", "0", "1.5", "..-..-x", "%2f", "a\0\nb", "ünï", "."];
    expect(await names()).to.have.members(expected);
  });

  it("takes the last of two fields of one name, as its agent's code will", async () => {
    await post("/body", '{"id":1,"of":{"name":"first","name":"last"},"id":2}');
    expect(await names()).to.deep.equal(["last"]);
    expect((await post("/body", named('"last"', "2"))).status).to.equal(202);
    expect(await names()).to.deep.equal(["last"]);
  });

  it("distinguishes ids and entities that are equal as JSON numbers", async () => {
    // In JavaScript, the first two ids are the same number, and the third equals another one.
    const ids = ["12345678901234567890", "12345678901234567891", "9007199254740993"];
    for (const id of ids) {
      const answer = await post("/body", named(id, id));
      expect(await answer.json()).to.deep.include({ success: true });
    }
    expect(await names()).to.have.members(ids);
    for (const id of ids) await post("/body", named('"one"', id));
    expect((await names()).filter((name) => name === "one")).to.have.length(3);
  });

  it("reads JSON up to a depth that senders use, and none that is deeper", async () => {
    const deep = (levels: number) =>
      `{"id":1,"of":{"name":"deep"},"x":${"[".repeat(levels)}${"]".repeat(levels)}}`;
    expect((await post("/body", deep(JSON_DEPTH_MAX))).status).to.equal(202);
    expect((await post("/body", deep(1_000_000))).status).to.equal(400);
  });

  it("decodes an entity of a path once, and finds no other path by it", async () => {
    for (const [path, status] of [
      ["/p/", 418],
      ["/p/a/b", 418],
      ["/p/%ff", 418],
      ["/p/%2e%2e", 418],
      ["/p/%20", 400],
      [`/p/${"x".repeat(257)}`, 400],
      [`/p/${"%F0%9F%98%80".repeat(100)}`, 400],
      ["/p/a%2Fb", 202],
      ["/p/%252e", 202],
      ["/p/A%00b", 202],
    ] as const) {
      expect((await post(path, "{}")).status, path).to.equal(status);
    }
    expect(await names()).to.have.members(["a-b", "%2e", "a\0b"]);
  });

  it("takes the first of two equal headers, for the signature and for its fields", async () => {
    const raw = async (lines: string[]) => {
      const socket = connected();
      socket.end(["POST /header HTTP/1.1", "Host: x", ...lines, "", "{}"].join("\r\n"));
      return Buffer.concat(await socket.toArray()).toString();
    };
    const common = ["Content-Length: 2", "Connection: close"];
    const good = `X-Sig: ${hex("{}")}`;
    const entities = ["X-Entity: first", "X-Entity: second"];
    expect(await raw([...common, "X-Sig: 00", good, ...entities])).to.match(/^HTTP\/1.1 401/);
    expect(await raw([...common, good, "X-Sig: 00", ...entities])).to.match(/^HTTP\/1.1 202/);
    expect(await names()).to.deep.equal(["first"]);
  });

  it("refuses a signature of another scheme, another time, or another body", async () => {
    const seconds = Math.floor(server.clock.now / 1_000);
    const timed = (at: number | string, signature: string) =>
      post("/timed", "{}", { "X-Entity": "x", "X-Time": String(at), "X-Sig": signature });
    expect((await timed(seconds, hex(`${seconds}.{}`))).status).to.equal(202);
    for (const [at, signature] of [
      [seconds, hex("{}")],
      [seconds, hex(`${seconds}.{} `)],
      [seconds, `sha256=${hex(`${seconds}.{}`)}`],
      [seconds + 1, hex(`${seconds}.{}`)],
      [seconds - 301, hex(`${seconds - 301}.{}`)],
      [seconds + 302, hex(`${seconds + 302}.{}`)],
      ["1e9", hex("1e9.{}")],
      [`0${seconds}`, hex(`${seconds}.{}`)],
      ["", hex(".{}")],
    ] as const) {
      expect((await timed(at, signature)).status, `${at}`).to.equal(401);
    }
    // A repeated event whose signature covers its time counts as the same event.
    await timed(seconds, hex(`${seconds}.{}`));
    expect(await names()).to.deep.equal(["x"]);
    server.clock.now += 400_000;
    expect((await timed(seconds, hex(`${seconds}.{}`))).status).to.equal(401);
  });

  it("keeps the first of two bodies under one id", async () => {
    await post("/body", '{"id":"x","of":{"name":"one"},"v":1}');
    const answer = await post("/body", '{"id":"x","of":{"name":"one"},"v":2}');
    expect(await answer.json()).to.deep.include({ result: { id: "1", is_new: false } });
    expect(await names()).to.deep.equal(["one"]);
  });

  it("shows a challenge as data and nothing else", async () => {
    const challenge = "<script>alert(1)</script>\r\nX-Header: 1";
    const body = JSON.stringify({ type: "url_verification", challenge });
    const time = String(Math.floor(server.clock.now / 1_000));
    const signature = `v0=${hex(`v0:${time}:${body}`)}`;
    const headers = { "X-Slack-Request-Timestamp": time, "X-Slack-Signature": signature };
    const answer = await post("/slack", body, headers);
    expect(answer.headers.get("content-type")).to.match(/^application\/json/);
    expect(answer.headers.get("x-header")).to.equal(null);
    expect(await answer.json()).to.deep.equal({ challenge });
    const unsigned = await post("/slack", body, { ...headers, "X-Slack-Signature": "v0=00" });
    expect(unsigned.status).to.equal(401);
    expect(await unsigned.text()).to.not.include("script");
  });

  it("reads packed bodies as the bytes that they are", async () => {
    const packed = gzipSync(named('"packed"'));
    expect((await post("/body", packed, { "Content-Encoding": "gzip" })).status).to.equal(400);
    const headers = { "Content-Encoding": "gzip", "X-Entity": "packed" };
    expect((await post("/header", packed, headers)).status).to.equal(202);
    expect(await names()).to.deep.equal(["packed"]);
  });

  it("refuses a form of many names without a valid signature as fast as any other body", async () => {
    const unsigned = async (body: string, type: string) => {
      const headers = { "Content-Type": type, "X-Twilio-Signature": "x" };
      const begun = performance.now();
      const { status } = await post("/twilio", body, headers);
      return { status, ms: performance.now() - begun };
    };
    const FORM = "application/x-www-form-urlencoded";
    const ofNames = (count: number) =>
      Array.from({ length: count }, (_, index) => index.toString(36).padStart(4, "0")).join("&");
    // The smaller form comes first: if it is not refused, the larger one would block the thread for hours.
    expect((await unsigned(ofNames(FORM_FIELDS_MAX), FORM)).status).to.equal(401);
    expect((await unsigned(ofNames(FORM_FIELDS_MAX + 1), FORM)).status).to.equal(400);
    const largest = ofNames(WEBHOOK_BODY_BYTES_MAX / 5);
    const reference = await unsigned(largest, "text/plain");
    expect(reference.status).to.equal(401);
    const hostile = await unsigned(largest, FORM);
    expect(hostile.status).to.equal(400);
    expect(hostile.ms).to.be.below(20 * reference.ms);
  });

  it("parses a body only after its signature was found valid", async () => {
    // A long number makes the gateway parse the body by the slowest way that it has.
    const largest = `[${"1,".repeat(WEBHOOK_BODY_BYTES_MAX / 2 - 20)}12345678901234567890]`;
    const unsigned = { expected: 401, headers: { "X-Sig": "00" } };
    const reference = await fastest("x".repeat(largest.length), unsigned);
    expect(await fastest(largest, unsigned)).to.be.below(4 * reference);
  });

  it("parses a body with a long number about as fast as one without", async () => {
    const items = "1,".repeat(WEBHOOK_BODY_BYTES_MAX / 2 - 20);
    const reference = await fastest(`[${items}1]`, { expected: 400 });
    const long = await fastest(`[${items}12345678901234567890]`, { expected: 400 });
    expect(long).to.be.below(8 * reference);
  });

  it("takes ids of long numbers beside strings and fractions as they are written", async () => {
    const id = "-12345678901234567890";
    const body = (other: string) =>
      `{"text":"\\"${id}","of":{"name":"x"},"n":[${other}],"id":${id}}`;
    const numbers = ["1.12345678901234567890", "1e-1234567890123456", "0", "1234567890123456"];
    expect((await post("/body", body(numbers.join(",")))).status).to.equal(202);
    const again = await post("/body", body("2"));
    expect(await again.json()).to.deep.include({ result: { id: "1", is_new: false } });
    await post("/body", body("3").replaceAll(id, "-12345678901234567891"));
    expect(await names()).to.deep.equal(["x", "x"]);
  });

  it("answers a sender of endless pieces that the body is too large", async () => {
    const socket = connected();
    socket.on("error", () => {});
    socket.write(
      "POST /header HTTP/1.1\r\nHost: x\r\nX-Sig: 00\r\nExpect: 100-continue\r\n" +
        "Transfer-Encoding: chunked\r\n\r\n",
    );
    const piece = `100000\r\n${"x".repeat(0x100000)}\r\n`;
    const pieces = Math.ceil(WEBHOOK_BODY_BYTES_MAX / 0x100000) + 1;
    for (let index = 0; index < pieces; index++) socket.write(piece);
    let heard = "";
    for await (const chunk of socket) {
      heard += chunk;
      if (heard.includes(" 413 ")) break;
    }
    expect(heard).to.match(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 413 /);
    expect(heard).to.include(String(WEBHOOK_BODY_BYTES_MAX));
  });
});
