/**
 * The contract of an agent's inbox: events that were verified, stored before their sender hears 202, delivered to the
 * agent one after the other. The key is the agent's (`agentKey`). Mail (`agent.deliver`) tells the agent's host that
 * there are deliveries: it asks for them (`current`), says what became of them (`settle`), and so on until none is
 * left.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { EpochMs } from "../values.ts";
import { AgentDelivery } from "./agent.ts";
import { AppRequest } from "./app-exchange.ts";
import {
  DELIVERIES_LISTED_MAX,
  DELIVERIES_TOGETHER_MAX,
  DELIVERY_ERROR_CHARS_MAX,
  EVENT_ID_CHARS_MAX,
  EVENT_TYPE_CHARS_MAX,
} from "./limits.ts";

const Nothing = z.object({});

/** `waiting`: for its turn or for its next try. `failed`: given up, and kept to be replayed. */
export const DeliveryStatus = z.enum(["waiting", "delivered", "failed"]);
export type DeliveryStatus = z.infer<typeof DeliveryStatus>;

/** One event in the log of its agent. */
export const Delivery = z.object({
  /** Counts up from 1, in the order of arrival. */
  number: z.int().min(1),
  status: DeliveryStatus,
  /** The provider's id of the event. For EVENT_IDS_KEPT_MS an event with the same id counts as a repetition. */
  eventId: z.string(),
  eventType: z.string().optional(),
  /** The provider, or `artifacts`. */
  source: z.string(),
  receivedAt: EpochMs,
  bodyBytes: z.int().min(0),
  /** Tries of the last time it was delivered; a replay counts anew. */
  attempts: z.int().min(0),
  lastAttemptAt: EpochMs.optional(),
  /** Due time of an event that waits for its next attempt. */
  nextAttemptAt: EpochMs.optional(),
  /** Times it was replayed. */
  replays: z.int().min(0),
  /** Status of the agent's answer at the last try. */
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
  /** Numbers of later events that were begun, in order. */
  next: z
    .array(DeliveryOutcome)
    .max(DELIVERIES_TOGETHER_MAX - 1)
    .optional(),
});

/** An event that is known to be its sender's. A body that is a blob is the inbox's from here on. */
export const ReceivedEvent = z.object({
  source: z.string().min(1).max(32),
  eventId: z.string().min(1).max(EVENT_ID_CHARS_MAX),
  eventType: z.string().max(EVENT_TYPE_CHARS_MAX).optional(),
  /** The request that `onRequest` gets. */
  request: AppRequest,
  bodyBytes: z.int().min(0),
  /** How long and how many events the log keeps, as the app's configuration has it now. */
  keep: z.object({ days: z.int().min(1), count: z.int().min(1) }),
});
export type ReceivedEvent = z.infer<typeof ReceivedEvent>;

export const agentInbox = defineContract({
  kind: "agent-inbox",
  messages: {
    /** Durable when it is answered. Refuses with `queue_full` (429) past EVENTS_WAITING_MAX. */
    receive: {
      input: ReceivedEvent,
      reply: z.object({
        /** False for one that was here before, then of that number. */
        isNew: z.boolean(),
        number: z.int().min(0),
        /** True when its rows hold as much of bodies as they may: the next ones are to come as blobs. */
        isHeavy: z.boolean(),
      }),
    },
    /** The same by mail, from an actor: nobody waits. */
    happened: { input: ReceivedEvent },
    /**
     * Returns the events that the agent's host must deliver now. The host starts them in order, each after a 2xx
     * response to the one before, and gets unstarted ones again. The list stays the same until the first event is
     * settled; it is empty if none is due.
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
     * From the host of the agent: what became of these. A second one, or one that comes too late, does no harm. 2xx is
     * delivered, everything else is tried again. Durable when it is answered.
     */
    settle: {
      input: Delivered.extend({
        /** The host asks for the next delivery itself while its mail waits, so the inbox sends no mail for it. */
        takesNext: z.boolean().optional(),
      }),
      /** True where it is to ask. */
      reply: z.object({ hasNext: z.boolean() }),
    },
    /** The same report as a send, if the call got no reply. */
    delivered: { input: Delivered },
    /** Delivers logged events again that are not waiting, in the order of arrival and before later ones. */
    replay: {
      input: z.object({
        /** Numbers, both ends included. */
        from: z.int().min(1).optional(),
        to: z.int().min(1).optional(),
        /** Events received from this time on. */
        receivedFrom: EpochMs.optional(),
        receivedTo: EpochMs.optional(),
        status: DeliveryStatus.exclude(["waiting"]).optional(),
      }),
      reply: z.object({ replayed: z.int().min(0) }),
    },
    /** Newest first, from below `before` on. */
    list: {
      input: z.object({
        status: DeliveryStatus.optional(),
        before: z.int().min(1).optional(),
        limit: z.int().min(1).max(DELIVERIES_LISTED_MAX),
      }),
      reply: z.object({
        deliveries: z.array(Delivery),
        /** There is more below this. */
        before: z.int().min(1).optional(),
        waiting: z.int().min(0),
      }),
    },
    /** Returns the event with its body. Refuses with `not_found` if the log does not have it. */
    get: {
      input: z.object({ number: z.int().min(1) }),
      reply: z.object({ delivery: Delivery, request: AppRequest }),
    },
    /** The app is gone: so is all of this. */
    clear: { input: Nothing },
    /** Reminders: the next try is due, or its answer late; entries past their time. */
    resume: { input: Nothing },
    trim: { input: Nothing },
  },
});
