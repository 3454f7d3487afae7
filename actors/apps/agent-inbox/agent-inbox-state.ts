/**
 * The stored state of an agent's inbox. The state's value has counts and the turn, each event has two rows, and other
 * rows hold event ids.
 */
import { z } from "zod";
import { AppRequest } from "../../../schemas/apps/app-exchange.ts";
import { EpochMs, Id } from "../../../schemas/values.ts";
import { NumberRuns } from "../lib/event-log/number-runs.ts";
import { RecentDays, RecentIdsRow } from "../lib/event-log/recent-ids.ts";

export const AgentInboxState = z.object({
  /** Number that the next event gets. `first` is the number of the oldest event in the log. */
  next: z.int().min(1),
  first: z.int().min(1),
  /**
   * Numbers of the events to deliver, in ascending order. A replay adds a number here; the row of the event stays
   * unchanged until its turn begins.
   */
  waiting: NumberRuns,
  /**
   * The delivery that the agent handles or that waits for its next attempt. No other delivery is sent before this one
   * has ended.
   */
  turn: z
    .object({
      number: z.int().min(1),
      /** Numbers of the events that were sent together with event `number`, in order. */
      next: z.array(z.int().min(1)).optional(),
      attempt: z.int().min(1),
      /** Start of the attempt that is not answered yet; absent while the next attempt is not due. */
      sentAt: EpochMs.optional(),
      dueAt: EpochMs.optional(),
    })
    .optional(),
  /** For how many days the app keeps events, and how many at most, as configured when the latest event arrived. */
  keep: z.object({ days: z.int().min(1), count: z.int().min(1) }),
  /** Sum of the characters of the requests that are in rows. */
  inlineBytes: z.int().min(0),
  /** The part of this sum that waits. Events that waited before this field existed are not in it. */
  waitingBytes: z.int().min(0).optional(),
  /**
   * Bytes of the bodies that are blobs. `toldBytes` below is the inbox's size that was last reported to the account.
   */
  blobBytes: z.int().min(0).optional(),
  toldBytes: z.int().min(0).optional(),
  ids: RecentDays,
  /** Time of the reminder `resume`. The reminder may come earlier than needed. */
  resumeAt: EpochMs.optional(),
  trimAt: EpochMs.optional(),
});
export type AgentInboxState = z.infer<typeof AgentInboxState>;

export const EventRow = z.object({
  row: z.literal("event"),
  /**
   * Id of the event's delivery. A forgotten inbox numbers its events from the start again, so numbers are not unique,
   * and the agent remembers ids instead.
   */
  id: Id,
  eventId: z.string(),
  eventType: z.string().optional(),
  source: z.string(),
  receivedAt: EpochMs,
  bodyBytes: z.int().min(0),
  /** Bytes of the row with the request. */
  inlineBytes: z.int().min(0),
  blob: z.string().optional(),
  /** The latest result. Absent before the first result. */
  ended: z.enum(["delivered", "failed"]).optional(),
  attempts: z.int().min(0),
  lastAttemptAt: EpochMs.optional(),
  answerStatus: z.int().optional(),
  error: z.string().optional(),
  replays: z.int().min(0),
});
export type EventRow = z.infer<typeof EventRow>;

const RequestRow = z.object({ row: z.literal("request"), request: AppRequest });

export const InboxRow = z.discriminatedUnion("row", [EventRow, RequestRow, RecentIdsRow]);
export type InboxRow = z.infer<typeof InboxRow>;

export const eventRow = (number: number) => `event/${number}`;
export const requestRow = (number: number) => `request/${number}`;
