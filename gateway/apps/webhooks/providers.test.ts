import { createHmac } from "node:crypto";
import { sign as githubSign } from "@octokit/webhooks-methods";
import { expect } from "chai";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";
import { Webhook as SvixWebhook } from "svix";
import { HOOK_ACCOUNT, webhookServer } from "./testing/webhook-server.ts";

const OLD = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEW = "whsec_c2VjcmV0IG9mIHNvbWVib2R5IGVsc2U=";
const FORM = { "Content-Type": "application/x-www-form-urlencoded" };

interface Sent {
  body: string;
  headers: Record<string, string>;
}

interface Sample {
  /** The endpoint's configuration, except its path, secrets and agent. */
  config: object;
  send(secret: string, now: number): Sent | Promise<Sent>;
  eventId: string;
  eventType?: string;
  /** The name of the agent that gets the event. */
  entity: string;
}

const mac = (algorithm: string, key: string, text: string, encoding: "hex" | "base64" = "hex") =>
  createHmac(algorithm, key).update(text).digest(encoding);
const secondsOf = (now: number) => String(Math.floor(now / 1_000));

/** Sample events of each provider, signed with its own library where one exists. */
const SAMPLES: Record<string, Sample> = {
  github: {
    config: { entity: { body: "/repository/full_name" } },
    async send(secret) {
      const body = JSON.stringify({ repository: { full_name: "Octo/Hello" } });
      const about = { "X-GitHub-Delivery": "d-1", "X-GitHub-Event": "push" };
      return { body, headers: { ...about, "X-Hub-Signature-256": await githubSign(secret, body) } };
    },
    ...{ eventId: "d-1", eventType: "push", entity: "octo-hello" },
  },
  stripe: {
    config: { entity: { body: "/data/object/customer" } },
    send(secret, now) {
      const event = { id: "evt_1", type: "invoice.paid", data: { object: { customer: "cus_A" } } };
      const payload = JSON.stringify(event);
      const { webhooks } = new Stripe("sk_test_none");
      const timestamp = Math.floor(now / 1_000);
      const header = webhooks.generateTestHeaderString({ payload, secret, timestamp });
      return { body: payload, headers: { "Stripe-Signature": header } };
    },
    ...{ eventId: "evt_1", eventType: "invoice.paid", entity: "cus_a" },
  },
  slack: {
    config: { entity: { body: "/team_id" } },
    send(secret, now) {
      const body = JSON.stringify({ team_id: "T1", event_id: "Ev1", event: { type: "message" } });
      const time = secondsOf(now);
      const signature = `v0=${mac("sha256", secret, `v0:${time}:${body}`)}`;
      const headers = { "X-Slack-Request-Timestamp": time, "X-Slack-Signature": signature };
      return { body, headers };
    },
    ...{ eventId: "Ev1", eventType: "message", entity: "t1" },
  },
  shopify: {
    config: { entity: { header: "X-Shopify-Shop-Domain" } },
    send(secret) {
      const body = JSON.stringify({ id: 1 });
      const about = { "X-Shopify-Webhook-Id": "w-1", "X-Shopify-Topic": "orders/create" };
      const signature = mac("sha256", secret, body, "base64");
      const shop = { "X-Shopify-Shop-Domain": "Shop.example" };
      return { body, headers: { ...about, ...shop, "X-Shopify-Hmac-Sha256": signature } };
    },
    ...{ eventId: "w-1", eventType: "orders/create", entity: "shop.example" },
  },
  twilio: {
    config: { entity: { body: "/From" } },
    send(secret) {
      const body = "From=%2B14158675309&MessageStatus=delivered";
      // The signed text begins with the URL that the sender called.
      const text = "https://hooks.example/inFrom+14158675309MessageStatusdelivered";
      const signature = mac("sha1", secret, text, "base64");
      const about = { "I-Twilio-Idempotency-Token": "t-1" };
      return { body, headers: { ...FORM, ...about, "X-Twilio-Signature": signature } };
    },
    ...{ eventId: "t-1", eventType: "delivered", entity: "+14158675309" },
  },
  linear: {
    config: { entity: { body: "/organizationId" } },
    send(secret, now) {
      const body = JSON.stringify({ organizationId: "Org", type: "Issue", webhookTimestamp: now });
      const about = { "Linear-Delivery": "l-1", "Linear-Event": "Issue" };
      return { body, headers: { ...about, "Linear-Signature": mac("sha256", secret, body) } };
    },
    ...{ eventId: "l-1", eventType: "Issue", entity: "org" },
  },
  "standard-webhooks": {
    config: { entity: { body: "/data/id" } },
    send(secret, now) {
      const body = JSON.stringify({ type: "thing.made", data: { id: "Thing/1" } });
      const headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": secondsOf(now),
        "webhook-signature": new Webhook(secret).sign("msg_1", new Date(now), body),
      };
      return { body, headers };
    },
    ...{ eventId: "msg_1", eventType: "thing.made", entity: "thing-1" },
  },
  hmac: {
    config: {
      entity: { body: "/device" },
      event_id: { body: "/n" },
      event_type: { header: "X-Kind" },
      hmac: {
        ...{ header: "X-Sig", algorithm: "sha512", encoding: "base64", prefix: "v9=" },
        ...{ timestamp_header: "X-Time", tolerance_seconds: 10 },
      },
    },
    send(secret, now) {
      const body = JSON.stringify({ device: "Lamp", n: 7 });
      const time = secondsOf(now);
      const signature = `v9=${mac("sha512", secret, `${time}.${body}`, "base64")}`;
      return { body, headers: { "X-Sig": signature, "X-Time": time, "X-Kind": "on" } };
    },
    ...{ eventId: "7", eventType: "on", entity: "lamp" },
  },
};

const endpoint = (provider: string, config: object) => ({
  ...{ path: "/in", provider, secret: ["OLD", "NEW"], agent: "REPOS" },
  ...config,
});
const SECRETS = { OLD, NEW };

describe("declared endpoints of all providers", () => {
  for (const [provider, { config, send, eventId, eventType, entity }] of Object.entries(SAMPLES)) {
    it(`${provider}: stored once by its id, for its agent, by either secret`, async () => {
      await using server = await webhookServer([endpoint(provider, config)], SECRETS);
      const post = async (secret: string) => {
        const { body, headers } = await send(secret, server.clock.now);
        return fetch(`${server.url}/in`, { method: "POST", headers, body });
      };
      expect((await post("whsec_bm9ib2R5IGhhcyB0aGlz")).status).to.equal(401);
      for (const secret of [OLD, NEW, OLD]) expect((await post(secret)).status).to.equal(202);
      await server.actors.settled();
      expect(server.delivered).to.have.length(1);
      const [{ key, delivery } = { key: "" }] = server.delivered;
      expect(key).to.equal(`${HOOK_ACCOUNT}.hooks.RepoAgent.${entity}`);
      const headers = new Headers(delivery?.request.headers);
      expect(headers.get("x-trunkline-event-id")).to.equal(eventId);
      expect(headers.get("x-trunkline-event-type")).to.equal(eventType);
    });
  }

  it("svix: a message that its own library signs is taken once, by the signed id", async () => {
    const configured = endpoint("standard-webhooks", { entity: { body: "/data/id" } });
    await using server = await webhookServer([configured], SECRETS);
    const body = JSON.stringify({ type: "thing.made", data: { id: "Thing/1" } });
    const signed = (secret: string, id: string) => ({
      "svix-id": id,
      "svix-timestamp": secondsOf(server.clock.now),
      "svix-signature": new SvixWebhook(secret).sign(id, new Date(server.clock.now), body),
    });
    const post = async (headers: Record<string, string>) =>
      (await fetch(`${server.url}/in`, { method: "POST", headers, body })).status;
    expect(await post(signed(OLD, "msg_1"))).to.equal(202);
    expect(await post(signed(NEW, "msg_1"))).to.equal(202);
    // Header names of the standard that somebody added on the way are not signed. They must not turn a repeated event
    // into a new one.
    expect(await post({ ...signed(OLD, "msg_1"), "webhook-id": "msg_2" })).to.equal(202);
    expect(await post({ ...signed(OLD, "msg_1"), "svix-id": "msg_3" })).to.equal(401);
    const { "svix-id": _, ...withoutId } = signed(OLD, "msg_1");
    expect(await post({ ...withoutId, "webhook-id": "msg_1" })).to.equal(401);
    const late = String(Math.floor(server.clock.now / 1_000) - 301);
    expect(await post({ ...signed(OLD, "msg_4"), "svix-timestamp": late })).to.equal(401);
    await server.actors.settled();
    expect(server.delivered).to.have.length(1);
    const headers = new Headers(server.delivered[0]?.delivery.request.headers);
    expect(headers.get("x-trunkline-event-id")).to.equal("msg_1");
  });

  it("twilio gets an empty TwiML answer", async () => {
    const { config, send } = SAMPLES.twilio as Sample;
    await using server = await webhookServer([endpoint("twilio", config)], SECRETS);
    const { body, headers } = await send(OLD, server.clock.now);
    const answer = await fetch(`${server.url}/in`, { method: "POST", headers, body });
    expect(answer.headers.get("content-type")).to.equal("text/xml");
    expect(await answer.text()).to.equal("<Response/>");
  });

  it("a declared HMAC is good for as long as its tolerance", async () => {
    const { config, send } = SAMPLES.hmac as Sample;
    await using server = await webhookServer([endpoint("hmac", config)], SECRETS);
    for (const [late, status] of [
      [9_000, 202],
      [11_000, 401],
    ] as const) {
      const { body, headers } = await send(OLD, server.clock.now - late);
      const answer = await fetch(`${server.url}/in`, { method: "POST", headers, body });
      expect(answer.status).to.equal(status);
    }
  });

  it("Stripe's ping and Slack's look at a certificate are answered, and are no events", async () => {
    const { stripe, slack } = SAMPLES as Record<"stripe" | "slack", Sample>;
    const endpoints = [
      { ...endpoint("stripe", stripe.config), path: "/stripe" },
      { ...endpoint("slack", slack.config), path: "/slack" },
    ];
    await using server = await webhookServer(endpoints, SECRETS);
    const { now } = server.clock;
    const ping = JSON.stringify({ id: "evt_2", type: "v2.core.event_destination.ping" });
    const time = secondsOf(now);
    const check = "ssl_check=1&token=x";
    for (const [path, body, headers] of [
      [
        "/stripe",
        ping,
        { "Stripe-Signature": `t=${time},v1=${mac("sha256", OLD, `${time}.${ping}`)}` },
      ],
      [
        "/slack",
        check,
        {
          ...FORM,
          "X-Slack-Request-Timestamp": time,
          "X-Slack-Signature": `v0=${mac("sha256", OLD, `v0:${time}:${check}`)}`,
        },
      ],
    ] as const) {
      const answer = await fetch(`${server.url}${path}`, { method: "POST", headers, body });
      expect([answer.status, await answer.text()], path).to.deep.equal([200, "pong"]);
    }
    await server.actors.settled();
    expect(server.delivered).to.deep.equal([]);
  });
});
