/**
 * An agent's database on the bus: an image, and records of the pages changed since that image. Each record also has
 * the socket actions of its commit.
 */
import { randomBytes } from "node:crypto";
import { z } from "zod";
import { SocketAction } from "../../../schemas/apps/agent-sockets.ts";
import { AGENT_RECORD_BYTES_MAX, AGENT_ROOM_BYTES } from "../../../schemas/apps/limits.ts";
import { agentLogsOf } from "../../../schemas/split-streams.ts";
import { fnv1a32 } from "../../../schemas/subjects.ts";
import { WriteRefused } from "../../runtime/bus/atomic-batch.ts";
import type { Bus } from "../../runtime/bus/bus.ts";
import type { BlobStore } from "../../runtime/store/blob-store.ts";
import type { AgentRoom } from "./agent-room.ts";
import type { SharedWrites } from "./shared-writes.ts";
import { type LogMessage, LogTaken, type NewLogMessage, SubjectLog } from "./subject-log.ts";

/** The socket actions of one commit, by gateway. */
export const CommitActions = z.object({
  commit: z.int().min(1),
  to: z.record(z.string(), z.array(SocketAction)),
});
export type CommitActions = z.infer<typeof CommitActions>;
const StoredActions = z.array(CommitActions);

export interface NewRecord {
  commit: number;
  record: Uint8Array;
  isImage: boolean;
  /** Socket actions of this commit. With an image, also the actions of earlier commits that may not have arrived. */
  actions: readonly CommitActions[];
  /** Number of the commit up to which the socket actions of all commits have arrived. */
  arrived: number;
  /** The agent was destroyed, and this log is what remains of it. */
  isGone?: boolean | undefined;
}

export interface LoadedLog {
  log: AgentLog;
  image: Uint8Array | undefined;
  records: Uint8Array[];
  lastCommit: number;
  /** Socket actions that may not have arrived. */
  actions: CommitActions[];
}

/** Header: the number of the record. */
const COMMIT = "Trunkline-Commit";
/** Header: the number of the commit up to which the socket actions of all commits have arrived. */
const ARRIVED = "Trunkline-Arrived";
/** Header: `inline`, or the name of the blob that holds the whole database. */
const IMAGE = "Trunkline-Image";
const INLINE = "inline";
/** Header: when the bus removes the message. */
const TTL = "Nats-TTL";
/**
 * Header: the number of bytes of socket actions at the end of the payload, or the name of a blob that holds the
 * actions.
 */
const ACTIONS = "Trunkline-Actions";
/** Header: bytes of the account's storage that are reserved for this agent. */
const ROOM = "Trunkline-Room";

/**
 * Time for which the bus stores the first record of a log that has no data. The owner removes the record when it
 * closes, so only the record of a host that was killed stays for this time. A record that announces a count stays without
 * such a time, until the next owner ends the count.
 */
export const BLANK_LOG_S = 86_400;

export interface AgentLogParts {
  bus: Bus;
  /** Returns the writes to a stream of logs, which all agents of this host share. */
  writesTo: (stream: string) => SharedWrites;
  blobs: Pick<BlobStore, "put" | "get" | "remove">;
  /** Defaults to BLANK_LOG_S. */
  blankLogS?: number | undefined;
}

export class AgentLog {
  readonly #parts: AgentLogParts;
  readonly #log: SubjectLog;
  readonly #room: AgentRoom;
  /** Bytes of the last image and of the records since then. */
  #bytes = 0;
  /** The prefix of the names of this agent's blobs, after the prefix of its app. */
  readonly #blobs: string;
  /** Names of the blobs that the log refers to: of the last image, and of the actions since then. */
  #named: string[] = [];
  /** True while no message of the log has data: somebody has addressed the agent, but it has stored nothing. */
  #isBlank: boolean;
  /** Sequences of the records without data before the last one. */
  #before: number[] = [];
  #renewals: NodeJS.Timeout | undefined;
  #renewing: Promise<void> | undefined;
  #appending: Promise<void> | undefined;
  #left: Promise<void> | undefined;

  /** Fences out the agent's former owner and reads the log of that owner. */
  static async open(
    parts: AgentLogParts,
    { key, app, room }: { key: string; app: string; room: AgentRoom },
  ): Promise<LoadedLog> {
    const { stream, log: logOf } = agentLogsOf(parts.bus.layout, key);
    const subject = logOf(key);
    const { log, messages } = await SubjectLog.takeOver(
      parts.bus,
      { stream, subject, writes: parts.writesTo(stream) },
      (last) => takeoverOf(last, parts),
    );
    const blobs = `app.${app}.agent.${fnv1a32(subject).toString(16)}`;
    const isBlank = messages.every(isSpent);
    room.resume(Number(messages.at(-1)?.header(ROOM) || 0), isBlank);
    const agentLog = new AgentLog(parts, { log, blobs, room, isBlank });
    return agentLog.#load(messages);
  }

  private constructor(
    parts: AgentLogParts,
    opened: { log: SubjectLog; blobs: string; room: AgentRoom; isBlank: boolean },
  ) {
    this.#parts = parts;
    this.#log = opened.log;
    this.#room = opened.room;
    this.#blobs = opened.blobs;
    this.#isBlank = opened.isBlank;
  }

  get isBlank(): boolean {
    return this.#isBlank;
  }

  /**
   * Removes all data from the log, because the agent stores nothing, and ends its count. One message replaces all
   * others, so that an owner that takes over meanwhile reads either everything or nothing.
   */
  async empty(commit: number): Promise<void> {
    if (!this.#isBlank) {
      const headers = {
        [COMMIT]: String(commit),
        [ARRIVED]: String(commit),
        [ROOM]: String(this.#room.held),
      };
      await this.#log.append({ payload: new Uint8Array(), headers, isRollup: true });
      this.#remove(this.#named.splice(0));
    }
    await this.#room.letGo();
    this.#isBlank = true;
  }

  /**
   * Ends the use of this log. Removes the log if it has no data, so that a name that was only addressed leaves nothing
   * on the bus. A former owner cannot write afterwards: it expects its own record, which is gone too. Never rejects.
   */
  leave(): Promise<void> {
    this.#left ??= this.#leave();
    return this.#left;
  }

  async #leave(): Promise<void> {
    this.#stopRenewals();
    // A record on its way decides whether the log has data.
    await this.#appending?.catch(() => {});
    // A log that the account counts stays, so that its next owner ends the count.
    if (!this.#isBlank || this.#room.isCounted) return;
    await this.#renewing;
    // If a record cannot be removed now, it expires, or the next owner removes it.
    await this.#log.remove([this.#log.last, ...this.#before]).catch(() => {});
  }

  /**
   * Appends a record. The caller must wait for the previous append. Rejects as `SubjectLog.append` does and with
   * errors of the blob store; with `limit_reached` if the account has no room for the record.
   */
  append(record: NewRecord): Promise<void> {
    this.#appending = this.#append(record);
    return this.#appending;
  }

  async #append(record: NewRecord): Promise<void> {
    const actions = record.actions.length > 0 ? JSON.stringify(record.actions) : "";
    const added = record.record.length + Buffer.byteLength(actions);
    const bytes = record.isImage ? added : this.#bytes + added;
    this.#stopRenewals();
    await this.#renewing;
    if (record.isGone && bytes <= AGENT_ROOM_BYTES) await this.#room.letGo();
    else {
      if (this.#isBlank && !this.#room.isCounted) await this.#announce(record.commit - 1, bytes);
      await this.#room.hold(bytes);
    }
    const message = await this.#encode(record, actions);
    const named = blobsOf((name) => message.headers[name] ?? "");
    try {
      await this.#log.append(message);
    } catch (error) {
      // The blobs are removed only if the record was surely not stored. If it was stored after all, the next owner
      // needs its blobs.
      if (error instanceof LogTaken || error instanceof WriteRefused) this.#remove(named);
      throw error;
    }
    this.#isBlank = false;
    if (record.isImage) this.#remove(this.#named.splice(0));
    this.#named.push(...named);
    this.#bytes = bytes;
  }

  /**
   * Stores a record that states a reservation before the account makes it. It does not expire. So if this host is
   * killed before it stores the first data, the next owner finds the record, and ends the count.
   */
  async #announce(commit: number, bytes: number): Promise<void> {
    const headers = { [COMMIT]: String(commit), [ARRIVED]: "0", [ROOM]: String(bytes) };
    const before = this.#log.last;
    await this.#log.append({ payload: new Uint8Array(), headers });
    this.#before = [before];
  }

  /** Keeps the only record of a log without data from expiring while its owner has the log open. */
  #startRenewals(): void {
    const { blankLogS = BLANK_LOG_S } = this.#parts;
    const renew = () => {
      const renewed = { ...takeoverOf(undefined, this.#parts), isRollup: true };
      // After a failure, the next append finds out whether this owner still has the log.
      this.#renewing = this.#log.append(renewed).catch(() => {});
    };
    this.#renewals = setInterval(renew, blankLogS * RENEWED_AT * 1_000).unref();
  }

  #stopRenewals(): void {
    clearInterval(this.#renewals);
  }

  /** Removes blobs. Blobs that cannot be removed now are removed with the app. */
  #remove(blobs: readonly string[]): void {
    for (const blob of blobs) this.#parts.blobs.remove(blob).catch(() => {});
  }

  async #encode(
    { commit, record, isImage, arrived }: NewRecord,
    actions: string,
  ): Promise<NewLogMessage> {
    const headers: Record<string, string> = {
      [COMMIT]: String(commit),
      [ARRIVED]: String(arrived),
      [ROOM]: String(this.#room.held),
    };
    let payload = record;
    if (isImage) headers[IMAGE] = INLINE;
    if (record.length > AGENT_RECORD_BYTES_MAX) {
      if (!isImage) throw new Error(`Cannot store a record of ${record.length} bytes`);
      headers[IMAGE] = await this.#store(record, commit);
      payload = new Uint8Array();
    }
    if (actions !== "") {
      const bytes = Buffer.from(actions);
      if (payload.length + bytes.length > AGENT_RECORD_BYTES_MAX) {
        headers[ACTIONS] = await this.#store(bytes, commit);
      } else {
        headers[ACTIONS] = String(bytes.length);
        payload = Buffer.concat([payload, bytes]);
      }
    }
    return { payload, headers, isRollup: isImage };
  }

  async #store(bytes: Uint8Array, commit: number): Promise<string> {
    const name = `${this.#blobs}.${commit}-${randomBytes(6).toString("hex")}`;
    await this.#parts.blobs.put(name, bytes);
    return name;
  }

  async #load(messages: readonly LogMessage[]): Promise<LoadedLog> {
    const spent = messages.filter(isSpent);
    // The record of a log that the account counts does not expire.
    if (this.#isBlank && !this.#room.isCounted) this.#startRenewals();
    // The log of an agent that stored nothing was removed, and its numbers with it. Sequences of the stream never
    // repeat, and a record has at least one, so each number of a commit is larger than those of all earlier logs.
    const lastCommit = this.#isBlank ? this.#log.last : commitOf(messages.at(-1)) + 1;
    const arrived = Number(messages.at(-1)?.header(ARRIVED) || 0);
    let image: Uint8Array | undefined;
    let records: Uint8Array[] = [];
    const actions: CommitActions[] = [];
    for (const message of messages) {
      const { record, stored } = await this.#split(message, arrived);
      actions.push(...stored);
      this.#bytes += message.data.length;
      this.#named.push(...blobsOf((name) => message.header(name)));
      const blob = message.header(IMAGE);
      if (blob === "") {
        if (record.length > 0) records.push(record);
        continue;
      }
      image = blob === INLINE ? record : await this.#read(blob);
      records = [];
      this.#bytes = Math.max(image.length, message.data.length);
    }
    // Earlier takeover records are no longer needed; the next takeover removes any that remain.
    this.#log.remove(spent.map(({ sequence }) => sequence)).catch(() => {});
    return { log: this, image, records, lastCommit, actions };
  }

  async #split(
    message: LogMessage,
    arrived: number,
  ): Promise<{ record: Uint8Array; stored: CommitActions[] }> {
    const { data } = message;
    const where = message.header(ACTIONS);
    if (where === "") return { record: data, stored: [] };
    const length = COUNT.test(where) ? Number(where) : 0;
    const record = data.subarray(0, data.length - length);
    if (commitOf(message) <= arrived) return { record, stored: [] };
    const bytes = length > 0 ? data.subarray(record.length) : await this.#read(where);
    const stored = StoredActions.parse(JSON.parse(Buffer.from(bytes).toString()));
    return { record, stored: stored.filter(({ commit }) => commit > arrived) };
  }

  async #read(blob: string): Promise<Uint8Array> {
    return Buffer.concat(await Array.fromAsync(this.#parts.blobs.get(blob)));
  }
}

/** Matches a header that holds a number of bytes and not the name of a blob. */
const COUNT = /^\d+$/;

const blobsOf = (header: (name: string) => string) =>
  [header(IMAGE), header(ACTIONS)].filter(
    (value) => value !== "" && value !== INLINE && !COUNT.test(value),
  );

/** Returns whether the message only shut out a former owner, or announced a count. */
const isSpent = (message: LogMessage) =>
  message.data.length === 0 && message.header(IMAGE) + message.header(ACTIONS) === "";

/** The share of the time of BLANK_LOG_S after which the record is written anew. */
const RENEWED_AT = 0.5;

/** Returns the record of a new owner. It expires if no data may precede it. */
function takeoverOf(
  last: LogMessage | undefined,
  { blankLogS = BLANK_LOG_S }: Pick<AgentLogParts, "blankLogS">,
): NewLogMessage {
  const isFirst = last === undefined || last.header(TTL) !== "";
  return {
    payload: new Uint8Array(),
    headers: {
      [COMMIT]: String(commitOf(last) + 1),
      [ARRIVED]: last?.header(ARRIVED) || "0",
      [ROOM]: last?.header(ROOM) || "0",
      ...(isFirst && { [TTL]: `${blankLogS}s` }),
    },
  };
}

const commitOf = (message: LogMessage | undefined) => Number(message?.header(COMMIT) || 0);
