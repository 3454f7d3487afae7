/**
 * The contracts of `this.webhook(url, payload, { secret })`: an agent's queue of outgoing webhooks (the key is
 * `agentKey`; the queue of an account's rendering jobs has the account's id), the worker that posts them, and the
 * breaker of an endpoint.
 */
import { z } from "zod";
import { defineContract, defineTasks } from "../contract.ts";
import { URL_CHARS_MAX } from "../limits.ts";
import { EpochMs, Id } from "../values.ts";
import { Body } from "./app-exchange.ts";
import { BindingName } from "./app-names.ts";
import {
  DELIVERIES_LISTED_MAX,
  DELIVERY_ERROR_CHARS_MAX,
  OUTGOING_ANSWER_CHARS_KEPT,
  OUTGOING_SECRETS_MAX,
  SEALED_CHARS_MAX,
} from "./limits.ts";

const Nothing = z.object({});

export const OutgoingUrl = z
  .string()
  .max(URL_CHARS_MAX)
  .refine((text) => {
    const url = URL.parse(text);
    return /^https?:$/.test(url?.protocol ?? "") && url?.username === "" && url.password === "";
  }, "expected an http:// or https:// address without user and password");

/**
 * The signing secret. It is the name of a secret of the app, which is read again at each attempt. If user code passed
 * another value, it is that value, sealed for the name `OUTGOING_SECRET`.
 */
export const SigningSecret = z.union([
  z.object({ name: BindingName }),
  z.object({ sealed: z.string().max(SEALED_CHARS_MAX) }),
]);
export type SigningSecret = z.infer<typeof SigningSecret>;
/**
 * Each of several secrets adds a signature. A receiver accepts a webhook if one signature matches one of its secrets.
 */
export const SigningSecrets = z.union([
  SigningSecret,
  z.array(SigningSecret).min(1).max(OUTGOING_SECRETS_MAX),
]);
export type SigningSecrets = z.infer<typeof SigningSecrets>;
/** Stands for an app when the gateway seals webhook secrets of an account itself. No app has this name. */
export const NO_APP = "";
/**
 * The name for which signing secrets are sealed. Names of an app's secrets contain no slash, so a value sealed for
 * this name cannot be used in place of a secret of the app.
 */
export const OUTGOING_SECRET = "outgoing/webhook";

export const OutgoingStatus = z.enum(["waiting", "arrived", "failed"]);
export type OutgoingStatus = z.infer<typeof OutgoingStatus>;

/** The result of one try. */
export const OutgoingTry = z.object({
  at: EpochMs,
  durationMs: z.int().min(0),
  /** Status of the response. Absent if no response arrived. */
  status: z.int().optional(),
  error: z.string().max(DELIVERY_ERROR_CHARS_MAX).optional(),
  /** The first characters of the answer. */
  answer: z.string().max(OUTGOING_ANSWER_CHARS_KEPT).optional(),
});
export type OutgoingTry = z.infer<typeof OutgoingTry>;

export const OutgoingWebhook = z.object({
  number: z.int().min(1),
  /** The `webhook-id` header of all attempts. */
  id: z.string(),
  url: z.string(),
  status: OutgoingStatus,
  isTest: z.boolean(),
  createdAt: EpochMs,
  payloadBytes: z.int().min(0),
  attempts: z.int().min(0),
  lastTry: OutgoingTry.optional(),
  nextAttemptAt: EpochMs.optional(),
  /** How often a user had the webhook sent again. */
  resends: z.int().min(0),
});
export type OutgoingWebhook = z.infer<typeof OutgoingWebhook>;

const NewWebhook = z.object({
  /**
   * The sender chooses the id, and uses the same id for every repetition of the call. A repeated call gets the first
   * reply.
   */
  id: z.string().min(1).max(128),
  url: OutgoingUrl,
  /** From now on, the queue owns the payload's blob. */
  payload: Body,
  payloadBytes: z.int().min(0),
  contentType: z.string().max(256).default("application/json"),
  secret: SigningSecrets.optional(),
  /** Id of the sender's app. The webhook is not sent once that app is deleted, also if another has its name. */
  appId: Id.optional(),
});

export const outgoingWebhook = defineContract({
  kind: "outgoing-webhook",
  messages: {
    /**
     * Stores a webhook, which is durable when the call is answered. Refuses with `queue_full` past
     * OUTGOING_WAITING_MAX.
     */
    send: {
      input: NewWebhook,
      reply: z.object({ number: z.int().min(1), id: z.string(), isNew: z.boolean() }),
    },
    /**
     * Enqueues a webhook of an account's rendering jobs, without a reply. The key is the account's id. The queue
     * reports the end of the webhook with `webhookEnded`. The jobs have at most OUTGOING_WAITING_MAX webhooks in
     * progress.
     */
    jobEnded: { input: NewWebhook },
    /** Sends an event of type `webhook.test` to check whether an endpoint accepts webhooks. */
    sendTest: {
      input: z.object({ url: OutgoingUrl, secret: SigningSecrets.optional() }),
      reply: OutgoingWebhook,
    },
    /** Sends an ended webhook again under the same id, with the full number of attempts. */
    resend: { input: z.object({ number: z.int().min(1) }), reply: OutgoingWebhook },
    list: {
      input: z.object({
        status: OutgoingStatus.optional(),
        before: z.int().min(1).optional(),
        limit: z.int().min(1).max(DELIVERIES_LISTED_MAX),
      }),
      reply: z.object({
        webhooks: z.array(OutgoingWebhook),
        before: z.int().min(1).optional(),
        waiting: z.int().min(0),
      }),
    },
    get: {
      input: z.object({ number: z.int().min(1) }),
      reply: z.object({
        webhook: OutgoingWebhook,
        payload: Body,
        contentType: z.string(),
        tries: z.array(OutgoingTry),
      }),
    },
    /** The worker reports the result of an attempt. A repeated or late report does no harm. */
    tried: {
      input: z.object({
        number: z.int().min(1),
        attempt: z.int().min(1),
        outcome: OutgoingTry,
        /** The pause that the receiver asked for. */
        retryAfterMs: z.int().min(0).optional(),
        /** No further attempt could succeed. */
        isFinal: z.literal(true).optional(),
      }),
    },
    /** The worker reports that the endpoint's breaker is open. This does not count as an attempt. */
    deferred: {
      input: z.object({
        number: z.int().min(1),
        attempt: z.int().min(1),
        until: EpochMs,
      }),
    },
    /** The account's places in the lane `post` (`outgoing-places`) grant some to this queue. */
    placesGranted: { input: z.object({ places: z.int().min(1) }) },
    /** The app is gone. */
    clear: { input: Nothing },
    /**
     * Reminders. `resume`: an attempt is due, its result was lost, or no place was granted. `trim`: entries are past
     * their retention time.
     */
    resume: { input: Nothing },
    trim: { input: Nothing },
  },
});

/**
 * Tasks of the worker that posts webhooks, and removes payloads and event bodies that no log refers to. The key is
 * the agent's key, or the account's id for webhooks of rendering jobs.
 */
export const webhookPost = defineTasks({
  kind: "webhook-post",
  lanes: ["post", "purge"],
  messages: {
    /** Posts one webhook. The worker then sends `tried` or `deferred` to the agent's queue. */
    post: {
      lane: "post",
      input: z.object({
        number: z.int().min(1),
        attempt: z.int().min(1),
        /** When the attempt was due. Queues of older versions do not say it. */
        dueAt: EpochMs.optional(),
        id: z.string(),
        url: OutgoingUrl,
        payload: Body,
        contentType: z.string(),
        secret: SigningSecrets.optional(),
        appId: Id.optional(),
      }),
    },
    /** Removes payloads that no log refers to any more. */
    purge: { lane: "purge", input: z.object({ blobs: z.array(z.string()).min(1).max(200) }) },
  },
});

/**
 * Messages of an endpoint's breaker. The key is the account's id and 32 hex characters of a hash of the endpoint's
 * host and path.
 */
export const endpointBreaker = defineContract({
  kind: "endpoint-breaker",
  messages: {
    /** Returns whether a webhook may be sent to the endpoint now. A half-open breaker admits a single probe. */
    admit: {
      input: z.object({ probe: Id }),
      reply: z.union([
        z.object({ isOpen: z.literal(false) }),
        z.object({ isOpen: z.literal(true), until: EpochMs }),
      ]),
    },
    /** Reports the result of an admitted attempt under its `probe`. A repeated report is recognized and ignored. */
    report: { input: z.object({ probe: Id, isSuccess: z.boolean() }), reply: Nothing },
  },
});
