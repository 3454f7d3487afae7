/**
 * Writes several messages to one stream as one batch: the stream stores all of them or none. As a fence, each write
 * may name the expected last sequence of a subject.
 */
import { randomUUID } from "node:crypto";
import { headers, type MsgHdrs } from "@nats-io/transport-node";
import { BATCH_BYTES_MAX, BATCH_MESSAGES_MAX, BUS_REQUEST_MS } from "../../../schemas/limits.ts";
import { changesNoActor } from "../../../schemas/subjects.ts";
import { type Bus, BusLost } from "./bus.ts";

export interface Write {
  subject: string;
  payload: string | Uint8Array;
  headers?: Readonly<Record<string, string>>;
  /**
   * Nothing is written unless the last sequence of `subject` (default: the subject of this write) equals `sequence`.
   */
  expect?: { sequence: number; subject?: string };
}

/**
 * Bytes that nats-server stores with each message that has a header, besides its subject, header fields and payload.
 */
const FRAME_BYTES = 46;
/** Bytes of the header fields that a batch adds to a message: the batch's id and the message's number. */
const BATCH_FIELDS_BYTES = 82;

// Error codes from ADR-50 and nats-server's errors.json. 10071: wrong last sequence. 10164: another write to the same
// subject is in process. 10158: a message with the same id is in process.
const CONFLICTS = new Set([10071, 10164]);
const IN_FLIGHT = new Set([10164, 10158]);
// 10077: the stream has too many messages or bytes. 10123: the subject has too many messages. 10023 and 10047: the
// server's disk has no space left.
export const STORE_IS_FULL: ReadonlySet<number> = new Set([10077, 10123, 10023, 10047]);

/**
 * The stream refused the writes: these copies will not be written. But earlier copies of the same writes may still be
 * written, if `inFlight` is true.
 */
export class WriteRefused extends Error {
  /** The expected sequence is not the last one, or another write is in flight that may change it. */
  readonly conflict: boolean;
  readonly full: boolean;
  /**
   * The leader has an earlier write in process, maybe an earlier copy of this one. A new leader may drop that write,
   * so only another try makes the outcome certain.
   */
  readonly inFlight: boolean;

  constructor(errorCode: number, description: string) {
    super(`Cannot write to the bus: ${description} (${errorCode})`);
    this.conflict = CONFLICTS.has(errorCode);
    this.full = STORE_IS_FULL.has(errorCode);
    this.inFlight = IN_FLIGHT.has(errorCode);
  }
}

/**
 * No answer came, so the bus may store the writes, now or later. Only a write with a new fence makes the outcome
 * certain.
 */
export class OutcomeUnknown extends Error {}

interface Ack {
  seq: number;
  error?: { err_code: number; description: string };
}

const batchPrefix = randomUUID();
let batchCount = 0;

/**
 * Stores all writes or none, and returns the sequence of the last one. Accepts at most BATCH_MESSAGES_MAX writes, all
 * of one stream. Rejects with WriteRefused or OutcomeUnknown. The library's own batch (3.4.0) silently ignores
 * `expect` and `ttl`.
 */
export async function writeAtomically(
  bus: Bus,
  writes: readonly Write[],
  timeoutMs = BUS_REQUEST_MS,
): Promise<number> {
  const { held } = bus.writeHold;
  // Only writes that change actors wait while a backup pauses writes. If a host could not renew its lease, it would
  // lose all its shards.
  if (held && !writes.every(({ subject }) => changesNoActor(subject))) await held;
  const last = writes.at(-1);
  if (!last) throw new Error("Cannot write to the bus: the batch is empty");
  const lastHeaders = headersOf(last);
  if (writes.length > 1) {
    // While disconnected, the library would buffer each message of the batch, and buffer it again at each retry. So
    // the write fails here.
    if (!bus.connected) {
      const cause = new BusLost("Cannot reach the bus: disconnected");
      throw new OutcomeUnknown(`Cannot write ${last.subject}`, { cause });
    }
    batchCount += 1;
    const id = `${batchPrefix}-${batchCount}`;
    for (const [index, write] of writes.entries()) {
      const written = write === last ? lastHeaders : headersOf(write);
      written.set("Nats-Batch-Id", id);
      written.set("Nats-Batch-Sequence", String(index + 1));
      // No acknowledgement is needed for this message. If it is lost, the server detects the gap at the commit and
      // stores nothing.
      if (write !== last) {
        bus.connection.publish(write.subject, write.payload, { headers: written });
      }
    }
    lastHeaders.set("Nats-Batch-Commit", "1");
  }
  return askToStore(bus, last, { headers: lastHeaders, timeoutMs });
}

/**
 * Stores any number of writes, in their order, in as few batches as possible. The fence protects each batch, but the
 * batches together are not atomic.
 */
export async function writeInBatches(
  bus: Bus,
  writes: Iterable<Write>,
  fence: NonNullable<Write["expect"]>,
): Promise<void> {
  let batch: Write[] = [];
  let bytes = 0;
  for (const write of writes) {
    if (batch.length >= BATCH_MESSAGES_MAX || bytes > BATCH_BYTES_MAX) {
      await writeAtomically(bus, batch);
      batch = [];
      bytes = 0;
    }
    batch.push(batch.length === 0 ? { ...write, expect: fence } : write);
    bytes += write.payload.length;
  }
  if (batch.length > 0) await writeAtomically(bus, batch);
}

/** Returns how many bytes a write with a header adds to its stream. `isBatched`: it is one of several writes. */
export function bytesInStream(write: Write, isBatched = false): number {
  let bytes = FRAME_BYTES + write.subject.length + Buffer.byteLength(write.payload);
  if (isBatched) bytes += BATCH_FIELDS_BYTES;
  for (const [name, values] of headersOf(write)) {
    for (const value of values) bytes += `${name}: ${value}\r\n`.length;
  }
  return bytes;
}

async function askToStore(
  bus: Bus,
  write: Write,
  options: { headers: MsgHdrs; timeoutMs: number },
): Promise<number> {
  let ack: Ack;
  try {
    ack = (await bus.request(write.subject, write.payload, options)).json<Ack>();
  } catch (cause) {
    throw new OutcomeUnknown(`Cannot tell whether ${write.subject} was written`, { cause });
  }
  if (ack.error) throw new WriteRefused(ack.error.err_code, ack.error.description);
  return ack.seq;
}

function headersOf(write: Write): MsgHdrs {
  const built = headers();
  if (write.expect) {
    built.set("Nats-Expected-Last-Subject-Sequence", String(write.expect.sequence));
    if (write.expect.subject) {
      built.set("Nats-Expected-Last-Subject-Sequence-Subject", write.expect.subject);
    }
  }
  for (const name in write.headers) built.set(name, write.headers[name] ?? "");
  return built;
}
