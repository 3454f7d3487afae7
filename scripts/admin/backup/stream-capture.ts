/**
 * Copies the messages of one stream into a folder of backups. It continues after the messages of the last backup,
 * determines which earlier messages still exist, and reads new messages until the moment of the backup.
 */
import { hash } from "node:crypto";
import { DiscardPolicy, type StreamInfo } from "@nats-io/jetstream";
import type { Bus } from "../../../actors/runtime/bus/bus.ts";
import { type Clock, systemClock } from "../../../actors/runtime/lib/clock.ts";
import { isState } from "../../../schemas/subjects.ts";
import { type ArchivedMessage, encodeMessage } from "./archive-entries.ts";
import type { BackupFolder, Part, StoredStream } from "./backup-folder.ts";
import { countFrom, listMessages, readMessages, readOfLeader } from "./read-stream.ts";
import { SequenceList } from "./sequence-list.ts";

/** Maximum size of the messages in one part, before compression. A restore loads one part at a time into memory. */
const PART_BYTES = 16 * 1024 ** 2;
/** A stream with at most this many messages is listed again at the moment of the backup, which takes about 20 ms. */
const LISTED_AT_MOMENT_MAX = 2_000;
/**
 * The same limit as LISTED_AT_MOMENT_MAX, for a stream that only its leader can list with one request per message:
 * 100 tasks lengthen the pause by about 30 ms.
 */
const LISTED_BY_LEADER_MAX = 100;
/**
 * Maximum number of messages that are read one by one during the write pause. If more are new, some process ignores
 * the pause.
 */
const READ_AT_MOMENT_MAX = 500;
const ROUNDS_MAX = 5;
/**
 * Longest time between two reads of a state stream that is followed. A removal leaves a marker for 10 seconds
 * (actors/runtime/shards/reminders.ts). If the marker expires before it is read, the removed row seems to be stored.
 */
const UNREAD_MS_MAX = 8_000;

/** A message that was read after the stream was listed. */
interface Late {
  sequence: number;
  subject: string;
  /** True if the message replaces all earlier messages of its subject. */
  rollsUp: boolean;
}

interface Settled {
  lastSequence: number;
  messages: number;
  read: string[];
}

export class StreamCapture {
  readonly info: StreamInfo;
  /** The file of the previous backup that could not be used, so that all messages of the stream are read again. */
  readonly problem: string | undefined;
  readonly #clock: Clock;
  readonly #bus: Bus;
  readonly #folder: BackupFolder;
  readonly #parts: Part[];
  /** Sequences of the last backup's messages, and of all messages that were read before the listing began. */
  readonly #known: SequenceList;
  /** The last sequence that was read. */
  #position: number;
  #entries: Buffer[] = [];
  #bytes = 0;
  #range: { first: number; messages: number } | undefined;
  /** True after the listing has begun. Messages that are read from then on are late. */
  #isFollowing = false;
  #listed: { sequences: SequenceList; subjects: number[] } | undefined;
  /** The time when the last read began, and whether a marker may have expired between two reads since the listing. */
  #readAt = 0;
  #missesRemovals = false;
  #late: Late[] = [];
  /**
   * The figures of the stream at the moment of the backup. `late` is the number of late messages that were read
   * before this moment.
   */
  #cut: { counted: number; lastSequence: number; late: number; exact?: SequenceList } | undefined;

  private constructor(
    bus: Bus,
    folder: BackupFolder,
    info: StreamInfo,
    last: {
      parts: readonly Part[];
      known: SequenceList;
      position: number;
      clock: Clock;
      problem?: string | undefined;
    },
  ) {
    this.problem = last.problem;
    this.#clock = last.clock;
    this.#bus = bus;
    this.#folder = folder;
    this.info = info;
    this.#parts = [...last.parts];
    this.#known = last.known;
    this.#position = last.position;
  }

  /** `previous` describes the same stream in the last backup of the folder. */
  static async begin(
    bus: Bus,
    folder: BackupFolder,
    info: StreamInfo,
    { previous, clock = systemClock }: { previous?: StoredStream | undefined; clock?: Clock } = {},
  ): Promise<StreamCapture> {
    const nothing = { parts: [], known: new SequenceList(), position: 0, clock };
    // The previous backup can be continued only if the stream was neither recreated nor set back. Otherwise other
    // messages may have the same sequences.
    const goesOn =
      previous?.created === info.created && previous.lastSequence <= info.state.last_seq;
    if (!goesOn) return new StreamCapture(bus, folder, info, nothing);
    // The parts are not read here, because they may have many GB.
    const problem =
      (await folder.sizeProblemOf(previous.parts)) ?? (await folder.problemOf(previous.present));
    if (problem !== undefined) return new StreamCapture(bus, folder, info, { ...nothing, problem });
    const known = SequenceList.decode(await folder.load(previous.present));
    const { parts, lastSequence: position } = previous;
    return new StreamCapture(bus, folder, info, { parts, known, position, clock });
  }

  get name(): string {
    return this.info.config.name;
  }

  get isFollowing(): boolean {
    return this.#isFollowing;
  }

  /**
   * True if the reads of a state stream were too far apart since its listing, so that it must be listed anew. No other
   * stream has markers that expire.
   */
  get missesRemovals(): boolean {
    return this.#missesRemovals;
  }

  /**
   * Reads all new messages up to the current end of the stream. Returns their number. Messages that arrive meanwhile
   * are left out: on a busy machine they may arrive faster than they are read, and the reading would not end.
   */
  async readOn(): Promise<number> {
    const startedAt = this.#clock.monotonic();
    const { state } = await this.#bus.jetstream.streams.info(this.name);
    let count = 0;
    if (state.last_seq > this.#position) {
      const messages = readMessages(this.#bus, this.info, this.#position + 1);
      count = await this.#take(messages, { upTo: state.last_seq });
    }
    this.#noteRead(startedAt);
    return count;
  }

  /**
   * Determines which earlier messages still exist: those of the last backup, and those that were read since. May run
   * while `readOn` reads later messages. A further call lists the stream anew.
   */
  async list(): Promise<void> {
    this.#isFollowing = true;
    this.#readAt = this.#clock.monotonic();
    this.#missesRemovals = false;
    this.#listed = undefined;
    this.#cut = undefined;
    const known = this.#known;
    for (const { sequence } of this.#late.splice(0)) known.push(sequence);
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
      if (sequence > upTo) break;
      if (!known.has(sequence)) throw this.#gap(sequence);
      sequences.push(sequence);
      if (this.#replaces) subjects.push(shortHash(subject));
    }
    this.#listed = { sequences, subjects };
  }

  /**
   * Determines the current content of the stream from its leader. The result is exact if nobody writes to the stream
   * meanwhile. Returns the stream's figures and the subjects of new messages. Returns undefined if the stream does
   * not stop changing.
   */
  async settle(): Promise<Settled | undefined> {
    const before = this.#late.length;
    for (let round = 1; round <= ROUNDS_MAX; round++) {
      const startedAt = this.#clock.monotonic();
      const { state } = await this.#bus.jetstream.streams.info(this.name);
      const late = this.#late.length;
      const messages = readOfLeader(this.#bus, this.name, this.#position + 1);
      const count = await this.#take(messages, { countMax: READ_AT_MOMENT_MAX });
      if (count < READ_AT_MOMENT_MAX) this.#noteRead(startedAt);
      // The figures were read before these new messages, so the loop reads the figures again.
      if (this.#late.length > late) continue;
      const { last_seq: lastSequence, messages: counted } = state;
      // A large stream is not listed here: its content is computed after the pause, and may include messages that
      // were removed after its listing.
      const exact = counted <= this.#listedMax ? await this.#stillThere() : undefined;
      const isShort = exact !== undefined && exact.length < counted;
      // Fewer messages than counted: some were removed after the count, so the loop tries again. The last round
      // accepts the stream without an exact list, so that removals cannot block the backup.
      if (isShort && round < ROUNDS_MAX) continue;
      this.#cut = { counted, lastSequence, late, ...(exact && !isShort && { exact }) };
      const read = this.#late.slice(before).map(({ subject }) => subject);
      return { lastSequence, messages: counted, read };
    }
    return undefined;
  }

  /** Stores the remaining messages, and describes the stream at the moment that `settle` determined. */
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

  /** Notes the end of a read that began at this time and read all messages that were stored by then. */
  #noteRead(startedAt: number): void {
    const unreadMs = this.#clock.monotonic() - this.#readAt;
    if (isState(this.name) && this.#isFollowing && unreadMs > UNREAD_MS_MAX)
      this.#missesRemovals = true;
    this.#readAt = startedAt;
  }

  /** True if a new message can replace earlier messages of its subject. */
  get #replaces(): boolean {
    const { max_msgs_per_subject: each, allow_rollup_hdrs: rollsUp } = this.info.config;
    return each > 0 || rollsUp === true;
  }

  async #take(
    messages: AsyncIterable<ArchivedMessage>,
    { countMax = Infinity, upTo = Infinity },
  ): Promise<number> {
    let count = 0;
    for await (const message of messages) {
      if (message.sequence > upTo) break;
      await this.#add(message);
      count += 1;
      if (count === countMax || message.sequence === upTo) break;
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

  /**
   * Returns the sequences of the listed messages and of the first `lateCount` late messages, except messages that a
   * later one has replaced.
   */
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
   * Returns the number of replaced messages of each subject, by the hash of the subject. The replaced messages are
   * the oldest. Among millions of subjects, two hashes collide less than once in 10,000 backups.
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

  /** Maximum number of messages for an exact list at the moment of the backup. */
  get #listedMax(): number {
    return this.info.config.allow_direct ? LISTED_AT_MOMENT_MAX : LISTED_BY_LEADER_MAX;
  }

  /**
   * Lists all messages of the stream. Any replica may answer and may lag behind, so the list may contain messages
   * that the leader has just removed. Returns undefined if the replica lacks a message of the leader, or if a new
   * message, such as a lease, arrived during the listing.
   */
  async #stillThere(): Promise<SequenceList | undefined> {
    const present = new SequenceList();
    const late = new Set(this.#late.map(({ sequence }) => sequence));
    for await (const { sequence } of readMessages(this.#bus, this.info, 1)) {
      if (sequence > this.#position) return undefined;
      if (!this.#known.has(sequence) && !late.has(sequence)) throw this.#gap(sequence);
      present.push(sequence);
    }
    // A replica receives messages in the order of the stream. If the leader has no message after the replica's last
    // one, the replica lacks no message.
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
