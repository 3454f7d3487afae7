/**
 * The contract of an agent: user code for one entity, one place for each key (`agentKey`), with a database of its
 * own.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { EpochMs } from "../values.ts";
import { AgentInspection, QueryRows } from "./agent-inspection.ts";
import { AppAnswer, AppRequest } from "./app-exchange.ts";
import { AGENT_QUERY_SQL_CHARS_MAX } from "./limits.ts";

const Nothing = z.object({});

/** A socket that a gateway holds, as its agent knows it. */
export const Connection = z.object({
  /** Chosen by the client (`_pk`), or made by the gateway. */
  id: z.string().min(1).max(256),
  /** Number among the sockets of its gateway: what frames are addressed to. */
  number: z.int().min(1),
  /** The gateway that frames go to: see agent-sockets.ts. */
  gateway: z.string(),
});
export type Connection = z.infer<typeof Connection>;

/** Text, or bytes in base64. */
export const Frame = z.union([z.object({ text: z.string() }), z.object({ base64: z.string() })]);
export type Frame = z.infer<typeof Frame>;

/** The code with which a socket ended, including codes that are never sent, such as 1006. */
export const SocketClose = z.object({
  code: z.int().min(1000).max(4999),
  reason: z.string().max(123),
});
export type SocketClose = z.infer<typeof SocketClose>;

/** A webhook or an event of a repository. Deliveries are ordered, logged, and can be replayed. */
export const AgentDelivery = z.object({
  /**
   * The same in each try; a replay has another. An agent that answered 2xx under it answers that again and does
   * nothing; what failed runs anew. A blob in `request` is not the reader's to remove.
   */
  id: z.string(),
  /** `webhook` calls onRequest with a POST of the body; `event` calls the method that the app's configuration names. */
  request: AppRequest,
  /** Counts its tries from 1. */
  attempt: z.int().min(1),
});
export type AgentDelivery = z.infer<typeof AgentDelivery>;

export const agent = defineContract({
  kind: "agent",
  messages: {
    /** To `onRequest`. */
    request: { input: AppRequest, reply: AppAnswer },
    /**
     * A call of a public method. From a stub, arguments and result are V8's serialization in base64, read by user code
     * alone. From the REST API, both are JSON in base64.
     */
    invoke: {
      input: z.object({
        method: z.string().max(128),
        args: z.string(),
        isJson: z.boolean().optional(),
      }),
      reply: z.object({ result: z.string() }),
    },
    /** Opens a socket that the app's router accepted. */
    connect: {
      input: z.object({
        connection: Connection,
        request: AppRequest,
        props: z.string().optional(),
      }),
      reply: Nothing,
    },
    /**
     * Frames of one socket, in order. `first` numbers them, so that none is taken twice. Refuses with `conflict`
     * where the agent has no such socket any more; none at all ask only that.
     */
    frames: {
      input: z.object({
        connection: Connection,
        first: z.int().min(1),
        frames: z.array(Frame),
        /**
         * All frames before this one are handled. The receiver needs this because batches may arrive out of order.
         */
        settledBefore: z.int().min(1).optional(),
      }),
      /** `isPending`: some of them are still being handled; the same batch is to be brought again, to wait on. */
      reply: z.object({ isPending: z.boolean().optional() }),
    },
    disconnect: {
      input: z.object({
        connection: Connection,
        close: SocketClose,
        wasClean: z.boolean(),
      }),
      reply: Nothing,
    },
    /** The agent's next timer is due: from its alarm. */
    wake: { input: z.object({ at: EpochMs }) },
    /**
     * Notifies the agent that its inbox has deliveries. Its host takes them by `current` and `settle`. A needless
     * notice does no harm.
     */
    deliver: { input: Nothing },
    /** Ends it in memory, so that it opens in the version that serves by then. */
    reload: { input: Nothing, reply: Nothing },
    /** Returns the agent's state of delivery, for operators' tools and listings. */
    inspect: {
      input: Nothing,
      reply: AgentInspection.extend({ version: z.int().min(1) }),
    },
    /** One statement that only reads the agent's own tables. Runs beside its code, and not in order with it. */
    query: {
      input: z.object({ sql: z.string().max(AGENT_QUERY_SQL_CHARS_MAX) }),
      reply: QueryRows,
    },
  },
});

/**
 * The contract of an agent's alarm: it wakes the agent when the next timer in its database is due. The key is the
 * agent's.
 */
export const agentAlarm = defineContract({
  kind: "agent-alarm",
  messages: {
    /** Absent if nothing is due. A needless alarm is harmless. */
    set: { input: z.object({ at: EpochMs.optional() }), reply: Nothing },
    /** The agent was woken by the alarm of this time, and has set it anew by then where anything is left. */
    heard: { input: z.object({ at: EpochMs }), reply: Nothing },
    ring: { input: Nothing },
  },
});

/** A request with `permit` may run once: its host asks the gateway for a permit before code gets the request. */
export const EntryRequest = AppRequest.extend({
  permit: z
    .object({
      /** Answers the name of a run with `permitted`, or with another text where it may not run. */
      subject: z.string(),
    })
    .optional(),
});
export type EntryRequest = z.infer<typeof EntryRequest>;

/** The contract of an app's entry: `fetch` of its default export. The key is the app's. */
export const appEntry = defineContract({
  kind: "app-entry",
  messages: {
    /** Refuses with `may_have_run` what code was given on a host that is gone. */
    request: { input: EntryRequest, reply: AppAnswer },
    /** An upgrade: the app's router says which agent takes it, or answers in its place. */
    upgrade: {
      input: AppRequest,
      reply: z.union([
        z.object({
          accept: z.object({ className: z.string(), name: z.string() }),
          /** The request as the app's hook left it. */
          request: AppRequest,
          props: z.string().optional(),
        }),
        z.object({ answer: AppAnswer }),
      ]),
    },
    /** Starts a version and sees that it loads, before it serves. */
    check: {
      input: z.object({ version: z.int().min(1) }),
      reply: z.object({
        classes: z.array(z.string()),
        /** A host of an earlier version does not say. */
        hasDefault: z.boolean().optional(),
      }),
    },
  },
});
