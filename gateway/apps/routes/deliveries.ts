/** The routes for webhooks to and from agents: list, show, replay, send again. */
import type { z } from "zod";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import type { BlobStore } from "../../../actors/runtime/store/blob-store.ts";
import { agentInbox, type Delivery } from "../../../schemas/apps/agent-inbox.ts";
import { app } from "../../../schemas/apps/app.ts";
import { type Body, exactText } from "../../../schemas/apps/app-exchange.ts";
import { agentKey, appKey } from "../../../schemas/apps/app-names.ts";
import {
  AgentPath,
  DeliveriesQuery,
  DeliveryPath,
  ReplayDeliveries,
  Replayed,
  TestWebhook,
  WebhookPath,
  WebhooksQuery,
  WireDelivery,
  WireDeliveryContent,
  type WireTry,
  WireWebhook,
  WireWebhookContent,
} from "../../../schemas/apps/http/deliveries.ts";
import { REPLAYS_WAITING_MAX } from "../../../schemas/apps/limits.ts";
import {
  type OutgoingTry,
  type OutgoingWebhook,
  outgoingWebhook,
} from "../../../schemas/apps/outgoing-webhook.ts";
import type { Input } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { nothing } from "../../../schemas/http/nothing.ts";
import { JSON_BODY_BYTES_MAX } from "../../../schemas/limits.ts";
import { defineRoute, type Route, type RouteRequest, type Tag } from "../../http/route.ts";
import type { AccountRoom } from "../account-room.ts";

const DELIVERIES_TAG: Tag = {
  name: "Deliveries",
  description: "Webhooks that came in and went out",
};

const AGENT = "/accounts/{account_id}/apps/{app}/agents/{class_name}/{agent}";
const DELIVERIES = `${AGENT}/deliveries`;
const WEBHOOKS = `${AGENT}/webhooks`;

interface DeliveryRouteParts {
  actors: ActorClient;
  blobs: Pick<BlobStore, "get">;
  /** Checks whether an account may store more data. */
  room: Pick<AccountRoom, "check">;
}

const READS = { tag: DELIVERIES_TAG, permissions: ["apps.read"] } as const;
const WRITES = { tag: DELIVERIES_TAG, permissions: ["apps.write"] } as const;

const LIST_DELIVERIES = {
  ...READS,
  method: "get",
  path: DELIVERIES,
  id: "listDeliveries",
  summary: "List the events that an agent received, newest first",
  parameters: AgentPath,
  query: DeliveriesQuery,
  answer: { result: WireDelivery.array(), paged: "cursor" },
} as const;

const REPLAY_DELIVERIES = {
  ...WRITES,
  method: "post",
  path: `${DELIVERIES}/replay`,
  id: "replayDeliveries",
  summary: "Deliver several events again, in the order in which they arrived",
  parameters: AgentPath,
  query: nothing,
  body: { schema: ReplayDeliveries, bytesMax: JSON_BODY_BYTES_MAX },
  refusals: ["queue_full"],
  answer: { result: Replayed, status: 202 },
} as const;

const GET_DELIVERY = {
  ...READS,
  method: "get",
  path: `${DELIVERIES}/{delivery_id}`,
  id: "getDelivery",
  summary: "Get an event with its headers and body",
  parameters: DeliveryPath,
  query: nothing,
  answer: { result: WireDeliveryContent },
} as const;

const REPLAY_DELIVERY = {
  ...WRITES,
  method: "post",
  path: `${DELIVERIES}/{delivery_id}/replay`,
  id: "replayDelivery",
  summary: "Deliver an event again; an event that is still waiting is left as it is",
  parameters: DeliveryPath,
  query: nothing,
  refusals: ["queue_full"],
  answer: { result: Replayed, status: 202 },
} as const;

const LIST_OUTGOING_WEBHOOKS = {
  ...READS,
  method: "get",
  path: WEBHOOKS,
  id: "listOutgoingWebhooks",
  summary: "List the webhooks that an agent sent, newest first",
  parameters: AgentPath,
  query: WebhooksQuery,
  answer: { result: WireWebhook.array(), paged: "cursor" },
} as const;

const SEND_TEST_WEBHOOK = {
  ...WRITES,
  method: "post",
  path: `${WEBHOOKS}/test`,
  id: "sendTestWebhook",
  summary: "Send a `webhook.test` event, to check that an endpoint accepts it",
  parameters: AgentPath,
  query: nothing,
  body: { schema: TestWebhook, bytesMax: JSON_BODY_BYTES_MAX },
  refusals: ["queue_full", "limit_reached"],
  answer: { result: WireWebhook, status: 202 },
} as const;

const GET_OUTGOING_WEBHOOK = {
  ...READS,
  method: "get",
  path: `${WEBHOOKS}/{webhook_id}`,
  id: "getOutgoingWebhook",
  summary: "Get a webhook with its payload and its last attempts",
  parameters: WebhookPath,
  query: nothing,
  answer: { result: WireWebhookContent },
} as const;

const RESEND_OUTGOING_WEBHOOK = {
  ...WRITES,
  method: "post",
  path: `${WEBHOOKS}/{webhook_id}/resend`,
  id: "resendOutgoingWebhook",
  summary: "Send a delivered or failed webhook again under the same webhook-id",
  parameters: WebhookPath,
  query: nothing,
  refusals: ["conflict", "queue_full"],
  answer: { result: WireWebhook, status: 202 },
} as const;

/** The REST routes of an agent's deliveries and outgoing webhooks. */
export function deliveryRoutes(parts: DeliveryRouteParts): Route[] {
  return [
    defineRoute({ ...LIST_DELIVERIES, handle: listDeliveries(parts) }),
    // This route must precede the routes of one delivery, which would treat "replay" as an id.
    defineRoute({ ...REPLAY_DELIVERIES, handle: replayDeliveries(parts) }),
    defineRoute({ ...GET_DELIVERY, handle: getDelivery(parts) }),
    defineRoute({ ...REPLAY_DELIVERY, handle: replayDelivery(parts) }),
    defineRoute({ ...LIST_OUTGOING_WEBHOOKS, handle: listWebhooks(parts) }),
    defineRoute({ ...SEND_TEST_WEBHOOK, handle: sendTest(parts) }),
    defineRoute({ ...GET_OUTGOING_WEBHOOK, handle: getWebhook(parts) }),
    defineRoute({ ...RESEND_OUTGOING_WEBHOOK, handle: resend(parts) }),
  ];
}

function listDeliveries({ actors }: DeliveryRouteParts) {
  return async ({ parameters, query }: RouteRequest<AgentPath, DeliveriesQuery>) => {
    const key = await keyOf(actors, parameters);
    const { deliveries, before } = await actors.call(agentInbox, key, "list", pageOf(query));
    return {
      result: deliveries.map(wireDelivery),
      resultInfo: infoOf(deliveries.length, query.limit, before),
    };
  };
}

function getDelivery({ actors, blobs }: DeliveryRouteParts) {
  return async ({ parameters, signal }: RouteRequest<DeliveryPath>) => {
    const key = await keyOf(actors, parameters);
    const number = Number(parameters.delivery_id);
    const { delivery, request } = await actors.call(agentInbox, key, "get", { number });
    const { method, url, headers } = request;
    return {
      result: {
        ...wireDelivery(delivery),
        ...{ method, url, headers: headers.map(([name, value]) => ({ name, value })) },
        ...(await contentOf(blobs, request.body, signal)),
      },
    };
  };
}

function replayDeliveries({ actors }: DeliveryRouteParts) {
  return async ({
    parameters,
    body: { from, to, status },
  }: RouteRequest<AgentPath, unknown, ReplayDeliveries>) => {
    const key = await keyOf(actors, parameters);
    const wanted = { ...endOf("from", from), ...endOf("to", to), ...(status && { status }) };
    const numbers = await findDeliveries(actors, key, wanted);
    return { result: await actors.call(agentInbox, key, "replay", { ...wanted, numbers }) };
  };
}

/**
 * Returns the numbers of the deliveries that fit, step by step, so that a long log delays no other actor of its host.
 * Rejects with `queue_full` if they are too many for a replay.
 */
async function findDeliveries(
  actors: DeliveryRouteParts["actors"],
  key: string,
  wanted: Input<(typeof agentInbox)["messages"]["find"]>,
) {
  const numbers: [number, number][] = [];
  let count = 0;
  for (let from = wanted.from; ; ) {
    const page = { ...wanted, ...(from !== undefined && { from }) };
    const { runs, next } = await actors.call(agentInbox, key, "find", page);
    numbers.push(...runs);
    count += runs.reduce((sum, [first, last]) => sum + last - first + 1, 0);
    if (count > REPLAYS_WAITING_MAX) {
      const text = `Cannot replay: more than ${REPLAYS_WAITING_MAX} would wait; ask for fewer at once`;
      throw new ActorError("queue_full", text);
    }
    if (next === undefined) return numbers;
    from = next;
  }
}

function replayDelivery({ actors }: DeliveryRouteParts) {
  return async ({ parameters }: RouteRequest<DeliveryPath>) => {
    const key = await keyOf(actors, parameters);
    const number = Number(parameters.delivery_id);
    // Checks that the delivery exists, because one that does not exist cannot be replayed.
    await actors.call(agentInbox, key, "get", { number });
    const wanted = { from: number, to: number };
    return { result: await actors.call(agentInbox, key, "replay", wanted) };
  };
}

function listWebhooks({ actors }: DeliveryRouteParts) {
  return async ({ parameters, query }: RouteRequest<AgentPath, WebhooksQuery>) => {
    const key = await keyOf(actors, parameters);
    const { webhooks, before } = await actors.call(outgoingWebhook, key, "list", pageOf(query));
    return {
      result: webhooks.map(wireWebhook),
      resultInfo: infoOf(webhooks.length, query.limit, before),
    };
  };
}

function getWebhook({ actors, blobs }: DeliveryRouteParts) {
  return async ({ parameters, signal }: RouteRequest<WebhookPath>) => {
    const key = await keyOf(actors, parameters);
    const number = Number(parameters.webhook_id);
    const found = await actors.call(outgoingWebhook, key, "get", { number });
    return {
      result: {
        ...wireWebhook(found.webhook),
        content_type: found.contentType,
        tries: found.tries.map(wireTry),
        ...(await contentOf(blobs, found.payload, signal)),
      },
    };
  };
}

function sendTest({ actors, room }: DeliveryRouteParts) {
  return async ({ parameters, body }: RouteRequest<AgentPath, unknown, TestWebhook>) => {
    const key = await keyOf(actors, parameters);
    await room.check(parameters.account_id);
    const { url, secret } = body;
    const names = [secret ?? []].flat().map((name) => ({ name }));
    const wanted = { url, ...(names.length > 0 && { secret: names }) };
    return { result: wireWebhook(await actors.call(outgoingWebhook, key, "sendTest", wanted)) };
  };
}

function resend({ actors }: DeliveryRouteParts) {
  return async ({ parameters }: RouteRequest<WebhookPath>) => {
    const key = await keyOf(actors, parameters);
    const number = Number(parameters.webhook_id);
    return { result: wireWebhook(await actors.call(outgoingWebhook, key, "resend", { number })) };
  };
}

/** Returns the key of the agent. Refuses if the account has no such app. */
async function keyOf(
  actors: ActorClient,
  { account_id: accountId, app: name, class_name, agent }: AgentPath,
): Promise<string> {
  await actors.call(app, appKey(accountId, name), "get", {});
  return agentKey({ accountId, app: name, className: class_name, name: agent });
}

async function contentOf(
  blobs: DeliveryRouteParts["blobs"],
  body: Body | undefined,
  signal: AbortSignal,
) {
  if (body === undefined) return { body: "", body_encoding: "text" as const };
  if ("text" in body) return { body: body.text, body_encoding: "text" as const };
  if ("base64" in body) return { body: body.base64, body_encoding: "base64" as const };
  try {
    const bytes = Buffer.concat(await Array.fromAsync(blobs.get(body.blob, { signal })));
    const text = exactText(bytes);
    return text === undefined
      ? { body: bytes.toString("base64"), body_encoding: "base64" as const }
      : { body: text, body_encoding: "text" as const };
  } catch (error) {
    if (!(error instanceof ActorError && error.code === "not_found")) throw error;
    return { body: null, body_encoding: "text" as const };
  }
}

function pageOf<S>({
  status,
  cursor,
  limit,
}: {
  status?: S;
  cursor?: string | undefined;
  limit: number;
}) {
  return {
    limit,
    ...(status !== undefined && { status }),
    ...(cursor !== undefined && { before: Number(cursor) }),
  };
}

const infoOf = (count: number, perPage: number, before: number | undefined) => ({
  count,
  per_page: perPage,
  ...(before !== undefined && { cursor: String(before) }),
});

/** A text of digits only is an id. Any other text is a time. */
function endOf(end: "from" | "to", text: string | undefined) {
  if (text === undefined) return {};
  if (/^\d+$/.test(text)) return { [end]: Number(text) };
  return { [end === "from" ? "receivedFrom" : "receivedTo"]: Date.parse(text) };
}

const timeOf = (at: number) => new Date(at).toISOString();
const timeOrNull = (at: number | undefined) => (at === undefined ? null : timeOf(at));

function wireDelivery(delivery: Delivery): z.input<typeof WireDelivery> {
  return {
    id: String(delivery.number),
    status: delivery.status,
    source: delivery.source,
    event_id: delivery.eventId,
    event_type: delivery.eventType ?? null,
    received_on: timeOf(delivery.receivedAt),
    body_bytes: delivery.bodyBytes,
    attempts: delivery.attempts,
    last_attempt_on: timeOrNull(delivery.lastAttemptAt),
    next_attempt_on: timeOrNull(delivery.nextAttemptAt),
    replays: delivery.replays,
    answer_status: delivery.answerStatus ?? null,
    error: delivery.error ?? null,
  };
}

function wireWebhook(webhook: OutgoingWebhook): z.input<typeof WireWebhook> {
  return {
    id: String(webhook.number),
    webhook_id: webhook.id,
    status: webhook.status,
    url: webhook.url,
    is_test: webhook.isTest,
    created_on: timeOf(webhook.createdAt),
    payload_bytes: webhook.payloadBytes,
    attempts: webhook.attempts,
    last_try: webhook.lastTry ? wireTry(webhook.lastTry) : null,
    next_attempt_on: timeOrNull(webhook.nextAttemptAt),
    resends: webhook.resends,
  };
}

function wireTry(one: OutgoingTry): z.input<typeof WireTry> {
  return {
    at: timeOf(one.at),
    duration_ms: one.durationMs,
    status: one.status ?? null,
    error: one.error ?? null,
    answer: one.answer ?? null,
  };
}
