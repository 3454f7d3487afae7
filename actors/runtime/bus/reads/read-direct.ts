/** Reads several messages of a stream by one request. A consumer for that costs a cluster several writes. */
import { type Msg, type MsgHdrs, RequestError, TimeoutError } from "@nats-io/transport-node";
import { JETSTREAM_ANSWER_MS } from "../../../../schemas/limits.ts";
import { type Bus, BusLost } from "../bus.ts";

/**
 * Limits the bytes of one answer, which the server sends without flow control. The server adds messages until the
 * answer has this many bytes, so an answer may have 1 MB more. Callers that read many subjects at the same time limit
 * how many (see ReadLimits).
 */
const ANSWER_BYTES_MAX = 500_000;
/** nats-server's limit of one answer. */
const ANSWER_MESSAGES_MAX = 1_024;
// ADR-31: a batch ends with 204; 404 finds nothing; 413 is too much for one answer.
const END_OF_BATCH = 204;
const NOTHING_FOUND = 404;

/** The messages to read: the newest message of each subject, or the messages of one subject from a sequence on. */
type Query = { multi_last: string[] } | { next_by_subj: string; seq: number };

export interface DirectMessage {
  subject: string;
  headers: MsgHdrs | undefined;
  data: Uint8Array;
  string(): string;
}

/**
 * Reads from any replica, which may lag behind. `pending` counts the messages that the answer left out. Resolves with
 * undefined if a message of the answer is missing, or if there are too many messages. Rejects as `Bus.request` does.
 */
export async function readDirect(
  bus: Bus,
  stream: string,
  query: Query,
): Promise<{ messages: DirectMessage[]; pending: number } | undefined> {
  if (!bus.connected) throw new BusLost("Cannot reach the bus: disconnected");
  // The server limits the messages of `multi_last` by itself.
  const batch = "seq" in query ? { batch: ANSWER_MESSAGES_MAX } : {};
  const payload = JSON.stringify({ ...query, ...batch, max_bytes: ANSWER_BYTES_MAX });
  const subject = `$JS.API.DIRECT.GET.${stream}`;
  // Only the message that ends an answer has a status.
  const isLast = ({ headers }: Msg) => (headers?.code ?? 0) > 0;
  const options = { timeoutMs: JETSTREAM_ANSWER_MS };
  const answer = await bus.requests.askForMany(subject, payload, isLast, options);
  const end = answer.pop()?.headers;
  // 404 after other messages means that one message could not be read.
  if (end?.code === NOTHING_FOUND && answer.length === 0) return { messages: [], pending: 0 };
  if (end?.code !== END_OF_BATCH || !isWhole(answer, end)) return undefined;
  return { messages: answer.map(readMessage), pending: Number(end.get("Nats-Num-Pending")) };
}

/** True if a read had no answer, no whole answer in time, or nobody to answer it. */
export const isUnanswered = (error: unknown): boolean =>
  error instanceof TimeoutError || error instanceof RequestError;

const readMessage = (message: Msg): DirectMessage => ({
  subject: message.headers?.get("Nats-Subject") ?? "",
  headers: message.headers,
  data: message.data,
  string: () => message.string(),
});

/** Returns false if a broken route has lost messages: each message has the sequence of the one before it. */
function isWhole(messages: readonly Msg[], end: MsgHdrs): boolean {
  let last = "0";
  for (const { headers } of messages) {
    if (headers?.get("Nats-Last-Sequence") !== last) return false;
    last = headers.get("Nats-Sequence");
  }
  return end.get("Nats-Last-Sequence") === last;
}
