/**
 * Messages of an agent's host to the gateways that hold its sockets. They are core messages with answers, so that
 * order and loss are known.
 */
import { z } from "zod";
import { Frame } from "./agent.ts";
import { CLOSE_CODES, CLOSE_REASON_BYTES_MAX, isCloseCode, isCloseReason } from "./close-codes.ts";

/** A token of a subject, and no more: processes of apps say which it is. */
export const GatewayName = z.string().regex(/^[\w-]{1,64}$/);

/** Core subject of one gateway process; nobody there means that its sockets are gone. */
export const socketsSubject = (gateway: string) => `sockets.${gateway}`;

const isCode = { error: `Expected a code that may be sent: ${CLOSE_CODES}` };
const isReason = { error: `Expected a reason of at most ${CLOSE_REASON_BYTES_MAX} bytes` };
/** Valid close codes and reasons. The gateway's library throws for anything else. */
export const CloseToSend = z.object({
  code: z.number().refine(isCloseCode, isCode),
  reason: z.string().refine(isCloseReason, isReason),
});

/** One thing to do with sockets, by their numbers. */
export const SocketAction = z.union([
  z.object({
    to: z.array(z.int()),
    frame: Frame,
    /** A later one of these replaces it for a reader that is slow: each is the whole state. */
    isState: z.boolean().optional(),
  }),
  z.object({ to: z.array(z.int()), close: CloseToSend }),
]);
export type SocketAction = z.infer<typeof SocketAction>;

/**
 * An agent sends its batches to a gateway one after another, each after the reply to the last. `commit` is the record
 * of the agent's log with these actions. A new owner repeats them if their arrival is unknown, and the gateway skips
 * actions that it has done. Without `commit` no record holds them, and only their owner sends them, as `batch`.
 */
export const SocketBatch = z.object({
  agent: z.string(),
  owner: z.string(),
  batch: z.int().min(1),
  commit: z.int().min(1).optional(),
  /** Part of a commit whose actions need several messages, from 0. Every owner divides them alike. */
  part: z.int().min(0).optional(),
  actions: z.array(SocketAction),
});
export type SocketBatch = z.infer<typeof SocketBatch>;

/** `gone` are sockets of this agent that the gateway does not have. */
export const SocketBatchAnswer = z.object({ gone: z.array(z.int()) });
export type SocketBatchAnswer = z.infer<typeof SocketBatchAnswer>;
