/** JSON forms of an agent's received events and outgoing webhooks in the REST API. */
import { z } from "zod";
import { PAGE_ENTRIES } from "../../limits.ts";
import { DeliveryStatus } from "../agent-inbox.ts";
import { AgentName, BindingName, ClassName } from "../app-names.ts";
import { DELIVERIES_LISTED_MAX, OUTGOING_SECRETS_MAX } from "../limits.ts";
import { OutgoingStatus, OutgoingUrl } from "../outgoing-webhook.ts";
import { AppPath } from "./apps.ts";

const ENTRY_NUMBER = /^[1-9]\d{0,14}$/;
const EntryId = z
  .string()
  .regex(ENTRY_NUMBER, "Expected the id of an entry, a whole number from 1")
  .describe("The entry's number among the entries of its agent");

export const AgentPath = AppPath.extend({
  class_name: ClassName.describe("The class name in the app's configuration"),
  agent: AgentName.describe("The agent's name, percent-encoded"),
});
export type AgentPath = z.output<typeof AgentPath>;
export const DeliveryPath = AgentPath.extend({ delivery_id: EntryId });
export type DeliveryPath = z.output<typeof DeliveryPath>;
export const WebhookPath = AgentPath.extend({ webhook_id: EntryId });
export type WebhookPath = z.output<typeof WebhookPath>;

const listing = {
  cursor: z
    .string()
    .regex(ENTRY_NUMBER, "Expected the cursor of the previous response")
    .optional()
    .describe("The cursor of the previous response"),
  limit: z.coerce
    .number()
    .pipe(z.int().min(1).max(DELIVERIES_LISTED_MAX))
    .default(PAGE_ENTRIES)
    .describe(
      "Maximum number of entries; with `status`, a response may have fewer and still have a cursor",
    ),
};
export const DeliveriesQuery = z.strictObject({ status: DeliveryStatus.optional(), ...listing });
export type DeliveriesQuery = z.output<typeof DeliveriesQuery>;
export const WebhooksQuery = z.strictObject({ status: OutgoingStatus.optional(), ...listing });
export type WebhooksQuery = z.output<typeof WebhooksQuery>;

const End = z.union([
  EntryId,
  z.iso.datetime("Expected the id of a delivery, or a time such as 2026-11-20T12:00:00Z"),
]);

export const ReplayDeliveries = z
  .strictObject({
    from: End.optional().describe("The first event, by its id or by the time when it was received"),
    to: End.optional().describe("The last event, by its id or by the time when it was received"),
    status: DeliveryStatus.exclude(["waiting"]).optional(),
  })
  .refine((wanted) => Object.keys(wanted).length > 0, {
    error: "Expected from, to or status: a replay of all kept deliveries must name them",
  })
  .meta({ examples: [{ status: "failed" }] });
export type ReplayDeliveries = z.output<typeof ReplayDeliveries>;

export const TestWebhook = z
  .strictObject({
    url: OutgoingUrl,
    secret: z
      .union([BindingName, z.array(BindingName).min(1).max(OUTGOING_SECRETS_MAX)])
      .optional()
      .describe(
        "The name of the app secret that signs the event; with several names, each one signs",
      ),
  })
  .meta({ examples: [{ url: "https://example.com/hook" }] });
export type TestWebhook = z.output<typeof TestWebhook>;

const Time = z.iso.datetime();

export const WireDelivery = z.object({
  id: EntryId,
  status: DeliveryStatus.describe(
    "`failed` events used up their attempts and are kept for a replay",
  ),
  source: z.string(),
  event_id: z.string(),
  event_type: z.string().nullable(),
  received_on: Time,
  body_bytes: z.int(),
  attempts: z.int().describe("Number of attempts of the last delivery"),
  last_attempt_on: Time.nullable(),
  next_attempt_on: Time.nullable(),
  replays: z.int(),
  answer_status: z
    .int()
    .nullable()
    .describe("HTTP status that the agent returned at the last attempt"),
  error: z.string().nullable(),
});

const Content = {
  body: z.string().nullable().describe("Null after its retention time"),
  body_encoding: z.enum(["text", "base64"]),
};

export const WireDeliveryContent = WireDelivery.extend({
  method: z.string(),
  url: z.string(),
  headers: z.array(z.object({ name: z.string(), value: z.string() })),
  ...Content,
});

export const Replayed = z.object({ replayed: z.int() });

export const WireTry = z.object({
  at: Time,
  duration_ms: z.int(),
  status: z.int().nullable(),
  error: z.string().nullable(),
  answer: z.string().nullable().describe("The start of the response body"),
});

export const WireWebhook = z.object({
  id: EntryId,
  webhook_id: z.string().describe("The webhook-id header of all its attempts"),
  status: OutgoingStatus,
  url: z.string(),
  is_test: z.boolean(),
  created_on: Time,
  payload_bytes: z.int(),
  attempts: z.int(),
  last_try: WireTry.nullable(),
  next_attempt_on: Time.nullable().describe(
    "In the past while the webhook waits, because the account has as many in progress as it may have",
  ),
  resends: z.int(),
});

export const WireWebhookContent = WireWebhook.extend({
  content_type: z.string(),
  tries: z.array(WireTry),
  ...Content,
});
