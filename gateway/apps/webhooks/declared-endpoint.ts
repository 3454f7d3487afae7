/**
 * Answers requests to the endpoints that an app's configuration declares: verifies the event, stores it and answers
 * 202. Events are delivered later, in order. The router of apps uses this before the app's own code:
 * `endpointOf(config, path)` returns the endpoint that is declared for a path, if any, and
 * `webhookEndpoints(parts).answer(asked)` answers a request to it. `answer` accepts any method, reads the body
 * itself, and throws only for faults of the platform. The agent's `onRequest` sees `asked.request.url` and `headers`.
 */
import { randomUUID } from "node:crypto";
import type { Readable } from "node:stream";
import type { Logger } from "pino";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import type { BlobStore } from "../../../actors/runtime/store/blob-store.ts";
import { agentInbox, type ReceivedEvent } from "../../../schemas/apps/agent-inbox.ts";
import type { AppConfig, WebhookEndpoint } from "../../../schemas/apps/app-config.ts";
import { type Body, exactText, type HeaderList } from "../../../schemas/apps/app-exchange.ts";
import { agentKey, appKey, isAddress } from "../../../schemas/apps/app-names.ts";
import { decodedSteps, entityOfPath, stepsOf } from "../../../schemas/apps/endpoint-path.ts";
import { EVENT_INLINE_BYTES_MAX, WEBHOOK_BODY_BYTES_MAX } from "../../../schemas/apps/limits.ts";
import { ActorError, ERRORS, isRefusal } from "../../../schemas/errors.ts";
import { countWork } from "../../../schemas/meter.ts";
import type { ByteBudget } from "../../http/byte-budget.ts";
import { failure, success } from "../../http/envelope.ts";
import type { AccountRoom } from "../account-room.ts";
import { entityOf, eventIdOf, eventTypeOf, handshakeAnswer, type Missing } from "./event-fields.ts";
import { HeavyInboxes } from "./heavy-inboxes.ts";
import { eventBudget, readEventBody } from "./read-event-body.ts";
import { hmacScheme, SIGNATURE_SCHEMES, type SignatureScheme } from "./signature-schemes.ts";
import { type SignedEvent, signedEvent } from "./signed-event.ts";
import { storedHeaders } from "./stored-headers.ts";
import { missingHeader, signatureFault, signatureHeader } from "./verify-signature.ts";

export interface DeclaredEndpoint {
  endpoint: WebhookEndpoint;
  /** The part of the path in the place of `:entity`. */
  entity: string | undefined;
}

interface WebhookParts {
  actors: Pick<ActorClient, "call">;
  blobs: Pick<BlobStore, "put" | "remove">;
  now: () => number;
  /** Checks whether an account may store more data. */
  room: Pick<AccountRoom, "check">;
}

interface IncomingWebhook {
  accountId: string;
  app: string;
  config: AppConfig;
  declared: DeclaredEndpoint;
  /** The value of a secret of the app; undefined where it has none of this name. May throw SecretKeyError. */
  secretOf(name: string): string | undefined;
  request: {
    method: string;
    /**
     * The URL that the sender called, with scheme, host and the whole path. Behind a proxy, this is the proxy's URL.
     */
    calledUrl: string;
    /** The URL as in AppRequest, without the app's prefix. */
    url: string;
    /** Names in lower case. */
    headers: HeaderList;
    body: Readable;
  };
  logger: Logger;
}

interface WebhookAnswer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** Returns the first endpoint in the configuration that matches a path below the app's address. */
export function endpointOf(config: AppConfig, path: string): DeclaredEndpoint | undefined {
  if (config.webhooks.length === 0) return undefined;
  const steps = decodedSteps(path);
  for (const endpoint of config.webhooks) {
    const entity = entityOfPath(patternOf(endpoint), steps);
    if (entity !== false) return { endpoint, entity };
  }
  return undefined;
}

/** Creates the endpoints of all apps at one gateway, with the data that the gateway caches for them. */
export function webhookEndpoints(parts: WebhookParts, budget = eventBudget()) {
  const heavy = new HeavyInboxes();
  return {
    async answer(asked: IncomingWebhook): Promise<WebhookAnswer> {
      try {
        return await take(asked, { ...parts, budget, heavy });
      } catch (error) {
        const isRefusal = error instanceof ActorError && error.code !== "internal_error";
        const isOurs = !isRefusal || ERRORS[error.code].status >= 500;
        countWork("webhooks_received_total", { outcome: isOurs ? "failed" : "refused" });
        if (isRefusal) return refused(error);
        throw error;
      }
    },
  };
}

type TakeParts = WebhookParts & { budget: ByteBudget; heavy: HeavyInboxes };

async function take(asked: IncomingWebhook, parts: TakeParts): Promise<WebhookAnswer> {
  const { declared, request, config } = asked;
  const { endpoint } = declared;
  if (request.method !== "POST") {
    const text = `Cannot accept ${request.method}: expected POST`;
    return refused(new ActorError("method_not_allowed", text), { Allow: "POST" });
  }
  const agent = config.agents.find(({ binding }) => binding === endpoint.agent);
  if (!agent) {
    throw new ActorError("not_found", `Cannot accept event: there is no ${endpoint.agent}`);
  }
  const secrets = secretsOf(asked);
  const { accountId, app } = asked;
  checkSigned(asked);
  using body = await readEventBody(request, {
    budget: parts.budget,
    owners: [accountId, appKey(accountId, app)],
    bytesMax: WEBHOOK_BODY_BYTES_MAX,
  });
  const headers = firstHeaders(request.headers);
  const event = signedEvent({ body: body.bytes, headers, url: request.calledUrl });
  verify(asked, secrets, { event, now: parts.now() });
  const handshake = handshakeAnswer(endpoint.provider, event);
  if (handshake) {
    const { status, contentType, body: text } = handshake;
    return { status, headers: { "Content-Type": contentType }, body: text };
  }
  const name = present(entityOf(endpoint, event, declared.entity));
  const eventId = present(eventIdOf(endpoint, event));
  const eventType = present(eventTypeOf(endpoint, event));
  const key = agentKey({ accountId, app, className: agent.class_name, name });
  if (!isAddress(key)) {
    throw new ActorError("invalid_request", "Cannot accept event: the entity is too long");
  }
  const about = { source: endpoint.provider, eventId, ...(eventType && { eventType }) };
  const unique = uniqueAt(endpoint, config, agent.class_name);
  return await store({ asked, key, about: { ...about, ...unique }, body: body.bytes }, parts);
}

/**
 * Returns the endpoint as a part of its events' ids, if senders choose these ids themselves, or if `event_id` names
 * a field: two endpoints may bring the same id. The other ids of providers are unique everywhere.
 */
function uniqueAt(
  { provider, path, event_id }: WebhookEndpoint,
  { agents, webhooks }: AppConfig,
  className: string,
): Pick<ReceivedEvent, "endpoint"> {
  if (!OWN_IDS.has(provider) && event_id === undefined) return {};
  const ofClass = agents.filter(({ class_name }) => class_name === className);
  const bindings = new Set(ofClass.map(({ binding }) => binding));
  const same = webhooks.filter((one) => one.provider === provider && bindings.has(one.agent));
  return { endpoint: { path, isOnlyOne: same.length === 1 } };
}
const OWN_IDS: ReadonlySet<WebhookEndpoint["provider"]> = new Set(["hmac", "standard-webhooks"]);

/** Refuses an event without a signature before its body is read, so that the body takes no memory. */
function checkSigned(asked: IncomingWebhook): void {
  const scheme = schemeOf(asked.declared.endpoint);
  const headers = firstHeaders(asked.request.headers);
  if (signatureHeader(scheme, headers) === undefined) throw unsigned(asked, missingHeader(scheme));
}

function verify(
  asked: IncomingWebhook,
  secrets: readonly string[],
  { event, now }: { event: SignedEvent; now: number },
): void {
  const fault = signatureFault(schemeOf(asked.declared.endpoint), secrets, event, now);
  if (fault !== undefined) throw unsigned(asked, fault);
}

function unsigned({ declared, logger }: IncomingWebhook, reason: string): ActorError {
  logger.info({ provider: declared.endpoint.provider, reason }, "webhook refused");
  return new ActorError("unauthenticated", "Cannot accept event: its signature is not valid");
}

interface VerifiedEvent {
  asked: IncomingWebhook;
  key: string;
  about: Pick<ReceivedEvent, "endpoint"> & {
    source: WebhookEndpoint["provider"];
    eventId: string;
    eventType?: string;
  };
  body: Buffer;
}

async function store(
  { asked, key, about, body }: VerifiedEvent,
  { actors, blobs, room, heavy }: TakeParts,
): Promise<WebhookAnswer> {
  const { request, config } = asked;
  const { keep_days: days, keep_count: count } = config.deliveries;
  await room.check(asked.accountId);
  const stored = await storedBody(asked, body, { blobs, isHeavy: heavy.has(key) });
  // If the body cannot be removed, it expires.
  const remove = async () => {
    if ("blob" in stored) await blobs.remove(stored.blob).catch(() => {});
  };
  const event: ReceivedEvent = {
    ...about,
    request: {
      method: "POST",
      url: request.url,
      headers: storedHeaders(request.headers, about),
      body: stored,
    },
    bodyBytes: body.length,
    keep: { days, count },
  };
  const received = await actors.call(agentInbox, key, "receive", event).catch(async (error) => {
    // No log refers to the body. After another error, the inbox may have stored the event.
    if (isRefusal(error)) await remove();
    throw error;
  });
  heavy.note(key, received.isHeavy);
  const outcome = received.isNew ? "accepted" : "repeated";
  countWork("webhooks_received_total", { outcome });
  // The event was received before, so no log refers to this body.
  if (!received.isNew) await remove();
  if (about.source === "twilio") {
    // Twilio interprets the answer as instructions for the call or message, so it is empty.
    return { status: 202, headers: { "Content-Type": "text/xml" }, body: "<Response/>" };
  }
  const result = { id: String(received.number), is_new: received.isNew };
  return json(202, success(result));
}

async function storedBody(
  { accountId, app, config }: IncomingWebhook,
  body: Buffer,
  { blobs, isHeavy }: { blobs: WebhookParts["blobs"]; isHeavy: boolean },
): Promise<Body> {
  if (body.length <= EVENT_INLINE_BYTES_MAX && !isHeavy) {
    const text = exactText(body);
    return text === undefined ? { base64: body.toString("base64") } : { text };
  }
  const name = `app.${accountId}.${app}.event.${randomUUID()}`;
  // The inbox removes the blob. A blob that no inbox refers to expires. Its lifetime is longer than any event can
  // wait.
  const ttlS = (config.deliveries.keep_days + ORPHANED_DAYS) * 86_400;
  await blobs.put(name, body, { ttlS });
  return { blob: name };
}

/**
 * Days that are added to the retention time. EVENTS_WAITING_MAX events take less than this, even if each uses up all
 * of its attempts.
 */
const ORPHANED_DAYS = 100;

function secretsOf({ declared, secretOf, logger }: IncomingWebhook): string[] {
  const { secret } = declared.endpoint;
  const names = typeof secret === "string" ? [secret] : secret;
  const values = names.map(secretOf).filter((value) => value !== undefined && value !== "");
  if (values.length > 0) return values as string[];
  logger.warn({ path: declared.endpoint.path, secrets: names }, "webhook has no secret");
  // The sender will repeat the event. By then the secret may be set.
  throw new ActorError("unavailable", "Cannot accept event: the app has no secret for it yet", {
    retryAfterS: SECRET_RETRY_S,
  });
}
const SECRET_RETRY_S = 60;

function schemeOf({ provider, hmac }: WebhookEndpoint): SignatureScheme {
  if (hmac) return hmacScheme(hmac);
  if (provider === "hmac") throw new Error("Cannot verify event: its scheme is not described");
  return SIGNATURE_SCHEMES[provider];
}

/** Returns the first value of each header. */
function firstHeaders(list: HeaderList): Map<string, string> {
  const headers = new Map<string, string>();
  for (const [name, value] of list) if (!headers.has(name)) headers.set(name, value);
  return headers;
}

function present<T>(found: T | Missing): Exclude<T, Missing> {
  if (typeof found === "object" && found !== null && "missing" in found) {
    throw new ActorError("invalid_request", `Cannot accept event: expected ${found.missing}`);
  }
  return found as Exclude<T, Missing>;
}

/** The steps of an endpoint's path, split one time for all requests of the app. */
function patternOf(endpoint: WebhookEndpoint): readonly string[] {
  const known = PATTERNS.get(endpoint);
  if (known) return known;
  const steps = stepsOf(endpoint.path);
  PATTERNS.set(endpoint, steps);
  return steps;
}
const PATTERNS = new WeakMap<WebhookEndpoint, readonly string[]>();

function refused(error: ActorError, headers: Record<string, string> = {}): WebhookAnswer {
  const { status, code } = ERRORS[error.code];
  const answered = json(status, failure([{ code, message: error.message }]));
  const { retryAfterS = 1 } = error.details;
  if (status === 429 || status === 503) answered.headers["Retry-After"] = String(retryAfterS);
  Object.assign(answered.headers, headers);
  return answered;
}

const json = (status: number, body: unknown): WebhookAnswer => ({
  status,
  headers: { "Content-Type": "application/json; charset=utf-8" },
  body: JSON.stringify(body),
});
