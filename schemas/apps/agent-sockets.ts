/**
 * Messages from the host of an agent to the gateways that hold the agent's sockets. Each is a core NATS request with
 * a reply, so that the host keeps their order and notices a loss.
 */
import { z } from "zod";
import { Frame } from "./agent.ts";
import { CLOSE_CODES, CLOSE_REASON_BYTES_MAX, isCloseCode, isCloseReason } from "./close-codes.ts";

/**
 * A gateway's name, which is one part of a NATS subject. The pattern is strict because processes of apps send these
 * names.
 */
export const GatewayName = z.string().regex(/^[\w-]{1,64}$/);

/** Core subject of one gateway process. If it has no subscriber, the gateway's sockets are gone. */
export const socketsSubject = (gateway: string) => `sockets.${gateway}`;

const isCode = { error: `Expected a code that may be sent: ${CLOSE_CODES}` };
const isReason = { error: `Expected a reason of at most ${CLOSE_REASON_BYTES_MAX} bytes` };
/** A close code and a reason that may be sent. The gateway's WebSocket library throws for other values. */
export const CloseToSend = z.object({
  code: z.number().refine(isCloseCode, isCode),
  reason: z.string().refine(isCloseReason, isReason),
});

/** One action on sockets, which are given by their numbers. */
export const SocketAction = z.union([
  z.object({
    to: z.array(z.int()),
    frame: Frame,
    /** True for a frame with the whole state. For a slow client, a later such frame replaces it. */
    isState: z.boolean().optional(),
  }),
  z.object({ to: z.array(z.int()), close: CloseToSend }),
]);
export type SocketAction = z.infer<typeof SocketAction>;

/**
 * An agent sends its batches to a gateway one after the other, each after the reply to the previous one. `commit` is
 * the number of the record in the agent's log that holds these actions. If a new owner does not know whether they
 * arrived, it sends them again, and the gateway skips actions that it has already applied. Actions without `commit`
 * are in no record. Only the owner that created them sends them, and `batch` identifies them.
 */
export const SocketBatch = z.object({
  agent: z.string(),
  owner: z.string(),
  batch: z.int().min(1),
  commit: z.int().min(1).optional(),
  /**
   * Part number, from 0, if the actions of a commit need several messages. Every owner splits a commit into the same
   * parts.
   */
  part: z.int().min(0).optional(),
  actions: z.array(SocketAction),
});
export type SocketBatch = z.infer<typeof SocketBatch>;

/** `gone` has the numbers of the sockets in the batch's `to` lists that the gateway does not have for this agent. */
export const SocketBatchAnswer = z.object({ gone: z.array(z.int()) });
export type SocketBatchAnswer = z.infer<typeof SocketBatchAnswer>;
