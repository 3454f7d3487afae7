/** Reads the newest messages of several subjects by one request. A consumer for that costs a cluster several writes. */
import type { Msg, MsgHdrs } from "@nats-io/transport-node";
import { JETSTREAM_ANSWER_MS } from "../../../schemas/limits.ts";
import { type Bus, BusLost } from "./bus.ts";

/**
 * Limits the bytes of one answer, which the server sends without flow control: 64 loads at the same time stay below
 * the pending bytes (64 MB) at which the server would close the connection. Larger data is read with a consumer.
 */
const ANSWER_BYTES_MAX = 500_000;

export interface LastMessage {
  subject: string;
  headers: MsgHdrs | undefined;
  data: Uint8Array;
  string(): string;
}

/**
 * Reads the newest message of each subject that matches the filter, from any replica, which may lag behind. Resolves
 * with undefined if one answer cannot hold all of them (at most 1,024), or if one is missing. Rejects as
 * `Bus.request` does.
 */
export async function readLastOfEach(
  bus: Bus,
  stream: string,
  filter: string,
): Promise<LastMessage[] | undefined> {
  if (!bus.connected) throw new BusLost("Cannot reach the bus: disconnected");
  const query = JSON.stringify({ multi_last: [filter], max_bytes: ANSWER_BYTES_MAX });
  const subject = `$JS.API.DIRECT.GET.${stream}`;
  // Only the message that ends an answer has a status.
  const isLast = ({ headers }: Msg) => (headers?.code ?? 0) > 0;
  const options = { timeoutMs: JETSTREAM_ANSWER_MS };
  const messages = await bus.requests.askForMany(subject, query, isLast, options);
  const end = messages.pop()?.headers;
  // 404 after other messages means that one message could not be read.
  if (end?.code === NOTHING_FOUND) return messages.length === 0 ? [] : undefined;
  // Any other end means that the limit of messages or bytes has cut the answer off.
  if (end?.code !== END_OF_BATCH || Number(end.get("Nats-Num-Pending")) > 0) return undefined;
  if (!isWhole(messages, end)) return undefined;
  return messages.map((message) => ({
    subject: message.headers?.get("Nats-Subject") ?? "",
    headers: message.headers,
    data: message.data,
    string: () => message.string(),
  }));
}

// ADR-31: a batch ends with 204; 404 finds nothing; 413 is too much for one answer.
const END_OF_BATCH = 204;
const NOTHING_FOUND = 404;

/** Returns false if a broken route has lost messages: each message has the sequence of the one before it. */
function isWhole(messages: readonly Msg[], end: MsgHdrs): boolean {
  let last = "0";
  for (const { headers } of messages) {
    if (headers?.get("Nats-Last-Sequence") !== last) return false;
    last = headers.get("Nats-Sequence");
  }
  return end.get("Nats-Last-Sequence") === last;
}
