/**
 * The references for the app benchmarks: Express with SQLite, Express with a JetStream publish, and a plain ws
 * server. Parameters: `<folder> <nats url>`.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import express, { type Request, type Response } from "express";
import { WebSocketServer } from "ws";
import { readBusAddress } from "../../../actors/runtime/bus/bus-address.ts";
import { answerParent } from "../answer-parent.ts";
import { BENCH_SECRET, FRAME } from "./app-code.ts";

const [folder = "", url = ""] = process.argv.slice(2);
const database = new DatabaseSync(join(folder, "app.sqlite"));
database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
database.exec("CREATE TABLE events (entity TEXT, id TEXT, body TEXT, PRIMARY KEY (entity, id))");
database.exec("CREATE TABLE states (entity TEXT PRIMARY KEY, state TEXT)");
const insert = database.prepare("INSERT OR IGNORE INTO events VALUES (?, ?, ?)");
const readState = database.prepare("SELECT state FROM states WHERE entity = ?");
const writeState = database.prepare("INSERT OR REPLACE INTO states VALUES (?, ?)");

const bus = await connect(readBusAddress(url));
const stream = jetstream(bus);

const app = express();
app.post("/by-code", express.raw({ type: "*/*" }), (request, response) => {
  const event = verified(request, response);
  if (!event) return;
  const { entity, id, body } = event;
  database.exec("BEGIN IMMEDIATE");
  insert.run(entity, id, body);
  const { count } = JSON.parse(String(readState.get(entity)?.state ?? '{"count":0}'));
  writeState.run(entity, JSON.stringify({ count: count + 1, last: id }));
  database.exec("COMMIT");
  response.send("OK");
});
app.post("/declared", express.raw({ type: "*/*" }), async (request, response) => {
  const event = verified(request, response);
  if (!event) return;
  const { entity, id, body } = event;
  await stream.publish("bench.mail", body, { msgID: `${entity} ${id}` });
  response.status(202).json({ success: true });
});
const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false });
app.post("/room", (_request, response) => {
  for (const socket of sockets.clients) socket.send(FRAME);
  response.send("OK");
});

const server = createServer(app).listen(0, "127.0.0.1");
server.on("upgrade", (request, connection, head) => {
  sockets.handleUpgrade(request, connection, head, () => {});
});
await once(server, "listening");
const address = server.address();
if (address === null || typeof address === "string") throw new Error("no port");

answerParent({
  answer: async () => `http://127.0.0.1:${address.port}`,
  async close() {
    for (const socket of sockets.clients) socket.terminate();
    server.closeAllConnections();
    server.close();
    await bus.close();
    database.close();
  },
});

/** Verifies the webhook's signature, as an app on Express would. */
function verified(request: Request, response: Response) {
  const body = request.body as Buffer;
  const signed = Buffer.from(request.get("x-hub-signature-256") ?? "");
  const digest = createHmac("sha256", BENCH_SECRET).update(body).digest("hex");
  const wanted = Buffer.from(`sha256=${digest}`);
  if (signed.length !== wanted.length || !timingSafeEqual(signed, wanted)) {
    response.status(401).send("not signed");
    return undefined;
  }
  const text = body.toString();
  const { repository } = JSON.parse(text) as { repository: { full_name: string } };
  return { entity: repository.full_name, id: request.get("x-github-delivery") ?? "", body: text };
}
