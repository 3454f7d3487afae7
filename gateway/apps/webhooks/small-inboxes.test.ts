import { createHmac } from "node:crypto";
import { expect } from "chai";
import { agentInbox } from "../../../schemas/apps/agent-inbox.ts";
import { agentKey } from "../../../schemas/apps/app-names.ts";
import { appUsage } from "../../../schemas/apps/app-usage.ts";
import { AGENT_ROOM_BYTES, EVENT_IDS_KEPT_MS } from "../../../schemas/apps/limits.ts";
import { APP_USAGE_KEPT_MS } from "../account-room.ts";
import { HOOK_ACCOUNT, type WebhookServer, webhookServer } from "./testing/webhook-server.ts";

const SECRET = "secret";
const HMAC = {
  ...{ path: "/hooks/:entity", provider: "hmac", secret: "SECRET", agent: "REPOS" },
  ...{ entity: { path: true }, hmac: { header: "X-Sig" }, event_id: { body: "/id" } },
};
const NAMES_MAX = 3;
const DAY_MS = 86_400_000;

describe("inboxes with few bytes", () => {
  const start = () => webhookServer([HMAC], { SECRET }, { bytesMax: NAMES_MAX * AGENT_ROOM_BYTES });
  /** Sends one event. Returns its status and error when all of its effects are done and the cached usage is old. */
  const send = async (server: WebhookServer, name: string, secret = SECRET) => {
    const body = JSON.stringify({ id: "1" });
    const answer = await fetch(`${server.url}/hooks/${name}`, {
      method: "POST",
      headers: { "X-Sig": createHmac("sha256", secret).update(body).digest("hex") },
      body,
    });
    await server.actors.settled();
    server.clock.now += APP_USAGE_KEPT_MS;
    const { errors = [] } = (await answer.json()) as { errors?: { message: string }[] };
    return { status: answer.status, message: errors[0]?.message };
  };
  const bytes = async ({ actors }: WebhookServer) =>
    (await actors.call(appUsage, HOOK_ACCOUNT, "get", {})).bytes;
  const events = async ({ actors }: WebhookServer, name: string) => {
    const key = agentKey({ accountId: HOOK_ACCOUNT, app: "hooks", className: "RepoAgent", name });
    return (await actors.call(agentInbox, key, "list", { limit: 1 })).deliveries.length;
  };

  it("use up the account's bytes: one past the limit is refused by the limit's name, and stores nothing", async () => {
    await using server = await start();
    for (let at = 1; at <= NAMES_MAX; at++) {
      expect((await send(server, `name-${at}`)).status).to.equal(202);
      expect(await bytes(server)).to.equal(at * AGENT_ROOM_BYTES);
    }
    const past = await send(server, "past");
    expect(past.status).to.equal(409);
    expect(past.message).to.match(
      /store 49152 bytes, which is the limit \(TRUNKLINE_AGENT_BYTES_PER_ACCOUNT\)/,
    );
    expect(await events(server, "past")).to.equal(0);
    expect(await bytes(server)).to.equal(NAMES_MAX * AGENT_ROOM_BYTES);
  });

  it("count until their events and ids are gone, and then make room for others", async () => {
    await using server = await start();
    for (let at = 1; at <= NAMES_MAX; at++) await send(server, `name-${at}`);
    const keptDays = 30 + EVENT_IDS_KEPT_MS / DAY_MS + 2;
    for (let days = 0; days < keptDays; days++) {
      server.clock.now += DAY_MS;
      await server.actors.remind();
      await server.actors.settled();
    }
    expect(await bytes(server)).to.equal(0);
    expect((await send(server, "later")).status).to.equal(202);
  });

  it("are not made by events whose signature is wrong", async () => {
    await using server = await start();
    for (let at = 1; at <= NAMES_MAX; at++) {
      expect((await send(server, `name-${at}`, "guessed")).status).to.equal(401);
      expect(await events(server, `name-${at}`)).to.equal(0);
    }
    expect(await bytes(server)).to.equal(0);
  });
});
