/**
 * The fields of each provider: the id and type of an event, its test message, and the entity that an event is for.
 */
import { createHash, randomUUID } from "node:crypto";
import type { FieldSource, WebhookEndpoint } from "../../../schemas/apps/app-config.ts";
import {
  AGENT_NAME_CHARS_MAX,
  EVENT_ID_CHARS_MAX,
  EVENT_TYPE_CHARS_MAX,
} from "../../../schemas/apps/limits.ts";
import { standardPrefix } from "./signature-schemes.ts";
import { type SignedEvent, textAt, valueAt } from "./signed-event.ts";

type Provider = WebhookEndpoint["provider"];

interface ProviderFields {
  /**
   * The places of the event's id; the first one with a value counts. For an event without such an id, see eventIdOf.
   */
  ids: readonly FieldSource[];
  types: readonly FieldSource[];
  /** True if an event without an id is refused. */
  needsId?: boolean;
}

const PROVIDER_FIELDS: Record<Provider, ProviderFields> = {
  github: {
    ids: [{ header: "x-github-delivery" }],
    types: [{ header: "x-github-event" }],
    needsId: true,
  },
  stripe: { ids: [{ body: "/id" }], types: [{ body: "/type" }], needsId: true },
  slack: {
    // `/event_id` is the id of an event; `/trigger_id` is the id of a command or of a person's click.
    ids: [{ body: "/event_id" }, { body: "/trigger_id" }],
    types: [{ body: "/event/type" }, { body: "/command" }, { body: "/type" }],
  },
  shopify: {
    ids: [{ header: "x-shopify-webhook-id" }, { header: "shopify-webhook-id" }],
    types: [{ header: "x-shopify-topic" }, { header: "shopify-topic" }],
    needsId: true,
  },
  twilio: {
    ids: [{ header: "i-twilio-idempotency-token" }],
    types: [{ body: "/EventType" }, { body: "/MessageStatus" }, { body: "/CallStatus" }],
  },
  linear: {
    ids: [{ header: "linear-delivery" }],
    types: [{ header: "linear-event" }, { body: "/type" }],
    needsId: true,
  },
  "standard-webhooks": {
    // The ids are in the headers whose names the signature scheme defines: see eventIdOf.
    ids: [],
    types: [{ body: "/type" }],
    needsId: true,
  },
  hmac: { ids: [], types: [] },
};

/** The name of the missing part, as the 400 response shows it. */
export interface Missing {
  missing: string;
}

/**
 * Returns the id of an event, or `missing` if an id is required but absent. If none is required, an event without an
 * id is identified by its signed content, if its signature contains a time. Otherwise repeated events cannot be
 * recognized.
 */
export function eventIdOf(
  { provider, event_id, hmac }: WebhookEndpoint,
  event: SignedEvent,
): string | Missing {
  const { ids, needsId } = PROVIDER_FIELDS[provider];
  const ofStandard = { header: `${standardPrefix(event.headers)}-id` };
  const own = provider === "standard-webhooks" ? [ofStandard] : ids;
  const sources = event_id ? [event_id] : own;
  const found = firstOf(sources, event);
  if (found !== undefined) return found.length <= EVENT_ID_CHARS_MAX ? found : hashOf(found);
  if (event_id || needsId) return { missing: `the event's id, ${wordsOf(sources)}` };
  const timeHeader =
    provider === "slack" ? "x-slack-request-timestamp" : hmac?.timestamp_header?.toLowerCase();
  const time = timeHeader && event.headers.get(timeHeader);
  return time ? hashOf(`${time}.`, event.body) : randomUUID();
}

export function eventTypeOf(
  { provider, event_type }: WebhookEndpoint,
  event: SignedEvent,
): string | Missing | undefined {
  const found = firstOf(event_type ? [event_type] : PROVIDER_FIELDS[provider].types, event);
  if (found === undefined && event_type) {
    return { missing: `the event's type, ${wordsOf([event_type])}` };
  }
  return found?.slice(0, EVENT_TYPE_CHARS_MAX);
}

/**
 * Returns the entity in lower case, with `-` for each slash: `Owner/Repo` becomes the agent `owner-repo`, whichever
 * source the name comes from.
 */
export function entityOf(
  { entity }: WebhookEndpoint,
  event: SignedEvent,
  ofPath: string | undefined,
): string | Missing {
  const source = "path" in entity ? undefined : entity;
  const found = (source === undefined ? ofPath : firstOf([source], event))?.trim();
  const where = source === undefined ? "in the path" : wordsOf([source]);
  if (!found) return { missing: `the entity, ${where}` };
  const name = found.toLowerCase().replaceAll("/", "-");
  if (name.length > AGENT_NAME_CHARS_MAX) {
    return { missing: `an entity of at most ${AGENT_NAME_CHARS_MAX} characters, ${where}` };
  }
  return name;
}

/** Returns the answer to a request that is not an event but asks whether this address accepts the sender's calls. */
export function handshakeAnswer(
  provider: Provider,
  event: SignedEvent,
): { status: 200; contentType: string; body: string } | undefined {
  // Fields are read only for providers whose test messages are recognized by them: parsing a large body takes time.
  const type = () => textAt(event.fields, "/type");
  const isPing =
    (provider === "github" && event.headers.get("x-github-event") === "ping") ||
    (provider === "stripe" && type() === "v2.core.event_destination.ping") ||
    (provider === "slack" && valueAt(event.fields, "/ssl_check") === "1");
  if (isPing) return { status: 200, contentType: "text/plain; charset=utf-8", body: "pong" };
  if (provider !== "slack" || type() !== "url_verification") return undefined;
  const challenge = textAt(event.fields, "/challenge") ?? "";
  return {
    status: 200,
    contentType: "application/json; charset=utf-8",
    body: JSON.stringify({ challenge }),
  };
}

function firstOf(sources: readonly FieldSource[], event: SignedEvent): string | undefined {
  for (const source of sources) {
    const found =
      "header" in source
        ? event.headers.get(source.header.toLowerCase())
        : textAt(event.fields, source.body);
    if (found) return found;
  }
  return undefined;
}

const wordsOf = (sources: readonly FieldSource[]) =>
  sources
    .map((source) => ("header" in source ? `in header ${source.header}` : `at ${source.body}`))
    .join(" or ");

function hashOf(...parts: (string | Buffer)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
}
