import { expect } from "chai";
import express from "express";
import { pino } from "pino";
import { accountActor } from "../../../actors/account/account/account.ts";
import { apiTokenActor } from "../../../actors/account/api-token/api-token.ts";
import { requestLimitActor } from "../../../actors/account/request-limit/request-limit.ts";
import { agentInboxActor } from "../../../actors/apps/agent-inbox/agent-inbox.ts";
import { answeringAgent } from "../../../actors/apps/agent-inbox/testing/answering-agent.ts";
import { eventOf, INBOX_KEY } from "../../../actors/apps/agent-inbox/testing/inbox.ts";
import { appActor } from "../../../actors/apps/app/app.ts";
import { appUsageActor } from "../../../actors/apps/app-usage/app-usage.ts";
import { outgoingPlacesActor } from "../../../actors/apps/outgoing-places/outgoing-places.ts";
import { outgoingWebhookActor } from "../../../actors/apps/outgoing-webhook/outgoing-webhook.ts";
import { defineWorker } from "../../../actors/runtime/workers/define-worker.ts";
import { ALL_PERMISSIONS, type Permission } from "../../../schemas/account/permissions.ts";
import { agentInbox } from "../../../schemas/apps/agent-inbox.ts";
import { app } from "../../../schemas/apps/app.ts";
import { AppConfig } from "../../../schemas/apps/app-config.ts";
import { agentKey, appKey } from "../../../schemas/apps/app-names.ts";
import { AGENT_ROOM_BYTES } from "../../../schemas/apps/limits.ts";
import { outgoingWebhook, webhookPost } from "../../../schemas/apps/outgoing-webhook.ts";
import { envelope } from "../../../schemas/contract.ts";
import { startHttpServer } from "../../../scripts/testing/loopback-server.ts";
import { memoryActors } from "../../../scripts/testing/memory-actors.ts";
import { handleError } from "../../http/middleware/handle-error.ts";
import { notFound } from "../../http/middleware/not-found.ts";
import { requestId } from "../../http/middleware/request-id.ts";
import { routeRouter } from "../../route-router.ts";
import { checkDeclared, declaredBy } from "../../testing/declared-answers.ts";
import { MemoryBlobs } from "../../testing/memory-blobs.ts";
import { testCrawls } from "../../testing/test-crawls.ts";
import { giveToken, openAccount, type Wire } from "../../testing/test-gateway.ts";
import { AccountRoom, APP_USAGE_KEPT_MS } from "../account-room.ts";
import { deliveryRoutes } from "./deliveries.ts";

/** Starts the routes with real actors, and an agent that answers with the status set by the test. */
async function world() {
  const agentAnswers = { status: 200 };
  const posts = { status: 200 };
  const posting = defineWorker(webhookPost, {
    slots: { post: 4, purge: 1 },
    handlers: {
      post: async ({ number, attempt }, { key }) => {
        const outcome = { at: Date.now(), durationMs: 1, status: posts.status, answer: "said" };
        const told = { number, attempt, outcome };
        return { send: [envelope(outgoingWebhook, key, "tried", told)] };
      },
      purge: async () => ({}),
    },
    failures: { post: () => [], purge: () => [] },
  });
  const kinds = [accountActor, apiTokenActor, requestLimitActor, appActor, appUsageActor];
  const actors = memoryActors({
    actors: [...kinds, agentInboxActor, outgoingPlacesActor, outgoingWebhookActor],
    hosted: (all) => [answeringAgent(all, { answer: () => agentAnswers.status })],
    workers: [posting],
  });
  const blobs = new MemoryBlobs();
  const limits = { agents: 1, bytes: 2 * AGENT_ROOM_BYTES };
  const clock = { now: 0 };
  const room = new AccountRoom({ actors, limits, now: () => clock.now });
  const routes = deliveryRoutes({ actors, blobs, room });
  const server = express();
  server.use(requestId(pino({ level: "silent" })));
  const { live } = testCrawls();
  const options = { actors, live, requestsPerWindow: 0, now: () => Date.now() };
  server.use("/v4", routeRouter(routes, options));
  server.use(notFound);
  server.use(handleError);
  const listening = await startHttpServer(server);
  const url = `http://${listening.address}:${listening.port}`;
  const accountId = await openAccount(actors, "One");
  const token = await giveToken(actors, accountId, ALL_PERMISSIONS);
  const document = declaredBy(routes);
  const config = AppConfig.parse({ name: "hooks", compatibility_date: "2026-11-20" });
  const staged = { config, bundle: "app.a.b.c", bundleBytes: 1 };
  await actors.call(app, appKey(accountId, "hooks"), "stage", staged);
  const address = { accountId, app: "hooks", className: "RepoAgent", name: "owner/repo ü" };
  const base = `/accounts/${accountId}/apps/hooks/agents/RepoAgent/${encodeURIComponent(address.name)}`;
  return {
    ...{ actors, blobs, accountId, base, agentAnswers, posts, clock, key: agentKey(address) },
    tokenWith: (...permissions: Permission[]) => giveToken(actors, accountId, permissions),
    async ask(method: string, path: string, json?: unknown, given = token) {
      const response = await fetch(`${url}/v4${path}`, {
        method,
        headers: { Authorization: `Bearer ${given}`, "Content-Type": "application/json" },
        ...(json !== undefined && { body: JSON.stringify(json) }),
      });
      const type = response.headers.get("content-type") ?? "";
      const body = (await response.json()) as Wire;
      const { status } = response;
      checkDeclared(document, { method, path, status, type, body });
      return { status, ...body };
    },
    async [Symbol.asyncDispose]() {
      await actors.settled();
      await listening.close();
    },
  };
}

describe("deliveries", () => {
  it("GET …/deliveries lists newest first, by status, and goes on from a cursor", async () => {
    await using w = await world();
    for (let i = 1; i <= 3; i++) {
      await w.actors.call(agentInbox, w.key, "receive", eventOf(`event ${i}`));
      await w.actors.settled();
    }
    w.agentAnswers.status = 500;
    await w.actors.call(agentInbox, w.key, "receive", eventOf("fails"));
    await w.actors.settled();
    const all = await w.ask("GET", `${w.base}/deliveries?limit=3`);
    expect(all.result.map(({ id }: { id: string }) => id)).to.deep.equal(["4", "3", "2"]);
    expect(all.result[0]).to.include({
      ...{ status: "waiting", attempts: 1, answer_status: 500, event_id: "fails" },
      error: "It answered 500",
    });
    expect(all.result_info).to.deep.equal({ count: 3, per_page: 3, cursor: "2" });
    const rest = await w.ask("GET", `${w.base}/deliveries?limit=3&cursor=2`);
    expect(rest.result).to.have.length(1);
    expect(rest.result_info).to.deep.equal({ count: 1, per_page: 3 });
    const waiting = await w.ask("GET", `${w.base}/deliveries?status=waiting`);
    expect(waiting.result).to.have.length(1);
    for (const query of ["limit=0", "limit=101", "status=lost", "cursor=x"]) {
      expect((await w.ask("GET", `${w.base}/deliveries?${query}`)).status, query).to.equal(400);
    }
  });

  it("GET …/deliveries/{id} shows headers and body, also of a blob and of one that is gone", async () => {
    await using w = await world();
    await w.blobs.put("app.a.b.text", Buffer.from("grüße"));
    await w.blobs.put("app.a.b.bytes", Buffer.from([255, 0]));
    const bodies = ["text", "bytes", "gone"].map((name) => ({ blob: `app.a.b.${name}` }));
    for (const body of [{ text: "plain" }, ...bodies]) {
      const request = { ...eventOf("x").request, body };
      const event = eventOf(JSON.stringify(body), { request });
      await w.actors.call(agentInbox, w.key, "receive", event);
    }
    const shown = [];
    for (let id = 1; id <= 4; id++) {
      const { result } = await w.ask("GET", `${w.base}/deliveries/${id}`);
      shown.push([result.body, result.body_encoding]);
      expect(result).to.include({ id: String(id), method: "POST" });
      expect(result.headers).to.deep.equal([{ name: "content-type", value: "application/json" }]);
    }
    expect(shown).to.deep.equal([
      ["plain", "text"],
      ["grüße", "text"],
      ["/wA=", "base64"],
      [null, "text"],
    ]);
    expect((await w.ask("GET", `${w.base}/deliveries/5`)).status).to.equal(404);
    expect((await w.ask("GET", `${w.base}/deliveries/first`)).status).to.equal(400);
  });

  it("POST …/replay delivers one, a range, those of a time, those that failed", async () => {
    await using w = await world();
    for (let i = 1; i <= 4; i++) {
      await w.actors.call(agentInbox, w.key, "receive", eventOf(`event ${i}`));
      await w.actors.settled();
    }
    const replay = async (path: string, json?: unknown) => {
      const { status, result } = await w.ask("POST", `${w.base}/deliveries${path}`, json);
      await w.actors.settled();
      return [status, result?.replayed];
    };
    expect(await replay("/2/replay")).to.deep.equal([202, 1]);
    expect(await replay("/9/replay")).to.deep.equal([404, undefined]);
    expect(await replay("/replay", { from: "2", to: "3" })).to.deep.equal([202, 2]);
    const { result } = await w.ask("GET", `${w.base}/deliveries/2`);
    expect(result).to.include({ replays: 2, status: "delivered" });
    const from = new Date(Date.now() + 60_000).toISOString();
    expect(await replay("/replay", { from })).to.deep.equal([202, 0]);
    expect(await replay("/replay", { to: from })).to.deep.equal([202, 4]);
    expect(await replay("/replay", { status: "failed" })).to.deep.equal([202, 0]);
    for (const json of [{}, { from: "x" }, { status: "waiting" }, { other: 1 }]) {
      expect((await replay("/replay", json))[0], JSON.stringify(json)).to.equal(400);
    }
  });

  it("…/webhooks lists, shows, tests and sends again", async () => {
    await using w = await world();
    w.posts.status = 410;
    await w.actors.call(outgoingWebhook, w.key, "send", {
      ...{ id: "one", url: "https://receiver.example/", payloadBytes: 2, payload: { text: "{}" } },
      secret: { sealed: "v1.0.x" },
    });
    await w.actors.settled();
    const failed = await w.ask("GET", `${w.base}/webhooks?status=failed`);
    expect(failed.result).to.have.length(1);
    expect(failed.result[0]).to.include({ id: "1", status: "failed", attempts: 1 });
    expect(failed.result[0].last_try).to.include({ status: 410, answer: "said" });
    w.posts.status = 200;
    expect((await w.ask("POST", `${w.base}/webhooks/1/resend`)).status).to.equal(202);
    await w.actors.settled();
    const shown = await w.ask("GET", `${w.base}/webhooks/1`);
    expect(shown.result).to.include({ status: "arrived", body: "{}", resends: 1 });
    expect(shown.result.tries).to.have.length(2);
    expect(JSON.stringify(shown)).to.not.include("v1.0.x");
    const url = "https://receiver.example/";
    const tested = await w.ask("POST", `${w.base}/webhooks/test`, { url, secret: ["HOOK", "OLD"] });
    expect([tested.status, tested.result.is_test]).to.deep.equal([202, true]);
    for (const json of [{}, { url: "ftp://a" }, { url: "https://u:p@a/" }, { url, more: 1 }]) {
      const { status } = await w.ask("POST", `${w.base}/webhooks/test`, json);
      expect(status, JSON.stringify(json)).to.equal(400);
    }
    expect((await w.ask("GET", `${w.base}/webhooks/9`)).status).to.equal(404);
    expect((await w.ask("POST", `${w.base}/webhooks/9/resend`)).status).to.equal(404);
  });

  it("POST …/webhooks/test is refused when the queues of an account's agents, however small, use up its bytes", async () => {
    await using w = await world();
    const send = async (name: string) => {
      const path = `/accounts/${w.accountId}/apps/hooks/agents/RepoAgent/${name}/webhooks/test`;
      const answer = await w.ask("POST", path, { url: "https://hooks.example/" });
      await w.actors.settled();
      w.clock.now += APP_USAGE_KEPT_MS;
      return answer;
    };
    for (const name of ["one", "two"]) expect((await send(name)).status).to.equal(202);
    const { status, errors } = await send("three");
    expect(status).to.equal(409);
    expect(errors[0]?.message).to.match(
      /store 32768 bytes, which is the limit \(TRUNKLINE_AGENT_BYTES_PER_ACCOUNT\)/,
    );
    const three = agentKey({
      accountId: w.accountId,
      app: "hooks",
      className: "RepoAgent",
      name: "three",
    });
    expect(
      (await w.actors.call(outgoingWebhook, three, "list", { limit: 1 })).webhooks,
    ).to.deep.equal([]);
  });

  it("needs apps.read to look and apps.write to do, of an app of the account", async () => {
    await using w = await world();
    const reader = await w.tokenWith("apps.read");
    const other = await w.tokenWith("artifacts.write");
    const writing = [
      ["/deliveries/1/replay", undefined],
      ["/deliveries/replay", { status: "failed" }],
      ["/webhooks/test", { url: "https://a.example/" }],
      ["/webhooks/1/resend", undefined],
    ] as const;
    for (const [path, json] of writing) {
      expect((await w.ask("POST", w.base + path, json, reader)).status, path).to.equal(403);
    }
    for (const path of ["/deliveries", "/deliveries/1", "/webhooks", "/webhooks/1"]) {
      expect((await w.ask("GET", w.base + path, undefined, other)).status, path).to.equal(403);
    }
    expect((await w.ask("GET", `${w.base}/deliveries`, undefined, reader)).status).to.equal(200);
    const unknown = w.base.replace("/hooks/", "/nothing/");
    expect((await w.ask("GET", `${unknown}/deliveries`)).status).to.equal(404);
    const [foreign = ""] = INBOX_KEY.split(".");
    const theirs = w.base.replace(w.accountId, foreign);
    expect((await w.ask("GET", `${theirs}/deliveries`)).status).to.equal(404);
  });
});
