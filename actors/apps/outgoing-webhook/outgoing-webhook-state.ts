/**
 * The stored state of an agent's queue of outgoing webhooks. Its value has the due times, and each webhook is a row.
 */
import { z } from "zod";
import { Body } from "../../../schemas/apps/app-exchange.ts";
import { OutgoingTry, SigningSecrets } from "../../../schemas/apps/outgoing-webhook.ts";
import { EpochMs, Id } from "../../../schemas/values.ts";
import { Steady } from "../../runtime/lib/steady-clock.ts";
import { RecentDays, RecentIdsRow } from "../lib/event-log/recent-ids.ts";

export const OutgoingState = z.object({
  /**
   * Number that the next webhook gets. `first` below is the number of the oldest webhook in the log. Between them, rows
   * may be missing: a webhook that ends late stays when later ones that ended before are deleted.
   */
  next: z.int().min(1),
  first: z.int().min(1),
  /**
   * Webhooks that have not ended. For a webhook with `sentAt`, a worker runs an attempt. The attempt has one of the
   * account's places; attempts of older versions have none.
   */
  waiting: z.array(
    z.object({
      number: z.int().min(1),
      dueAt: EpochMs,
      sentAt: EpochMs.optional(),
      hasPlace: z.literal(true).optional(),
    }),
  ),
  /**
   * The places for which the queue waits, and when it last asked for them. Absent if it waits for none.
   */
  wanted: z.int().min(1).optional(),
  wantedAt: EpochMs.optional(),
  /** Bytes of the payloads in the log. `toldBytes` below is the size that was last reported to the account. */
  payloadBytes: z.int().min(0).optional(),
  toldBytes: z.int().min(0).optional(),
  ids: RecentDays,
  /** Time of the reminder `resume`. The reminder may come earlier than needed. */
  resumeAt: EpochMs.optional(),
  trimAt: EpochMs.optional(),
  /** Tells whether the time of day was set after the times of `waiting` were stored. */
  clock: Steady.optional(),
});
export type OutgoingState = z.infer<typeof OutgoingState>;

export const WebhookRow = z.object({
  row: z.literal("webhook"),
  /** The `webhook-id` header of all attempts. */
  id: z.string(),
  url: z.string(),
  payload: Body,
  payloadBytes: z.int().min(0),
  contentType: z.string(),
  /** Sealed values or names of secrets, never plain values. */
  secret: SigningSecrets.optional(),
  /** Id of the app whose agent sent the webhook. Rows of older versions have none. */
  appId: Id.optional(),
  isTest: z.boolean(),
  /** The rendering job to notify when the webhook has ended. */
  job: Id.optional(),
  createdAt: EpochMs,
  /** Time when the webhook was enqueued, or was last resent. */
  startedAt: EpochMs,
  ended: z.enum(["arrived", "failed"]).optional(),
  /** Attempts since the webhook was enqueued or last resent. */
  attempts: z.int().min(0),
  /** Number of all attempts, including those before a resend. The next attempt gets the next number. */
  attemptsEver: z.int().min(0),
  resends: z.int().min(0),
  /** The request that sent the webhook. Its first attempt is a step of this request. */
  trace: z.record(z.string(), z.string()).optional(),
  /** The latest attempts, oldest first. */
  tries: z.array(OutgoingTry),
});
export type WebhookRow = z.infer<typeof WebhookRow>;

export const OutgoingRow = z.discriminatedUnion("row", [WebhookRow, RecentIdsRow]);
export type OutgoingRow = z.infer<typeof OutgoingRow>;

export const webhookRow = (number: number | "") => `webhook/${number}`;
