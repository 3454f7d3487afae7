/**
 * Messages of an agent: user code for one entity, with its own database. The agent of each key (`agentKey`) runs in
 * one place at a time.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { REMINDER_AT_MAX } from "../limits.ts";
import { EpochMs } from "../values.ts";
import { AgentInspection, QueryRows } from "./agent-inspection.ts";
import { AppAnswer, AppRequest } from "./app-exchange.ts";
import { AGENT_QUERY_SQL_CHARS_MAX } from "./limits.ts";

const Nothing = z.object({});

/** A socket that a gateway holds, in the form in which its agent knows it. */
export const Connection = z.object({
  /** The connection's id. The client chooses it (`_pk`), or the gateway generates it. */
  id: z.string().min(1).max(256),
  /** Number among the sockets of the gateway. Frames are addressed to this number. */
  number: z.int().min(1),
  /** The name of the gateway that holds the socket: see agent-sockets.ts. */
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
   * The id is the same in each attempt, but a replay has another id. An agent that answered 2xx to this id before
   * gives the same answer again without running. After any other answer, the delivery runs again. The reader must not
   * delete a blob in `request`.
   */
  id: z.string(),
  /** The request for the agent's `onRequest`. */
  request: AppRequest,
  /** Number of this attempt, from 1. */
  attempt: z.int().min(1),
});
export type AgentDelivery = z.infer<typeof AgentDelivery>;

export const agent = defineContract({
  kind: "agent",
  messages: {
    /** Sends a request to the agent's `onRequest`. */
    request: { input: AppRequest, reply: AppAnswer },
    /**
     * Calls a public method. For a call from a stub, arguments and result are in V8's serialization, encoded in
     * base64, and only user code deserializes them. For a call from the REST API, both are JSON in base64. If one
     * of a stub is larger than CALL_INLINE_BYTES_MAX, its text is empty and it is in a blob.
     */
    invoke: {
      input: z.object({
        method: z.string().max(128),
        args: z.string(),
        argsBlob: z.string().optional(),
        isJson: z.boolean().optional(),
      }),
      reply: z.object({ result: z.string(), resultBlob: z.string().optional() }),
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
     * Delivers frames of one socket, in order. `first` is the number of the first frame, so that no frame is handled
     * twice. Refuses with `conflict` if the agent no longer has this socket. Without frames, the call only checks
     * this.
     */
    frames: {
      input: z.object({
        connection: Connection,
        first: z.int().min(1),
        frames: z.array(Frame),
        /**
         * All frames before this number are handled. The agent needs this number because batches may arrive out of
         * order.
         */
        settledBefore: z.int().min(1).optional(),
      }),
      /**
       * `isPending`: some of the frames are still being handled. The sender must send the same batch again, to wait
       * for them.
       */
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
    /** The agent's alarm sends this when the agent's next timer is due. */
    wake: { input: z.object({ at: EpochMs }) },
    /**
     * Notifies the agent that its inbox has deliveries. The agent's host requests them with `current` and reports
     * results with `settle`. An unneeded notice does no harm.
     */
    deliver: { input: Nothing },
    /** Unloads the agent from memory, so that it opens again in the version that serves then. */
    reload: { input: Nothing, reply: Nothing },
    /** Returns the agent's state, tables and pending work, for operators' tools and listings. */
    inspect: {
      input: Nothing,
      reply: AgentInspection.extend({ version: z.int().min(1) }),
    },
    /**
     * Runs one read-only statement on the agent's own tables. It may run between turns of the agent's code, in any
     * order.
     */
    query: {
      input: z.object({ sql: z.string().max(AGENT_QUERY_SQL_CHARS_MAX) }),
      reply: QueryRows,
    },
  },
});

/**
 * Messages of an agent's alarm. It wakes the agent when the next timer in the agent's database is due. The key is the
 * agent's key.
 */
export const agentAlarm = defineContract({
  kind: "agent-alarm",
  messages: {
    /**
     * Sets the alarm to the time of the agent's next timer. Without `at`, cancels the alarm. An unneeded alarm does
     * no harm.
     *
     * `record` is the number of the agent's record that needs the change. It grows with each record and each takeover,
     * so a lower number than before belongs to a former host or to a late repeat. Such a call can only make the alarm
     * earlier, or add one after the alarm that fires now. Hosts of earlier versions and the purge of an app send no number.
     */
    set: {
      input: z.object({
        at: EpochMs.max(REMINDER_AT_MAX).optional(),
        record: z.int().min(1).optional(),
      }),
      reply: Nothing,
    },
    /**
     * Reports that the agent handled the alarm for this time. If work remains, the agent has set the alarm again
     * before.
     */
    heard: { input: z.object({ at: EpochMs }), reply: Nothing },
    ring: { input: Nothing },
  },
});

/**
 * A request with `permit` may run only one time: its host requests a permit from the gateway before code gets the
 * request.
 */
export const EntryRequest = AppRequest.extend({
  permit: z
    .object({
      /**
       * A host sends a random id of its run to this subject. The reply is `permitted`, or another text if the run is
       * not permitted.
       */
      subject: z.string(),
    })
    .optional(),
});
export type EntryRequest = z.infer<typeof EntryRequest>;

/** Messages of an app's entry, which is `fetch` of its default export. The key is the app's key. */
export const appEntry = defineContract({
  kind: "app-entry",
  messages: {
    /**
     * Answers a request. Refuses with `may_have_run` if code may have received the request on a host that was lost.
     */
    request: { input: EntryRequest, reply: AppAnswer },
    /**
     * Answers an upgrade request. The app's router chooses the agent that accepts it, or answers instead of an agent.
     */
    upgrade: {
      input: AppRequest,
      reply: z.union([
        z.object({
          accept: z.object({ className: z.string(), name: z.string() }),
          /** The request, with the changes that the app's hook made. */
          request: AppRequest,
          props: z.string().optional(),
        }),
        z.object({ answer: AppAnswer }),
      ]),
    },
    /** Starts a version before it serves, to check that it loads. */
    check: {
      input: z.object({ version: z.int().min(1) }),
      reply: z.object({
        classes: z.array(z.string()),
        /** Absent in the reply of a host of an earlier version. */
        hasDefault: z.boolean().optional(),
      }),
    },
  },
});
