/** Reads the newest messages of several subjects by one request. A consumer for that costs a cluster several writes. */
import type { Msg, MsgHdrs } from "@nats-io/transport-node";
import { JETSTREAM_ANSWER_MS } from "../../../schemas/limits.ts";
import { type Bus, BusLost } from "./bus.ts";

/** Bytes of one answer: as many as an atomic batch has. More would fill the connection for other requests. */
const ANSWER_BYTES_MAX = 4_000_000;

export interface LastMessage {
  subject: string;
  headers: MsgHdrs | undefined;
  data: Uint8Array;
  string(): string;
}

/**
 * The newest message of each subject that matches the filter, as any replica holds them. Resolves with undefined if
 * one answer cannot hold them, which nats-server bounds at 1,024 messages. Rejects as `Bus.request` does.
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
  if (end?.code === NOTHING_FOUND) return [];
  // Otherwise the limit of messages or bytes has cut the answer off.
  if (end?.code !== END_OF_BATCH || Number(end.get("Nats-Num-Pending")) > 0) return undefined;
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
