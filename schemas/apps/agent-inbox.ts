/**
 * Messages of an agent's inbox, the actor that stores verified events before their sender receives 202, and delivers
 * them to the agent one after the other. The key is the agent's key (`agentKey`). With `agent.deliver`, the inbox
 * notifies the agent's host that there are deliveries. The host requests them with `current`, reports the results
 * with `settle`, and repeats this until none is left.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { EpochMs } from "../values.ts";
import { AgentDelivery } from "./agent.ts";
import { AppRequest } from "./app-exchange.ts";
import {
  DELIVERIES_LISTED_MAX,
  DELIVERIES_SCANNED_MAX,
  DELIVERIES_TOGETHER_MAX,
  DELIVERY_ERROR_CHARS_MAX,
  EVENT_ID_CHARS_MAX,
  EVENT_TYPE_CHARS_MAX,
} from "./limits.ts";

const Nothing = z.object({});

/**
 * `waiting`: the event waits for its turn or for its next attempt. `failed`: all attempts failed; the event is kept
 * and can be replayed.
 */
export const DeliveryStatus = z.enum(["waiting", "delivered", "failed"]);
export type DeliveryStatus = z.infer<typeof DeliveryStatus>;

/** One event in the log of its agent. */
export const Delivery = z.object({
  /** The event's number in the log of its agent: 1 for the first event, in the order of arrival. */
  number: z.int().min(1),
  status: DeliveryStatus,
  /** The provider's id of the event. For EVENT_IDS_KEPT_MS an event with the same id counts as a repetition. */
  eventId: z.string(),
  eventType: z.string().optional(),
  /** The provider, or `artifacts`. */
  source: z.string(),
  receivedAt: EpochMs,
  bodyBytes: z.int().min(0),
  /** Number of attempts of the latest delivery. A replay starts again from 0. */
  attempts: z.int().min(0),
  lastAttemptAt: EpochMs.optional(),
  /** Due time of an event that waits for its next attempt. */
  nextAttemptAt: EpochMs.optional(),
  /** How often the event was replayed. */
  replays: z.int().min(0),
  /** Status of the agent's response to the last attempt. */
  answerStatus: z.int().optional(),
  error: z.string().optional(),
});
export type Delivery = z.infer<typeof Delivery>;

export const DeliveryOutcome = z.object({
  /** Status of the answer of `onRequest`; absent if it threw or did not run. */
  status: z.int().min(100).max(599).optional(),
  error: z.string().max(DELIVERY_ERROR_CHARS_MAX).optional(),
});
export type DeliveryOutcome = z.infer<typeof DeliveryOutcome>;

const Delivered = DeliveryOutcome.extend({
  /** `id` and `attempt` of the AgentDelivery. */
  id: z.string(),
  attempt: z.int().min(1),
  /** Outcomes of the events after this one in the same round, in order, up to the last one that the host began. */
  next: z
    .array(DeliveryOutcome)
    .max(DELIVERIES_TOGETHER_MAX - 1)
    .optional(),
});

/** An event whose sender was verified. If its body is a blob, the inbox owns the blob from now on. */
export const ReceivedEvent = z.object({
  source: z.string().min(1).max(32),
  /**
   * The declared endpoint that received the event, if the event's id is unique only there. Absent for the ids of
   * providers that are unique everywhere.
   */
  endpoint: z
    .object({
      path: z.string().min(1).max(256),
      /**
       * True if no other endpoint brings events of this source to the agent. Then an id that was stored without a path
       * belongs to this endpoint, unless the path of its request says otherwise: versions before this field stored
       * all ids so.
       */
      isOnlyOne: z.boolean(),
    })
    .optional(),
  eventId: z.string().min(1).max(EVENT_ID_CHARS_MAX),
  eventType: z.string().max(EVENT_TYPE_CHARS_MAX).optional(),
  /** The request that `onRequest` gets. */
  request: AppRequest,
  bodyBytes: z.int().min(0),
  /**
   * For how many days the log keeps events, and how many events at most, according to the app's current
   * configuration.
   */
  keep: z.object({ days: z.int().min(1), count: z.int().min(1) }),
});
export type ReceivedEvent = z.infer<typeof ReceivedEvent>;

const Replayed = {
  /** Numbers, both ends included. */
  from: z.int().min(1).optional(),
  to: z.int().min(1).optional(),
  /** Events received from this time on. */
  receivedFrom: EpochMs.optional(),
  receivedTo: EpochMs.optional(),
  status: DeliveryStatus.exclude(["waiting"]).optional(),
};
/** First and last number of each run of consecutive numbers. */
const Runs = z.array(z.tuple([z.int().min(1), z.int().min(1)])).max(DELIVERIES_SCANNED_MAX);

export const agentInbox = defineContract({
  kind: "agent-inbox",
  messages: {
    /**
     * Stores an event, which is durable when the call is answered. Refuses with `queue_full` (429) past
     * EVENTS_WAITING_MAX.
     */
    receive: {
      input: ReceivedEvent,
      reply: z.object({
        /** False if the event was received before; `number` is then the number of the earlier one. */
        isNew: z.boolean(),
        number: z.int().min(0),
        /**
         * True if the inbox's rows hold the maximum of body bytes, so that bodies of further events must be blobs.
         */
        isHeavy: z.boolean(),
      }),
    },
    /** The same as `receive`, as a send: an actor sends it and waits for no reply. */
    happened: { input: ReceivedEvent },
    /**
     * Returns the events that the agent's host must deliver now. The host starts them in order, each after a 2xx
     * response to the previous one. A later call returns the events again that the host did not start this time. The
     * list stays the same until the first event is settled. It is empty if none is due.
     */
    current: {
      input: Nothing,
      reply: z.object({
        deliveries: z.array(AgentDelivery).max(DELIVERIES_TOGETHER_MAX),
        /** Events that wait behind them. */
        waiting: z.int().min(0),
      }),
    },
    /**
     * The agent's host reports the results of a round. A repeated or late report does no harm. A 2xx status counts as
     * delivered; for any other result, the event is attempted again until its attempts are used up. The results are
     * durable when the call is answered.
     */
    settle: {
      input: Delivered.extend({
        /**
         * True if the host will request the next delivery itself before it acknowledges its mail. Then the inbox
         * sends no further mail for it.
         */
        takesNext: z.boolean().optional(),
      }),
      /** True if another event waits and the host must request it with `current`. False without `takesNext`. */
      reply: z.object({ hasNext: z.boolean() }),
    },
    /** The same report as a send, if the call got no reply. */
    delivered: { input: Delivered },
    /**
     * Finds the events that `replay` would deliver again. Examines DELIVERIES_SCANNED_MAX events at most, because the
     * first read of an event takes long.
     */
    find: {
      input: z.object(Replayed),
      reply: z.object({
        runs: Runs,
        /** Number to pass as `from` for the next events. Absent at the end of the log. */
        next: z.int().min(1).optional(),
      }),
    },
    /**
     * Delivers events from the log again, except waiting ones. They are delivered in the order of arrival, before
     * waiting events that arrived later. With `numbers`, examines only these events. Gateways of earlier versions send
     * no numbers.
     */
    replay: {
      input: z.object({ ...Replayed, numbers: Runs.optional() }),
      reply: z.object({ replayed: z.int().min(0) }),
    },
    /** Lists events, newest first. Begins below the number `before`. */
    list: {
      input: z.object({
        status: DeliveryStatus.optional(),
        before: z.int().min(1).optional(),
        limit: z.int().min(1).max(DELIVERIES_LISTED_MAX),
      }),
      reply: z.object({
        deliveries: z.array(Delivery),
        /** Number to pass as `before` for the next entries. Absent at the end of the log. */
        before: z.int().min(1).optional(),
        waiting: z.int().min(0),
      }),
    },
    /** Returns the event with its body. Refuses with `not_found` if the log does not have it. */
    get: {
      input: z.object({ number: z.int().min(1) }),
      reply: z.object({ delivery: Delivery, request: AppRequest }),
    },
    /** Deletes the inbox, because its app was deleted. */
    clear: { input: Nothing },
    /**
     * Reminders. `resume`: the next attempt is due, or a result is overdue. `trim`: entries are past their retention
     * time.
     */
    resume: { input: Nothing },
    trim: { input: Nothing },
  },
});
