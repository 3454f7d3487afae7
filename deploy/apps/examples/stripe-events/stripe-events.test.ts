import { expect } from "chai";
import Stripe from "stripe";
import { AppPlatform } from "../../../../scripts/testing/app-platform.ts";
import { deployExample } from "../../../../scripts/testing/example-app.ts";
import { until } from "../../../../scripts/testing/until.ts";

const SECRETS = { STRIPE_SECRET: "whsec_example", READ_TOKEN: "who may read" };

describe("example stripe-events", function () {
  this.timeout(300_000);
  let platform: AppPlatform;
  before(async () => {
    platform = await AppPlatform.start();
    await deployExample(platform, "stripe-events", SECRETS);
  });
  after(() => platform[Symbol.asyncDispose]());

  const send = (body: object, secret = SECRETS.STRIPE_SECRET) => {
    const payload = JSON.stringify(body);
    const signature = new Stripe("sk_test").webhooks.generateTestHeaderString({ payload, secret });
    const headers = { "content-type": "application/json", "stripe-signature": signature };
    return platform.ask("stripe-events", "/webhooks/stripe", {
      method: "POST",
      headers,
      body: payload,
    });
  };
  const event = (id: string, type: string, created: number, object: object) => ({
    ...{ id, type, created, object: "event" },
    data: { object: { customer: "cus_Ada", ...object } },
  });
  const shown = (customer: string, token = SECRETS.READ_TOKEN) =>
    platform.ask("stripe-events", `/customers/${customer}`, {
      headers: { authorization: `Bearer ${token}` },
    });

  it("sums up each customer's payments, each event once and in any order", async () => {
    const paid = (id: string, amount: number) =>
      event(id, "invoice.paid", 1, { amount_paid: amount, currency: "eur" });
    const events = [
      paid("evt_1", 1_000),
      event("evt_3", "customer.subscription.updated", 9, { status: "active" }),
      paid("evt_2", 250),
      event("evt_4", "customer.subscription.created", 5, { status: "incomplete" }),
      paid("evt_1", 1_000),
      {
        ...paid("evt_5", 7),
        data: { object: { customer: "cus_Bob", amount_paid: 7, currency: "usd" } },
      },
    ];
    for (const one of events) expect((await send(one)).status).to.equal(202);
    const state = async (customer: string) => JSON.parse((await shown(customer)).text);
    await until("all have arrived", async () => (await state("cus_Ada")).events === 4, 60_000);
    expect(await state("cus_Ada")).to.deep.equal({
      paid: { eur: 1_250 },
      subscription: "active",
      events: 4,
    });
    await until(
      "another customer's is another agent",
      async () => (await state("cus_Bob")).events === 1,
    );
    expect((await state("cus_Bob")).paid).to.deep.equal({ usd: 7 });
  });

  it("refuses events without Stripe's signature, and shows nothing to strangers", async () => {
    const forged = event("evt_9", "invoice.paid", 1, { amount_paid: 1, currency: "eur" });
    expect((await send(forged, "whsec_other")).status).to.equal(401);
    expect((await shown("cus_Ada", "guessed")).status).to.equal(401);
  });
});
