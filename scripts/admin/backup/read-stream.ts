/**
 * Reads the messages of a stream for a backup in three ways: in batches, one by one from the stream's leader, or only
 * their sequences.
 */
import { setTimeout as wait } from "node:timers/promises";
import type { StreamInfo } from "@nats-io/jetstream";
import { createInbox, type Msg, type MsgHdrs } from "@nats-io/transport-node";
import { type Bus, BusLost } from "../../../actors/runtime/bus/bus.ts";
import { readInOrder } from "../../../actors/runtime/bus/reads/read-in-order.ts";
import type { ArchivedMessage } from "./archive-entries.ts";

/**
 * Bytes of a batch. The server blocks writes to the stream while it reads a batch, so a batch is small: it takes one
 * or two milliseconds.
 */
const BATCH_BYTES = 1024 ** 2;
const BATCH_MESSAGES = 1_000;
const ANSWER_MS_MAX = 5_000;
/**
 * A batch is tried this often, with a pause between two tries: a replica of a stream that was just made answers late.
 */
const TRIES_MAX = 10;
const AGAIN_MS = 500;
const LISTED_AHEAD = 5_000;

const NOT_FOUND = 404;
const END_OF_BATCH = 204;
const NANOSECONDS_DIGITS = 9;
const NO_BYTES = new Uint8Array();

/** A message without its content. */
interface Listed {
  sequence: number;
  subject: string;
}

/** Yields the messages from a sequence to the current end of the stream. Any replica of the stream may answer. */
export async function* readMessages(
  bus: Bus,
  { config }: Pick<StreamInfo, "config">,
  from: number,
): AsyncGenerator<ArchivedMessage> {
  // A work queue does not support batch reads. It has few messages.
  if (!config.allow_direct) return yield* readOfLeader(bus, config.name, from);
  let next = from;
  for (let tries = 1; ; ) {
    const batch = await readBatch(bus, config.name, next).catch((cause: unknown) => {
      if (tries === TRIES_MAX) throw cause;
      tries += 1;
    });
    if (batch === undefined) {
      await wait(AGAIN_MS);
      continue;
    }
    tries = 1;
    if (batch.length === 0) return;
    yield* batch;
    next = (batch.at(-1)?.sequence ?? next) + 1;
  }
}

/**
 * Reads from the stream's leader, with one request for each message, beginning at a sequence. When the iteration
 * ends, the stream had no later message.
 */
export async function* readOfLeader(
  bus: Bus,
  stream: string,
  from: number,
): AsyncGenerator<ArchivedMessage> {
  let next = from;
  for (;;) {
    const message = await bus.readNextOfLeader(stream, ">", next);
    if (message === undefined) return;
    const { seq: sequence, subject, header, data, timestamp } = message;
    yield {
      ...{ sequence, subject, payload: data },
      ...{ timestamp: nanosecondsOf(timestamp), headers: encodeHeaders(header) },
    };
    next = sequence + 1;
  }
}

/**
 * Yields the sequences of all stored messages, in order. Messages that are added or removed during the listing may or
 * may not be included.
 */
export async function* listMessages(
  bus: Bus,
  { config }: Pick<StreamInfo, "config">,
): AsyncGenerator<Listed> {
  // Only workers may create consumers on a stream of tasks, so the messages are read one by one.
  if (!config.allow_direct) return yield* readOfLeader(bus, config.name, 1);
  const done = new AbortController();
  let isEmpty = false;
  const listed = readInOrder(bus, {
    stream: config.name,
    name: "trunkline-backup",
    select: { headers_only: true },
    prefetch: LISTED_AHEAD,
    signal: done.signal,
    started(pending) {
      isEmpty = pending === 0;
      if (isEmpty) done.abort();
    },
  });
  let last = 0;
  for await (const { seq: sequence, subject, pending } of listed) {
    if (sequence > last) yield { sequence, subject };
    last = sequence;
    if (pending === 0) return;
  }
  if (!isEmpty) throw new BusLost(`Cannot list ${config.name}: the server stopped answering`);
}

/** Counts the messages of a stream, beginning at a sequence. */
export async function countFrom(bus: Bus, stream: string, from: number): Promise<number> {
  const { jetstream } = bus;
  const consumer = await bus.whileConnected(() =>
    jetstream.jetstream().consumers.get(stream, {
      ...{ name_prefix: "trunkline-backup", headers_only: true, opt_start_seq: from },
    }),
  );
  const { num_pending: count } = await consumer.info(true);
  void consumer.delete().catch(() => {}); // It ends by itself, only later.
  return count;
}

/** Reads one batch. Rejects if a part of it was lost in transit. */
function readBatch(bus: Bus, stream: string, from: number): Promise<ArchivedMessage[]> {
  const { connection } = bus;
  const inbox = createInbox();
  const { promise, resolve, reject } = Promise.withResolvers<ArchivedMessage[]>();
  const read: ArchivedMessage[] = [];
  const lost = () => reject(new BusLost(`Cannot read ${stream}: a part of the answer is missing`));
  const subscription = connection.subscribe(inbox, {
    callback(error, message) {
      if (error) return reject(error);
      const status = message.headers?.code ?? 0;
      if (status === NOT_FOUND) return resolve([]);
      const before = Number(message.headers?.get("Nats-Last-Sequence") ?? 0);
      const isNext = before === (read.at(-1)?.sequence ?? 0);
      if (!isNext) return lost();
      if (status === END_OF_BATCH) return resolve(read);
      if (status !== 0 || message.headers === undefined)
        return reject(new Error(`Cannot read ${stream}: ${descriptionOf(message)}`));
      read.push(messageOf(message, message.headers));
    },
  });
  const timer = setTimeout(lost, ANSWER_MS_MAX);
  const query = { seq: from, batch: BATCH_MESSAGES, max_bytes: BATCH_BYTES };
  const ask = () => {
    connection.publish(`$JS.API.DIRECT.GET.${stream}`, JSON.stringify(query), { reply: inbox });
    return promise;
  };
  return bus.whileConnected(ask).finally(() => {
    clearTimeout(timer);
    subscription.unsubscribe();
  });
}

/** The server's words; it has none where no replica of the stream listens. */
const descriptionOf = ({ headers }: Msg) => headers?.description || "no replica of it answers";

/** Headers that the server adds to each message of a direct get. The stored message does not contain them. */
const DESCRIBING = new Set([
  "Nats-Stream",
  "Nats-Subject",
  "Nats-Sequence",
  "Nats-Time-Stamp",
  "Nats-Num-Pending",
  "Nats-Last-Sequence",
]);

function messageOf({ data }: Msg, headers: MsgHdrs): ArchivedMessage {
  return {
    subject: headers.get("Nats-Subject"),
    sequence: Number(headers.get("Nats-Sequence")),
    timestamp: nanosecondsOf(headers.get("Nats-Time-Stamp")),
    headers: encodeHeaders(headers),
    payload: data,
  };
}

/** Returns the header block in wire format; empty without a header. */
function encodeHeaders(headers: MsgHdrs): Uint8Array {
  let text = "";
  for (const [name, values] of headers) {
    if (DESCRIBING.has(name)) continue;
    for (const value of values) text += `${name}: ${value}\r\n`;
  }
  return text === "" ? NO_BYTES : Buffer.from(`NATS/1.0\r\n${text}\r\n`);
}

/** Returns a time such as `2026-11-26T04:43:26.123456789Z` as nanoseconds since 1970. */
export function nanosecondsOf(time: string): bigint {
  const [, seconds, fraction = ""] = /^(.{19})(?:\.(\d+))?Z$/.exec(time) ?? [];
  if (seconds === undefined) throw new Error(`Cannot read the time of a message: "${time}"`);
  const nanoseconds = BigInt(fraction.padEnd(NANOSECONDS_DIGITS, "0"));
  return BigInt(Date.parse(`${seconds}Z`)) * 1_000_000n + nanoseconds;
}
