/**
 * Copies the messages of one stream into a folder of backups. It continues from the last backup, determines which
 * earlier messages still exist, and follows the stream until the moment of the backup.
 */
import { hash } from "node:crypto";
import { DiscardPolicy, type StreamInfo } from "@nats-io/jetstream";
import type { Bus } from "../../../actors/runtime/bus/bus.ts";
import { type ArchivedMessage, encodeMessage } from "./archive-entries.ts";
import type { BackupFolder, Part, StoredStream } from "./backup-folder.ts";
import { countFrom, listMessages, readMessages, readOfLeader } from "./read-stream.ts";
import { SequenceList } from "./sequence-list.ts";

/** Bytes of messages in one part, before compression. A restore holds one part in memory. */
const PART_BYTES = 16 * 1024 ** 2;
/** A stream with at most this many messages is listed once more at the moment of the backup: some 20 ms. */
const LISTED_AT_MOMENT_MAX = 2_000;
/**
 * The same limit when only the leader may list, with one request per message: 100 tasks add some 30 ms to the pause.
 */
const LISTED_BY_LEADER_MAX = 100;
/** Messages read one by one at that moment. More new messages mean that some process ignores the write pause. */
const READ_AT_MOMENT_MAX = 500;
const ROUNDS_MAX = 5;

/** A message that was read after the stream was listed. */
interface Late {
  sequence: number;
  subject: string;
  /** True if it replaces all earlier messages of its subject. */
  rollsUp: boolean;
}

interface Settled {
  lastSequence: number;
  messages: number;
  read: string[];
}

export class StreamCapture {
  readonly info: StreamInfo;
  readonly #bus: Bus;
  readonly #folder: BackupFolder;
  readonly #parts: Part[];
  /** All messages in the parts that existed when they were read. */
  readonly #known: SequenceList;
  /** The last sequence that was read. */
  #position: number;
  #entries: Buffer[] = [];
  #bytes = 0;
  #range: { first: number; messages: number } | undefined;
  /** True from the moment when the listing began: messages read since then are late. */
  #isFollowing = false;
  #listed: { sequences: SequenceList; subjects: number[] } | undefined;
  #late: Late[] = [];
  /** The figures of the stream at the moment of the backup, and how many late messages came before. */
  #cut: { counted: number; lastSequence: number; late: number; exact?: SequenceList } | undefined;

  private constructor(
    bus: Bus,
    folder: BackupFolder,
    info: StreamInfo,
    last: { parts: readonly Part[]; known: SequenceList; position: number },
  ) {
    this.#bus = bus;
    this.#folder = folder;
    this.info = info;
    this.#parts = [...last.parts];
    this.#known = last.known;
    this.#position = last.position;
  }

  /** `previous` is the same stream in the last backup of the folder. */
  static async begin(
    bus: Bus,
    folder: BackupFolder,
    info: StreamInfo,
    previous: StoredStream | undefined,
  ): Promise<StreamCapture> {
    // A stream that was recreated, or lost messages, may have assigned the same sequences to other messages.
    const goesOn =
      previous?.created === info.created &&
      previous.lastSequence <= info.state.last_seq &&
      (await folder.hasAll([...previous.parts, previous.present]));
    if (!goesOn) {
      const nothing = { parts: [], known: new SequenceList(), position: 0 };
      return new StreamCapture(bus, folder, info, nothing);
    }
    const known = SequenceList.decode(await folder.load(previous.present));
    const { parts, lastSequence: position } = previous;
    return new StreamCapture(bus, folder, info, { parts, known, position });
  }

  get name(): string {
    return this.info.config.name;
  }

  get isFollowing(): boolean {
    return this.#isFollowing;
  }

  /** Reads to the current end of the stream. Returns the number of new messages. */
  async readOn(): Promise<number> {
    return await this.#take(readMessages(this.#bus, this.info, this.#position + 1));
  }

  /** Determines which of the known messages still exist. May run while `readOn` reads later messages. */
  async list(): Promise<void> {
    this.#isFollowing = true;
    const known = this.#known;
    const upTo = this.#position;
    if (!this.#replaces && this.info.config.allow_direct) {
      const now = await this.#bus.jetstream.streams.info(this.name);
      const later = await countFrom(this.#bus, this.name, upTo + 1);
      if (now.state.messages - later === known.length) {
        this.#listed = { sequences: known, subjects: [] };
        return;
      }
    }
    const sequences = new SequenceList();
    const subjects: number[] = [];
    for await (const { sequence, subject } of listMessages(this.#bus, this.info)) {
      if (sequence > upTo) continue;
      if (!known.has(sequence)) throw this.#gap(sequence);
      sequences.push(sequence);
      if (this.#replaces) subjects.push(shortHash(subject));
    }
    this.#listed = { sequences, subjects };
  }

  /**
   * Determines the current content of the stream from its leader. The result is exact as long as nobody writes to the
   * stream. Returns the stream's figures and the subjects of new messages; undefined if the stream does not stop
   * changing.
   */
  async settle(): Promise<Settled | undefined> {
    const before = this.#late.length;
    for (let round = 1; round <= ROUNDS_MAX; round++) {
      const { state } = await this.#bus.jetstream.streams.info(this.name);
      const late = this.#late.length;
      await this.#take(readOfLeader(this.#bus, this.name, this.#position + 1), READ_AT_MOMENT_MAX);
      // The figures are older than these messages, so it reads them again.
      if (this.#late.length > late) continue;
      const { last_seq: lastSequence, messages: counted } = state;
      // A large one is settled after the pause. It may keep messages that were removed since it was listed.
      const exact = counted <= this.#listedMax ? await this.#stillThere() : undefined;
      const isShort = exact !== undefined && exact.length < counted;
      // Messages were removed after the count. The last round does without the list, so that removals cannot stop it.
      if (isShort && round < ROUNDS_MAX) continue;
      this.#cut = { counted, lastSequence, late, ...(exact && !isShort && { exact }) };
      const read = this.#late.slice(before).map(({ subject }) => subject);
      return { lastSequence, messages: counted, read };
    }
    return undefined;
  }

  /** Stores the remaining messages, and describes the stream at the moment when it was settled. */
  async finish(): Promise<StoredStream> {
    if (!this.#cut) throw new Error(`Cannot finish the backup of ${this.name}: it is not settled`);
    const { counted, lastSequence, late, exact } = this.#cut;
    const present = exact ?? this.#present(late);
    if (present.length < counted) throw this.#gap(undefined);
    await this.#storePart();
    const { config, created } = this.info;
    return {
      ...{ name: this.name, created, config, lastSequence, counted },
      messages: present.length,
      parts: this.#parts.filter(({ first, last }) => present.hasAny(first, last)),
      present: await this.#folder.store(this.name, `present-${lastSequence}`, present.encode()),
    };
  }

  /** True if a message can replace earlier ones of its subject. */
  get #replaces(): boolean {
    const { max_msgs_per_subject: each, allow_rollup_hdrs: rollsUp } = this.info.config;
    return each > 0 || rollsUp === true;
  }

  async #take(messages: AsyncIterable<ArchivedMessage>, countMax = Infinity): Promise<number> {
    let count = 0;
    for await (const message of messages) {
      await this.#add(message);
      count += 1;
      if (count === countMax) break;
    }
    return count;
  }

  async #add(message: ArchivedMessage): Promise<void> {
    const { sequence, subject, headers } = message;
    const entry = encodeMessage(message);
    this.#entries.push(entry);
    this.#bytes += entry.length;
    this.#range ??= { first: sequence, messages: 0 };
    this.#range.messages += 1;
    this.#position = sequence;
    if (!this.#isFollowing) this.#known.push(sequence);
    else {
      const rollsUp = Buffer.from(headers).includes("\r\nNats-Rollup: ");
      this.#late.push({ sequence, subject, rollsUp });
    }
    if (this.#bytes >= PART_BYTES) await this.#storePart();
  }

  /** Returns the first `late` later messages, and the listed messages that none of them replaced. */
  #present(lateCount: number): SequenceList {
    const late = this.#late.slice(0, lateCount);
    const { sequences, subjects } = this.#listed ?? { sequences: this.#known, subjects: [] };
    const surplus = this.#surplus(late, subjects);
    const present = new SequenceList();
    const add = (sequence: number, hashed: number | undefined) => {
      const left = hashed === undefined ? 0 : (surplus.get(hashed) ?? 0);
      if (left === 0) present.push(sequence);
      else surplus.set(hashed ?? 0, left - 1);
    };
    let index = 0;
    for (const sequence of sequences) add(sequence, subjects[index++]);
    for (const { sequence, subject } of late) add(sequence, shortHash(subject));
    return present;
  }

  /**
   * By hash of the subject: how many of its oldest messages later ones have replaced. Among millions of subjects, two
   * hashes collide less than once in 10,000 backups.
   */
  #surplus(late: readonly Late[], listed: readonly number[]): Map<number, number> {
    const { max_msgs_per_subject: each, discard } = this.info.config;
    const max = each > 0 && discard === DiscardPolicy.Old ? each : Infinity;
    const counts = new Map<number, number>();
    for (const { subject } of late) counts.set(shortHash(subject), 0);
    const surplus = new Map<number, number>();
    const count = (hashed: number, rollsUp: boolean) => {
      const before = counts.get(hashed);
      if (before === undefined) return;
      counts.set(hashed, before + 1);
      if (rollsUp) surplus.set(hashed, before);
    };
    for (const hashed of listed) count(hashed, false);
    for (const { subject, rollsUp } of late) count(shortHash(subject), rollsUp);
    for (const [hashed, all] of counts) {
      const most = Math.max(surplus.get(hashed) ?? 0, all - max);
      if (most > 0) surplus.set(hashed, most);
    }
    return surplus;
  }

  /** The most messages of which an exact list is made at the moment of the backup. */
  get #listedMax(): number {
    return this.info.config.allow_direct ? LISTED_AT_MOMENT_MAX : LISTED_BY_LEADER_MAX;
  }

  /**
   * Lists all messages of the leader, and perhaps some that it removed a moment before: any replica answers, and it may
   * lag. Undefined where it lacks a message of the leader, or where a new one came meanwhile, such as a lease.
   */
  async #stillThere(): Promise<SequenceList | undefined> {
    const present = new SequenceList();
    const late = new Set(this.#late.map(({ sequence }) => sequence));
    for await (const { sequence } of readMessages(this.#bus, this.info, 1)) {
      if (sequence > this.#position) return undefined;
      if (!this.#known.has(sequence) && !late.has(sequence)) throw this.#gap(sequence);
      present.push(sequence);
    }
    // A replica gets messages in their order. So it lacks none if the leader has no later one.
    const later = await this.#bus.readNextOfLeader(this.name, ">", present.last + 1);
    return later === undefined ? present : undefined;
  }

  async #storePart(): Promise<void> {
    if (!this.#range) return;
    const { first, messages } = this.#range;
    const last = this.#position;
    const bytes = Buffer.concat(this.#entries);
    this.#entries = [];
    this.#bytes = 0;
    this.#range = undefined;
    const stored = await this.#folder.store(this.name, `${first}-${last}`, bytes);
    this.#parts.push({ ...stored, messages, first, last });
  }

  #gap(sequence: number | undefined): Error {
    const which = sequence === undefined ? "messages are" : `message ${sequence} is`;
    return new Error(
      `Cannot back up ${this.name}: ${which} on the bus but was not read; try again, and look at the replicas of the stream (trunkline admin doctor streams)`,
    );
  }
}

/** Returns a 48-bit hash of a subject. */
const shortHash = (subject: string) => hash("sha1", subject, "buffer").readUIntBE(0, 6);
