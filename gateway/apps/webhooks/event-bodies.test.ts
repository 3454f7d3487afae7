import { createHmac } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { expect } from "chai";
import { SMALL_BODY_BYTES_MAX } from "../../../schemas/memory-limits.ts";
import { until } from "../../../scripts/testing/until.ts";
import { eventBudget } from "./read-event-body.ts";
import { type WebhookServer, webhookServer } from "./testing/webhook-server.ts";

const SECRET = "secret";
/** The bytes of large bodies for one app. */
const SHARE = 300_000;
const WEBHOOKS = [
  {
    ...{ secret: "KEY", agent: "REPOS", path: "/hook", provider: "hmac" },
    hmac: { header: "X-Sig" },
    entity: { header: "X-Entity" },
  },
];

describe("bodies of events", () => {
  let server: WebhookServer;
  let budget: ReturnType<typeof eventBudget>;
  beforeEach(async () => {
    budget = eventBudget({ bytesMax: 4 * SHARE });
    server = await webhookServer(WEBHOOKS, { KEY: SECRET }, { budget });
  });
  afterEach(() => server[Symbol.asyncDispose]());

  /** Sends a signed event of this size. */
  const post = (bytes: number, headers: Record<string, string> = {}) => {
    const body = Buffer.alloc(bytes, "x");
    const signature = createHmac("sha256", SECRET).update(body).digest("hex");
    return fetch(`${server.url}/hook`, {
      method: "POST",
      headers: { "X-Sig": signature, "X-Entity": "one", ...headers },
      body,
    });
  };
  /** Sends the head of an event, and `sent` bytes of its body, which never ends. */
  const unfinished = (headers: string[], sent: number) => {
    const { hostname, port } = new URL(server.url);
    const socket = connect(Number(port), hostname);
    socket.on("error", () => {});
    const head = ["POST /hook HTTP/1.1", "Host: x", `Content-Length: ${sent + 1}`, ...headers];
    socket.write(`${head.join("\r\n")}\r\n\r\n`);
    socket.write(Buffer.alloc(sent));
    return socket;
  };

  it("are not read without a signature", async () => {
    const socket = unfinished(["X-Entity: one"], 0);
    const [answer] = await once(socket, "data");
    expect(String(answer)).to.match(/^HTTP\/1.1 401 /);
    expect(budget.bytes).to.equal(0);
    socket.destroy();
  });

  it("with wrong signatures keep out no small events, and no events of other accounts", async () => {
    const wrong = ["X-Sig: 00", "X-Entity: one"];
    const sockets = [unfinished(wrong, SHARE / 2), unfinished(wrong, SHARE / 2 - 70_000)];
    await until("the bodies are held", () => budget.bytes === SHARE - 70_000);
    expect((await post(70_000)).status).to.equal(202);
    const refused = await post(70_001);
    expect(refused.status).to.equal(429);
    expect(Number(refused.headers.get("retry-after"))).to.be.above(0);
    expect((await post(SMALL_BODY_BYTES_MAX)).status).to.equal(202);
    expect((await post(SHARE, { "X-Account": "b".repeat(32) })).status).to.equal(202);
    for (const socket of sockets) socket.destroy();
    await until("the bodies are released", () => budget.bytes === 0);
    expect((await post(70_001)).status).to.equal(202);
  });
});
