import { createHmac } from "node:crypto";
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { Webhook } from "standardwebhooks";
import { MemoryBlobs } from "../../../../gateway/testing/memory-blobs.ts";
import { app } from "../../../../schemas/apps/app.ts";
import { AppConfig } from "../../../../schemas/apps/app-config.ts";
import { appKey } from "../../../../schemas/apps/app-names.ts";
import {
  OUTGOING_ANSWER_CHARS_KEPT,
  OUTGOING_PLACES_MAX,
  OUTGOING_SECRETS_MAX,
} from "../../../../schemas/apps/limits.ts";
import { OUTGOING_SECRET, outgoingWebhook } from "../../../../schemas/apps/outgoing-webhook.ts";
import { startHttpServer } from "../../../../scripts/testing/loopback-server.ts";
import { memoryActors } from "../../../../scripts/testing/memory-actors.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { createAddressPolicy } from "../../../egress/address-policy.ts";
import { createEgressGuard } from "../../../egress/egress-guard.ts";
import { appActor } from "../../app/app.ts";
import {
  BREAKER_FAILURES_MAX,
  BREAKER_OPEN_MS,
  endpointBreakerActor,
} from "../../endpoint-breaker/endpoint-breaker.ts";
import { newSecretKey, SecretBox } from "../../lib/app-secrets/secret-box.ts";
import { outgoingPlacesActor } from "../../outgoing-places/outgoing-places.ts";
import { outgoingWebhookActor } from "../../outgoing-webhook/outgoing-webhook.ts";
import { OUTGOING_PAUSES_MS } from "../../outgoing-webhook/tries.ts";
import {
  OUTGOING_ANSWER_BYTES_MAX,
  OUTGOING_LARGE_SLOTS,
  OUTGOING_LARGE_SLOTS_RESERVED,
  OUTGOING_SLOTS,
  OUTGOING_SLOTS_RESERVED,
  webhookPostWorker,
} from "./webhook-post.ts";

const ACCOUNT = "a".repeat(32);
const KEY = `${ACCOUNT}.hooks.RepoAgent.one`;
const SEALED_FOR = { accountId: ACCOUNT, app: "hooks" };
const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

interface Got {
  headers: IncomingHttpHeaders;
  body: string;
  path: string | undefined;
}

/** Starts a receiver, and a worker with the actors that it needs. */
async function world(
  answer: (response: ServerResponse, got: Got) => void,
  { timeoutMs = 30_000 } = {},
) {
  const got: Got[] = [];
  const receiver = await startHttpServer(async (request, response) => {
    const one = { headers: request.headers, body: await text(request), path: request.url };
    got.push(one);
    answer(response, one);
  });
  const time = { now: Date.now() };
  const secrets = new SecretBox([newSecretKey()]);
  const blobs = new MemoryBlobs();
  const policy = createAddressPolicy({ allow: ["127.0.0.2/32"] });
  const worker = webhookPostWorker({
    ...{ guard: createEgressGuard({ policy }), blobs, secrets, timeoutMs },
    clock: { now: () => time.now },
  });
  const actors = memoryActors({
    actors: [outgoingWebhookActor, outgoingPlacesActor, endpointBreakerActor, appActor],
    workers: [worker],
    now: () => time.now,
  });
  let sent = 0;
  async function deploy(accountId = ACCOUNT) {
    const key = appKey(accountId, "hooks");
    const config = AppConfig.parse({
      ...{ name: "hooks", compatibility_date: "2026-11-20", vars: { VAR: "plain" } },
    });
    const staged = { config, bundle: "app.a.b.c", bundleBytes: 1 };
    const { version } = await actors.call(app, key, "stage", staged);
    await actors.call(app, key, "activate", { version });
    return (await actors.call(app, key, "getServing", {})).id;
  }
  await deploy();
  return {
    deploy,
    ...{ actors, got, blobs, secrets, time },
    url: `http://127.0.0.2:${receiver.port}/hook`,
    async send(url: string, fields: object = {}) {
      const reply = await actors.call(outgoingWebhook, KEY, "send", {
        ...{ id: `sent ${++sent}`, url, payload: { text: '{"a":"ü"}' }, payloadBytes: 10 },
        ...fields,
      });
      await actors.settled();
      return reply.number;
    },
    async after(ms: number) {
      time.now += ms;
      await actors.remind();
    },
    get: (number: number) => actors.call(outgoingWebhook, KEY, "get", { number }),
    async [Symbol.asyncDispose]() {
      await actors.settled();
      await receiver.close();
    },
  };
}

describe("webhook-post", () => {
  it("post() signs each try again, so that the library of Standard Webhooks accepts it", async () => {
    await using w = await world((response) =>
      response.writeHead(w.got.length < 2 ? 500 : 200).end("ok ü"),
    );
    const sealed = w.secrets.seal(SECRET, { ...SEALED_FOR, name: OUTGOING_SECRET });
    const number = await w.send(w.url, { secret: { sealed } });
    await w.after(OUTGOING_PAUSES_MS[0] ?? 0);
    const [first, second, ...others] = w.got;
    expect(others).to.deep.equal([]);
    for (const { headers, body } of [first, second] as Got[]) {
      new Webhook(SECRET).verify(body, headers as Record<string, string>);
      const ofBody = createHmac("sha256", SECRET).update(body).digest("hex");
      expect(headers["x-signature"]).to.equal(`sha256=${ofBody}`);
      expect(headers["content-type"]).to.equal("application/json");
    }
    expect(first?.headers["webhook-id"]).to.equal(second?.headers["webhook-id"]);
    const times = [first, second].map((one) => Number(one?.headers["webhook-timestamp"]));
    expect((times[1] ?? 0) - (times[0] ?? 0)).to.equal((OUTGOING_PAUSES_MS[0] ?? 0) / 1_000);
    const { webhook, tries } = await w.get(number);
    expect(webhook).to.include({ status: "arrived", attempts: 2 });
    expect(tries.map(({ status }) => status)).to.deep.equal([500, 200]);
    expect(tries[1]).to.include({ answer: "ok ü" });
    expect(JSON.stringify(await w.get(number))).to.not.include(SECRET);
  });

  it("post() signs with each of several secrets, so that a receiver takes it with any of them", async () => {
    await using w = await world((response) => response.end());
    const [old, next] = [
      SECRET,
      `whsec_${Buffer.from("another secret of 24 bytes").toString("base64")}`,
    ];
    const seal = (secret: string) => ({
      sealed: w.secrets.seal(secret, { ...SEALED_FOR, name: OUTGOING_SECRET }),
    });
    const most = Array.from({ length: OUTGOING_SECRETS_MAX - 2 }, (_, index) => `more ${index}`);
    await w.send(w.url, { secret: [next, old, ...most].map(seal) });
    const { body, headers } = w.got.at(-1) as Got;
    for (const secret of [old, next]) {
      new Webhook(secret).verify(body, headers as Record<string, string>);
    }
    const signatures = String(headers["webhook-signature"]).split(" ");
    expect(signatures).to.have.length(OUTGOING_SECRETS_MAX);
    const ofBody = createHmac("sha256", next).update(body).digest("hex");
    expect(headers["x-signature"]).to.equal(`sha256=${ofBody}`);
    const other = new Webhook("whsec_b3RoZXIgb3RoZXIgb3RoZXI=");
    expect(() => other.verify(body, headers as Record<string, string>)).to.throw("No matching");
    const more = [next, old, ...most, "one more"].map(seal);
    const refused = await w.send(w.url, { secret: more }).catch((error: Error) => error.name);
    expect(refused).to.equal("ZodError");
  });

  it("post() reads a secret of the app by its name at that time", async () => {
    await using w = await world((response) => response.end());
    const key = appKey(ACCOUNT, "hooks");
    for (const secret of ["one", "two"]) {
      const sealed = w.secrets.seal(secret, { ...SEALED_FOR, name: "HOOK" });
      await w.actors.call(app, key, "putSecret", { name: "HOOK", sealed });
      await w.send(w.url, { secret: { name: "HOOK" } });
      const { body, headers } = w.got.at(-1) as Got;
      const expected = createHmac("sha256", secret).update(body).digest("hex");
      expect(headers["x-signature"]).to.equal(`sha256=${expected}`);
    }
    // If one of several secret names was deleted, only the others sign.
    await w.send(w.url, { secret: [{ name: "GONE" }, { name: "HOOK" }] });
    expect(w.got.at(-1)?.headers["webhook-signature"]).to.match(/^v1,\S+$/);
    const none = await w.send(w.url, { secret: [{ name: "GONE" }, { name: "LOST" }] });
    expect((await w.get(none)).tries.at(-1)?.error).to.match(/has no secret GONE, LOST$/);
    await w.send(w.url, { secret: { name: "VAR" } });
    const { body, headers } = w.got.at(-1) as Got;
    const expected = createHmac("sha256", "plain").update(body).digest("hex");
    expect(headers["x-signature"]).to.equal(`sha256=${expected}`);
  });

  it("post() sends nothing for an app that was deleted, also if another has its name", async () => {
    await using w = await world((response) => response.writeHead(500).end());
    const key = appKey(ACCOUNT, "hooks");
    const { id: appId } = await w.actors.call(app, key, "getServing", {});
    const numbers = [await w.send(w.url, { appId }), await w.send(w.url, { appId })];
    expect(w.got).to.have.length(2);
    await w.actors.call(app, key, "delete", {});
    const late = await w.send(w.url, { appId });
    expect((await w.get(late)).webhook).to.include({ status: "failed", attempts: 1 });
    await w.actors.send(app, key, "purged", { id: appId });
    expect(await w.deploy()).to.not.equal(appId);
    await w.after(OUTGOING_PAUSES_MS[0] ?? 0);
    for (const number of numbers) {
      const { webhook } = await w.get(number);
      expect(webhook).to.include({ status: "failed", attempts: 2 });
      expect(webhook.lastTry?.error).to.match(/"hooks" that sent this was deleted$/);
    }
    expect(w.got).to.have.length(2);
    await w.send(w.url);
    expect(w.got).to.have.length(3);
  });

  it("post() fails without its secret, and sends nothing", async () => {
    await using w = await world((response) => response.end());
    const foreign = w.secrets.seal("s", { ...SEALED_FOR, app: "other", name: OUTGOING_SECRET });
    const other = new SecretBox([newSecretKey()]);
    const lost = other.seal("s", { ...SEALED_FOR, name: OUTGOING_SECRET });
    for (const sealed of [foreign, lost]) {
      const number = await w.send(w.url, { secret: { sealed } });
      const { webhook } = await w.get(number);
      expect(webhook).to.include({ status: "waiting", attempts: 1 });
      expect(webhook.lastTry?.error).to.include("Cannot open secret");
    }
    expect(w.got).to.deep.equal([]);
  });

  it("post() follows no redirect, and keeps the beginning of an answer", async () => {
    await using w = await world((response, { path }) => {
      if (path === "/long") response.end("x".repeat(OUTGOING_ANSWER_BYTES_MAX + 1));
      else response.writeHead(307, { Location: "/elsewhere" }).end();
    });
    const redirected = await w.get(await w.send(w.url));
    expect(redirected.webhook).to.include({ status: "waiting", attempts: 1 });
    expect(redirected.tries[0]).to.include({ status: 307, error: "It answered 307" });
    expect(w.got.map(({ path }) => path)).to.deep.equal(["/hook"]);
    const long = await w.get(await w.send(new URL("/long", w.url).href));
    expect(long.webhook).to.include({ status: "arrived" });
    expect(long.tries[0]?.answer).to.have.length(OUTGOING_ANSWER_CHARS_KEPT);
  });

  it("post() reaches no address that the guard refuses, and reveals nothing about it", async () => {
    await using w = await world((response) => response.end());
    for (const url of ["http://127.0.0.1:1/", "http://169.254.169.254/x", "http://[::1]/"]) {
      const { webhook } = await w.get(await w.send(url));
      expect(webhook).to.include({ status: "waiting", attempts: 1 });
      expect(webhook.lastTry?.error).to.include("not one this service fetches");
    }
  });

  it("post() lets accounts take turns, so that endpoints that hang delay no other account", async () => {
    const held: ServerResponse[] = [];
    await using w = await world((response, { path }) => {
      if (path?.startsWith("/hang")) held.push(response);
      else response.end();
    });
    const sendTo = (key: string, url: string) => {
      const payload = { payload: { text: "{}" }, payloadBytes: 2, contentType: "text/plain" };
      return w.actors.call(outgoingWebhook, key, "send", { id: url, url, ...payload });
    };
    // These accounts want more slots than the worker has.
    const digits = [..."0123456789b"];
    for (const digit of digits) await w.deploy(digit.repeat(32));
    for (let i = 0; i < OUTGOING_PLACES_MAX; i++) {
      for (const digit of digits) {
        const key = `${digit.repeat(32)}.hooks.RepoAgent.agent-${i}`;
        await sendTo(key, new URL(`/hang/${digit}/${i}`, w.url).href);
      }
    }
    const ofAll = OUTGOING_SLOTS - OUTGOING_SLOTS_RESERVED;
    await until("they have all slots but the reserved ones", () => held.length === ofAll);
    for (const digit of digits) {
      const own = w.got.filter(({ path }) => path?.startsWith(`/hang/${digit}/`));
      expect(Math.abs(own.length - ofAll / digits.length), digit).to.be.below(1);
    }
    await sendTo(KEY, w.url);
    await until("the other one arrives", () => w.got.at(-1)?.path === "/hook");
    expect(held).to.have.length(ofAll);
    await until("all have ended", () => {
      for (const response of held) response.end();
      return w.got.length === digits.length * OUTGOING_PLACES_MAX + 1;
    });
  });

  it("post() has fewer large payloads in memory than it has small ones in progress", async () => {
    const held: ServerResponse[] = [];
    await using w = await world((response) => void held.push(response));
    for (const digit of ["b", "c", "d"]) await w.deploy(digit.repeat(32));
    for (let i = 0; i < OUTGOING_PLACES_MAX; i++) {
      for (const digit of ["b", "c", "d"]) {
        const key = `${digit.repeat(32)}.hooks.RepoAgent.agent-${i}`;
        const blob = `app.${key}`;
        await w.blobs.put(blob, Buffer.alloc(10_000, "x"));
        const payload = { payload: { blob }, payloadBytes: 10_000, contentType: "text/plain" };
        const url = new URL(`/hang/${digit}/${i}`, w.url).href;
        await w.actors.call(outgoingWebhook, key, "send", { id: url, url, ...payload });
      }
    }
    const ofAll = OUTGOING_LARGE_SLOTS - OUTGOING_LARGE_SLOTS_RESERVED;
    await until("they have all slots but the reserved ones", () => held.length === ofAll);
    await until("all have ended", () => {
      for (const response of held) response.end();
      return w.got.length === 3 * OUTGOING_PLACES_MAX;
    });
  });

  it("post() ends a try without an answer in time", async () => {
    await using w = await world(() => {}, { timeoutMs: 500 });
    const { webhook } = await w.get(await w.send(w.url));
    expect(webhook.lastTry).to.include({ error: "It did not answer in time" });
    expect(webhook.lastTry).to.not.have.property("status");
  });

  it("post() heeds 410 and Retry-After, as seconds and as a date", async () => {
    const answers = [
      [410, {}],
      [503, { "Retry-After": "3600" }],
      [429, { "Retry-After": "Fri, 31 Dec 2999 23:59:59 GMT" }],
    ] as const;
    await using w = await world((response) => {
      const [status, headers] = answers[w.got.length - 1] ?? [200, {}];
      response.writeHead(status, headers).end();
    });
    expect((await w.get(await w.send(w.url))).webhook).to.include({ status: "failed" });
    const hour = await w.get(await w.send(w.url));
    expect(hour.webhook.nextAttemptAt).to.equal(w.time.now + 3_600_000);
    const day = await w.get(await w.send(w.url));
    expect(day.webhook.nextAttemptAt).to.equal(w.time.now + 86_400_000);
  });

  it("post() leaves an endpoint alone that keeps failing, whatever its query, until a probe succeeds", async () => {
    let status = 500;
    await using w = await world((response) => response.writeHead(status).end());
    for (let i = 0; i < BREAKER_FAILURES_MAX; i++) await w.send(`${w.url}?n=${i}`);
    expect(w.got).to.have.length(BREAKER_FAILURES_MAX);
    const number = await w.send(`${w.url}?more`);
    expect(w.got).to.have.length(BREAKER_FAILURES_MAX);
    const { webhook } = await w.get(number);
    expect(webhook).to.include({ attempts: 0, nextAttemptAt: w.time.now + BREAKER_OPEN_MS });
    // A different path counts as a different endpoint.
    await w.send(new URL("/other", w.url).href);
    expect(w.got).to.have.length(BREAKER_FAILURES_MAX + 1);
    status = 200;
    await w.after(BREAKER_OPEN_MS);
    await w.after(60_000);
    expect((await w.get(number)).webhook).to.include({ status: "arrived" });
  });

  it("post() sends a payload that is a blob, and reports a missing one", async () => {
    await using w = await world((response) => response.end());
    await w.blobs.put("app.a.b.webhook.1", Buffer.from("large"));
    await w.send(w.url, { payload: { blob: "app.a.b.webhook.1" }, contentType: "text/plain" });
    expect(w.got[0]).to.include({ body: "large" });
    expect(w.got[0]?.headers["content-type"]).to.equal("text/plain");
    const gone = await w.get(await w.send(w.url, { payload: { blob: "app.a.b.webhook.2" } }));
    expect(gone.webhook.lastTry?.error).to.include("Cannot read");
  });
});
