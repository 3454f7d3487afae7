/** Posts outgoing webhooks, one time per attempt, and reports the outcome. */
import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import { app, type ServingApp } from "../../../../schemas/apps/app.ts";
import { type Body, inlineBytes } from "../../../../schemas/apps/app-exchange.ts";
import { appKey, readAgentKey } from "../../../../schemas/apps/app-names.ts";
import {
  DELIVERY_ERROR_CHARS_MAX,
  OUTGOING_ANSWER_CHARS_KEPT,
  OUTGOING_PLACES_MAX,
  OUTGOING_RETRY_AFTER_MS_MAX,
} from "../../../../schemas/apps/limits.ts";
import {
  endpointBreaker,
  NO_APP,
  OUTGOING_SECRET,
  type OutgoingTry,
  outgoingWebhook,
  type SigningSecret,
  webhookPost,
} from "../../../../schemas/apps/outgoing-webhook.ts";
import { envelope, type Input } from "../../../../schemas/contract.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import { countWork, timeWork } from "../../../../schemas/meter.ts";
import { isSuccessful } from "../../../../schemas/status-classes.ts";
import { Id } from "../../../../schemas/values.ts";
import { EgressError } from "../../../egress/egress-error.ts";
import { EgressAgents, egressFetch } from "../../../egress/egress-fetch.ts";
import { type EgressGuard, guardFor } from "../../../egress/egress-guard.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { FairSemaphore } from "../../../runtime/lib/fair-semaphore.ts";
import type { BlobStore } from "../../../runtime/store/blob-store.ts";
import { defineWorker, type TaskContext } from "../../../runtime/workers/define-worker.ts";
import { type SecretBox, SecretKeyError } from "../../lib/app-secrets/secret-box.ts";
import { webhookHeaders } from "./webhook-headers.ts";

/** Time limit of a request, including the connection, until the end of the response. */
export const OUTGOING_TIMEOUT_MS = 15_000;
export const OUTGOING_ANSWER_BYTES_MAX = 64 * 1024;
/**
 * Limit of the concurrent webhooks of one worker, which mostly wait. The reserved ones are for accounts without a
 * running webhook. With fewer, endpoints that do not answer would keep others waiting in the lane for minutes.
 */
export const OUTGOING_SLOTS = 192;
export const OUTGOING_SLOTS_RESERVED = 48;
/** The same limits for webhooks with a payload above OUTGOING_INLINE_BYTES_MAX, which is in memory during the attempt. */
export const OUTGOING_LARGE_SLOTS = 32;
export const OUTGOING_LARGE_SLOTS_RESERVED = 8;
/**
 * Tasks that one worker takes from the lane. Those without a slot wait in the worker, which lets accounts take turns. So
 * 15 accounts that have all their places, and whose endpoints do not answer, leave room for others.
 */
const POSTS_TAKEN_MAX = 16 * OUTGOING_PLACES_MAX;
const PURGE_SLOTS = 2;

type Post = Input<(typeof webhookPost)["messages"]["post"]>;
type Purge = Input<(typeof webhookPost)["messages"]["purge"]>;
type PostContext = Pick<TaskContext, "signal"> & {
  sender: Sender;
  /** The version that serves. Undefined where it is not needed. */
  serving: ServingApp | undefined;
};

/** The account and app whose secrets sign a webhook. */
interface Sender {
  accountId: string;
  app: string;
}

interface WebhookPostParts {
  guard: EgressGuard;
  blobs: Pick<BlobStore, "get" | "remove">;
  secrets: Pick<SecretBox, "open">;
  clock: Pick<Clock, "now">;
  timeoutMs?: number;
}

/** The result of an attempt, and whether the endpoint caused a failure. */
interface Outcome {
  outcome: OutgoingTry;
  retryAfterMs?: number;
  isEndpointsFault: boolean;
}

/** Creates the worker that posts webhooks, and removes their payloads when they are no longer needed. */
export function webhookPostWorker(parts: WebhookPostParts) {
  const slots = new FairSemaphore({ places: OUTGOING_SLOTS, reserved: OUTGOING_SLOTS_RESERVED });
  const largeSlots = new FairSemaphore({
    ...{ places: OUTGOING_LARGE_SLOTS, reserved: OUTGOING_LARGE_SLOTS_RESERVED },
  });
  const postInTurn = post(parts);
  return defineWorker(webhookPost, {
    slots: { post: POSTS_TAKEN_MAX, purge: PURGE_SLOTS },
    handlers: {
      async post(task, context) {
        using ends = new DisposableStack();
        const own = "blob" in task.payload ? largeSlots : slots;
        ends.defer(await own.take(senderOf(context.key).accountId, context.signal));
        if (task.dueAt !== undefined) {
          timeWork("webhook_post_wait_seconds", {}, parts.clock.now() - task.dueAt);
        }
        return await postInTurn(task, context);
      },
      purge: purge(parts),
    },
    failures: {
      post({ number, attempt }, error, { key }) {
        const outcome = { at: parts.clock.now(), durationMs: 0, error: shortened(error.message) };
        return [envelope(outgoingWebhook, key, "tried", { number, attempt, outcome })];
      },
      // Remaining event bodies expire. Remaining payloads of webhooks are deleted with their app.
      purge: () => [],
    },
  });
}

function post(parts: WebhookPostParts) {
  return async (task: Post, context: TaskContext) => {
    const { key, call, signal } = context;
    const { number, attempt } = task;
    const sender = senderOf(key);
    const serving = await servingOf(sender, task, call);
    if (serving instanceof ActorError) {
      const error = shortened(serving.message);
      const outcome = { at: parts.clock.now(), durationMs: 0, error };
      const told = { number, attempt, outcome, isFinal: true } as const;
      return { send: [envelope(outgoingWebhook, key, "tried", told)] };
    }
    const breaker = breakerKey(sender.accountId, task.url);
    const probe = createHash("sha256").update(context.id).digest("hex").slice(0, 32);
    const admitted = await call(endpointBreaker, breaker, "admit", { probe });
    if (admitted.isOpen) {
      const { until } = admitted;
      countWork("webhook_posts_total", { outcome: "deferred" });
      return { send: [envelope(outgoingWebhook, key, "deferred", { number, attempt, until })] };
    }
    const tried = await tryOnce(parts, task, { signal, sender, serving });
    const { outcome, retryAfterMs, isEndpointsFault } = tried;
    countWork("webhook_posts_total", { outcome: wayOf(outcome) });
    timeWork("webhook_post_seconds", {}, outcome.durationMs);
    // A request that never left this host proves nothing about its endpoint.
    if (isEndpointsFault || outcome.status !== undefined) {
      const report = { probe, isSuccess: !isEndpointsFault };
      // If the report fails, it is lost: repeating the task would post the webhook again, which is worse than a wrong
      // count.
      await call(endpointBreaker, breaker, "report", report).catch(() => {});
    }
    const asked = retryAfterMs === undefined ? {} : { retryAfterMs };
    const told = { number, attempt, outcome, ...asked };
    return { send: [envelope(outgoingWebhook, key, "tried", told)] };
  };
}

function wayOf({ status, error }: OutgoingTry) {
  if (status === undefined) return "unreachable";
  return error === undefined ? "delivered" : "refused";
}

function purge({ blobs }: WebhookPostParts) {
  return async ({ blobs: names }: Purge) => {
    for (const name of names) await blobs.remove(name);
    return {};
  };
}

async function tryOnce(
  parts: WebhookPostParts,
  task: Post,
  context: PostContext,
): Promise<Outcome> {
  const { clock } = parts;
  const at = clock.now();
  const since = () => Math.max(0, Math.round(clock.now() - at));
  try {
    const body = await bytesOf(parts, task.payload, context.signal);
    const secrets = secretsOf(parts, [task.secret ?? []].flat(), context);
    const { id, contentType } = task;
    const headers = webhookHeaders({ id, contentType, body, secrets, now: clock.now() });
    const guard = guardFor(context.sender.accountId, parts.guard);
    const { signal } = context;
    const answered = await send({ ...parts, guard }, task.url, { headers, body, signal });
    const { status, answer, retryAfterMs } = answered;
    const isFine = isSuccessful(status);
    return {
      outcome: {
        ...{ at, durationMs: since(), status, answer },
        ...(!isFine && { error: `It answered ${status}` }),
      },
      ...(retryAfterMs !== undefined && { retryAfterMs }),
      // Other 4xx statuses come from a working endpoint that refuses this event.
      isEndpointsFault: !isFine && !(status >= 400 && status < 500 && status !== 429),
    };
  } catch (error) {
    // When the worker stops, another worker runs this task again.
    context.signal.throwIfAborted();
    const reason = reasonOf(error);
    if (reason === undefined) throw error;
    return {
      outcome: { at, durationMs: since(), error: shortened(reason) },
      isEndpointsFault: error instanceof EgressError || isTimeout(error),
    };
  }
}

async function send(
  { guard, clock, timeoutMs = OUTGOING_TIMEOUT_MS }: WebhookPostParts,
  url: string,
  sent: { headers: Record<string, string>; body: Buffer; signal: AbortSignal },
) {
  // A new agent is used for each attempt. If a reused connection had been closed by the receiver, the attempt would
  // seem to fail.
  using agents = new EgressAgents({ guard });
  const signal = AbortSignal.any([sent.signal, AbortSignal.timeout(timeoutMs)]);
  const { status, headers, body } = await egressFetch(url, {
    ...{ agents, signal, method: "POST", headers: sent.headers, body: sent.body },
    redirectsMax: 0,
    bytesMax: OUTGOING_ANSWER_BYTES_MAX,
  });
  const answer = await beginningOf(body);
  return { status, answer, retryAfterMs: retryAfterOf(headers.get("retry-after"), clock.now()) };
}

async function bytesOf(
  { blobs }: WebhookPostParts,
  payload: Body,
  signal: AbortSignal,
): Promise<Buffer> {
  if (!("blob" in payload)) return inlineBytes(payload);
  return Buffer.concat(await Array.fromAsync(blobs.get(payload.blob, { signal })));
}

/**
 * Returns the serving version of the sender's app; undefined where it is not needed. Returns the refusal if the
 * app was deleted. Its webhooks may have waited since before the deletion, and another app may have its name now.
 */
async function servingOf(
  { accountId, app: name }: Sender,
  { appId, secret = [] }: Post,
  call: TaskContext["call"],
): Promise<ServingApp | ActorError | undefined> {
  // Webhooks of earlier versions do not name their app. They are sent as before.
  const isNamed = [secret].flat().some((one) => "name" in one);
  if (name === NO_APP || (appId === undefined && !isNamed)) return undefined;
  try {
    const serving = await call(app, appKey(accountId, name), "getServing", {});
    const isOther = appId !== undefined && serving.id !== undefined && serving.id !== appId;
    if (!isOther) return serving;
    return new ActorError("not_found", `Cannot send: the app "${name}" that sent this was deleted`);
  } catch (error) {
    if (error instanceof ActorError && error.code === "not_found") return error;
    throw error;
  }
}

/** Returns the secrets that exist. A deleted secret is no longer used. */
function secretsOf(
  { secrets }: WebhookPostParts,
  wanted: readonly SigningSecret[],
  { sender: { accountId, app: name }, serving }: PostContext,
): string[] {
  const sealedFor = { accountId, app: name };
  const find = (secret: SigningSecret): string | undefined => {
    if ("sealed" in secret) {
      return secrets.open(secret.sealed, { ...sealedFor, name: OUTGOING_SECRET });
    }
    const found = serving?.secrets.find((one) => one.name === secret.name);
    if (found) return secrets.open(found.sealed, { ...sealedFor, name: secret.name });
    const value = serving?.config.vars[secret.name];
    return typeof value === "string" ? value : undefined;
  };
  const values = wanted.map(find).filter((value) => value !== undefined);
  if (wanted.length === 0 || values.length > 0) return values;
  const names = wanted.flatMap((secret) => ("name" in secret ? [secret.name] : []));
  throw new ActorError("not_found", `Cannot sign: the app has no secret ${names.join(", ")}`);
}

/**
 * Returns the account and app of a queue. The queue's key is an agent's key, or the id of the account that owns the
 * rendering jobs.
 */
function senderOf(key: string): Sender {
  const agent = readAgentKey(key);
  if (agent) return agent;
  if (Id.safeParse(key).success) return { accountId: key, app: NO_APP };
  throw new ActorError("invalid_request", "Cannot post: no agent and no account owns it");
}

/**
 * Returns one key for each account and URL without its query. The query is ignored, because callers put variable
 * parts into it.
 */
function breakerKey(accountId: string, url: string): string {
  const { host, pathname } = new URL(url);
  const hash = createHash("sha256").update(`${host} ${pathname}`).digest("hex").slice(0, 32);
  return `${accountId}.${hash}`;
}

/**
 * Returns the reason that the agent's owner may see. Returns undefined for a fault of the platform, after which the
 * task is attempted again.
 */
function reasonOf(error: unknown): string | undefined {
  if (isTimeout(error)) return "It did not answer in time";
  if (error instanceof SecretKeyError || error instanceof ActorError) return error.message;
  return undefined;
}

const isTimeout = (error: unknown) => error instanceof Error && error.name === "TimeoutError";

/** Returns the start of the response. A response that breaks off or is too long still counts. */
async function beginningOf(body: Readable): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const chunk of body) {
      if (text.length < OUTGOING_ANSWER_CHARS_KEPT) text += decoder.decode(chunk, { stream: true });
    }
  } catch {
    // The status has arrived already. The outcome depends only on the status.
  }
  return text.slice(0, OUTGOING_ANSWER_CHARS_KEPT).toWellFormed();
}

/** Parses a time, given in seconds or as a date (RFC 9110, section 10.2.3). */
function retryAfterOf(header: string | null, now: number): number | undefined {
  if (header === null) return undefined;
  const ms = /^\d{1,9}$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - now;
  if (!Number.isFinite(ms) || ms <= 0) return undefined;
  return Math.min(Math.ceil(ms), OUTGOING_RETRY_AFTER_MS_MAX);
}

const shortened = (text: string) => text.slice(0, DELIVERY_ERROR_CHARS_MAX);
