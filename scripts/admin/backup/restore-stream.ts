/** Restores one stream from a backup with the sequences and times of its messages, and verifies the result. */
import { hash } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { JetStreamApiError, type StreamConfig, type StreamInfo } from "@nats-io/jetstream";
import type { Bus } from "../../../actors/runtime/bus/bus.ts";
import { BLOB_STORE_BYTES_MIN } from "../../../deploy/stream-declarations.ts";
import { changesNoActor } from "../../../schemas/subjects.ts";
import {
  ARCHIVE_END,
  ARCHIVE_MAGIC,
  decodeEntry,
  encodeFile,
  encodeMessage,
} from "./archive-entries.ts";
import type { BackupFolder, StoredStream } from "./backup-folder.ts";
import { answerOf, ChunkSender } from "./chunk-sender.ts";
import { MessageHashes } from "./message-hashes.ts";
import { readMessages } from "./read-stream.ts";
import { SequenceList } from "./sequence-list.ts";

/** Timeout of the comparison: in a cluster, the replicas of a stream lag behind its leader at first. */
const COMPARE_MS_MAX = 120_000;
const COMPARE_PAUSE_MS = 250;
/** The server's error code for insufficient storage: the stream's size limit is larger than the free disk space. */
const NO_ROOM = 10047;
/** A message that expires within this time is not compared, because it may be removed before the comparison. */
const EXPIRY_MARGIN_MS = 600_000;
const NANOSECONDS = 1_000_000;
/** Headers of messages that the bus removes automatically: these expire or are scheduled. */
const PASSING = /\r\n(Nats-TTL|Nats-Schedule):/;

interface RestoreOptions {
  bus: Bus;
  folder: BackupFolder;
  replicas: number;
}

/** Restores a stream and resolves with the number of its messages. */
export async function restoreStream(
  { bus, folder, replicas }: RestoreOptions,
  stored: StoredStream,
): Promise<number> {
  const wanted = configOf(stored, replicas);
  const subject = await beginRestore(bus, wanted).catch((cause: unknown) => {
    const isTooLarge = cause instanceof JetStreamApiError && cause.code === NO_ROOM;
    if (!isTooLarge || wanted.max_bytes <= 0) throw cause;
    // Tries again with a smaller size limit. The platform's next start raises the limit to what the disk allows.
    const used = stored.parts.reduce((sum, { bytes }) => sum + bytes, 0);
    const least = Math.max(2 * used, Math.min(wanted.max_bytes, BLOB_STORE_BYTES_MIN));
    return beginRestore(bus, { ...wanted, max_bytes: least });
  });
  const present = SequenceList.decode(await folder.load(stored.present));
  if (present.length !== stored.messages)
    throw new Error(
      `Cannot restore ${stored.name}: its list has ${present.length} messages, not ${stored.messages}`,
    );
  const sending = await ChunkSender.open(bus, stored.name, subject);
  const compared = new Comparison(stored, present);
  await sending.add(ARCHIVE_MAGIC);
  await sending.add(
    encodeFile("state.json", Buffer.from(JSON.stringify(stateOf(stored, present)))),
  );
  const sent = await sendMessages(folder, stored, { present, sending, compared });
  await sending.add(ARCHIVE_END);
  const state = await sending.finish();
  if (sent !== stored.messages)
    throw new Error(
      `Cannot restore ${stored.name}: its files hold ${sent} of ${stored.messages} messages`,
    );
  if (state.last_seq < stored.lastSequence)
    throw new Error(
      `Cannot restore ${stored.name}: it ends at ${state.last_seq} instead of ${stored.lastSequence}`,
    );
  await compare(bus, stored, compared);
  return sent;
}

/** Prefix of the metadata names that the server reserves for itself. */
const OF_SERVER = "_nats.";

function configOf({ config, name }: StoredStream, replicas: number): StreamConfig {
  const kept = config as unknown as StreamConfig;
  const metadata = Object.entries(kept.metadata ?? {}).filter(
    ([key]) => !key.startsWith(OF_SERVER),
  );
  return { ...kept, name, num_replicas: replicas, metadata: Object.fromEntries(metadata) };
}

const stateOf = ({ lastSequence }: StoredStream, present: SequenceList) => ({
  messages: present.length,
  bytes: 0,
  first_seq: present.first ?? lastSequence + 1,
  last_seq: lastSequence,
  consumer_count: 0,
});

async function sendMessages(
  folder: BackupFolder,
  { parts }: StoredStream,
  to: { present: SequenceList; sending: ChunkSender; compared: Comparison },
): Promise<number> {
  let sent = 0;
  for (const part of parts) {
    const bytes = await folder.load(part);
    for (let at = 0; at < bytes.length; ) {
      const { sequence, name, headers, timestamp, end } = decodeEntry(bytes, at);
      if (to.present.has(sequence)) {
        const entry = bytes.subarray(at, end);
        to.compared.add(entry, { sequence, subject: name, headers, at: timestamp });
        await to.sending.add(entry);
        sent += 1;
      }
      at = end;
    }
  }
  return sent;
}

async function beginRestore(bus: Bus, config: StreamConfig): Promise<string> {
  const request = JSON.stringify({ config });
  const answer = answerOf(await bus.request(`$JS.API.STREAM.RESTORE.${config.name}`, request));
  if (answer.deliver_subject === undefined)
    throw new Error(`Cannot restore ${config.name}: the bus named no subject for it`);
  return answer.deliver_subject;
}

/**
 * Reads the restored stream and compares its messages with the sent ones. Repeats this for up to COMPARE_MS_MAX,
 * because any replica may answer and may lag behind the leader.
 */
async function compare(bus: Bus, stored: StoredStream, sent: Comparison): Promise<void> {
  const info = await bus.jetstream.streams.info(stored.name);
  const giveUpAt = performance.now() + COMPARE_MS_MAX;
  // The number of messages that may be missing. A backup may contain messages that were removed while the backup was
  // made, and the limits of the stream may remove them again.
  const spare = stored.messages - stored.counted;
  for (;;) {
    const difference = await differenceOf(bus, info, { stored, sent, spare });
    if (difference === undefined) return;
    if (performance.now() > giveUpAt)
      throw new Error(`Cannot restore ${stored.name}: ${difference}`);
    await wait(COMPARE_PAUSE_MS);
  }
}

/**
 * Describes how the messages on the bus differ from the sent ones. Returns undefined if they are the same. Up to `spare`
 * messages may be missing.
 */
async function differenceOf(
  bus: Bus,
  info: StreamInfo,
  { stored, sent, spare }: { stored: StoredStream; sent: Comparison; spare: number },
): Promise<string | undefined> {
  let found = 0;
  for await (const message of readMessages(bus, info, 1)) {
    if (message.sequence > stored.lastSequence) break;
    const { sequence, subject, headers, timestamp } = message;
    const about = { sequence, subject, headers, at: Number(timestamp) };
    if (sent.omits(about)) continue;
    if (!sent.has(encodeMessage(message), sequence))
      return `message ${sequence} is not as in the backup`;
    found += 1;
  }
  if (sent.count - found <= spare) return undefined;
  return `the bus has ${found} messages in place of ${sent.count}`;
}

interface AboutMessage {
  sequence: number;
  subject: string;
  headers: Uint8Array;
  at: number;
}

/**
 * Describes the messages that a restored stream must have, by their sequences and 48 bits of their SHA-256. Omits
 * messages that will expire soon and reminders that may be due, because the bus itself removes or sends these.
 */
class Comparison {
  readonly #hashes: MessageHashes;
  /**
   * A time in nanoseconds since 1970. A message older than this may expire before the comparison, so it is omitted.
   */
  readonly #oldest: number;

  constructor({ config }: StoredStream, present: SequenceList) {
    const maxAge = Number(config.max_age ?? 0);
    const now = (Date.now() + EXPIRY_MARGIN_MS) * NANOSECONDS;
    this.#oldest = maxAge > 0 ? now - maxAge : 0;
    this.#hashes = new MessageHashes(present);
  }

  /** The number of messages that the stream must have. */
  get count(): number {
    return this.#hashes.count;
  }

  omits({ subject, headers, at }: AboutMessage): boolean {
    if (at < this.#oldest || changesNoActor(subject)) return true;
    return headers.length > 0 && PASSING.test(Buffer.from(headers).toString());
  }

  add(entry: Buffer, about: AboutMessage): void {
    if (!this.omits(about)) this.#hashes.add(about.sequence, hashOf(entry));
  }

  has(entry: Buffer, sequence: number): boolean {
    return this.#hashes.has(sequence, hashOf(entry));
  }
}

const hashOf = (entry: Buffer) => hash("sha256", entry, "buffer").readUIntBE(0, 6);
