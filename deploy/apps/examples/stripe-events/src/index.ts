/** Handles events of Stripe. One agent per customer stores payments and the state of the subscription. */
import { Agent, type AgentNamespace, getAgentByName, timingSafeEqual } from "trunkline/agents";

interface Env {
  readonly Customer: AgentNamespace<Customer>;
  readonly READ_TOKEN: string;
}

export interface CustomerState {
  /** Amounts in the smallest unit of each currency. */
  paid: Record<string, number>;
  subscription: string | null;
  events: number;
}

interface StripeEvent {
  id: string;
  type: string;
  created: number;
  data: { object: { amount_paid?: number; currency?: string; status?: string } };
}

export class Customer extends Agent<Env, CustomerState> {
  override initialState: CustomerState = { paid: {}, subscription: null, events: 0 };

  override onStart(): void {
    this.sql`CREATE TABLE IF NOT EXISTS events (
      id TEXT PRIMARY KEY, type TEXT, created INTEGER, amount INTEGER, currency TEXT, status TEXT)`;
  }

  override async onRequest(request: Request): Promise<Response> {
    if (request.headers.get("x-trunkline-event-source") !== "stripe") {
      return Response.json(this.state);
    }
    const { id, type, created, data } = (await request.json()) as StripeEvent;
    const { amount_paid: amount = null, currency = null, status = null } = data.object;
    this
      .sql`INSERT INTO events VALUES (${id}, ${type}, ${created}, ${amount}, ${currency}, ${status})
      ON CONFLICT (id) DO NOTHING`;
    this.setState(this.summary());
    return new Response(null, { status: 204 });
  }

  /** Returns the state according to the newest of all stored events, because Stripe sends events in any order. */
  summary(): CustomerState {
    const sums = this.sql<{ currency: string; amount: number }>`
      SELECT currency, sum(amount) AS amount FROM events WHERE type = 'invoice.paid' GROUP BY currency`;
    const [latest] = this.sql<{ status: string }>`
      SELECT status FROM events WHERE type LIKE 'customer.subscription.%'
      ORDER BY created DESC, id DESC LIMIT 1`;
    const [{ events } = { events: 0 }] = this.sql<{ events: number }>`
      SELECT count(*) AS events FROM events`;
    const paid = Object.fromEntries(sums.map(({ currency, amount }) => [currency, amount]));
    return { paid, subscription: latest?.status ?? null, events };
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const [, customer] = /^\/customers\/([\w]+)$/.exec(new URL(request.url).pathname) ?? [];
    if (customer === undefined) return new Response("Not found", { status: 404 });
    if (!isAllowed(request, env.READ_TOKEN)) return new Response("Unauthorized", { status: 401 });
    const agent = await getAgentByName(env.Customer, customer.toLowerCase());
    return Response.json(await agent.summary());
  },
};

function isAllowed(request: Request, token: string): boolean {
  return timingSafeEqual(request.headers.get("authorization") ?? "", `Bearer ${token}`);
}
