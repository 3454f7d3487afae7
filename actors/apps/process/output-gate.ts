/**
 * Holds back every message of an agent until all earlier writes are durable. Records are written one at a time, and
 * each message carries the number of the record that it waits for.
 */

import type { FromProcess, ProcessAction } from "../../../schemas/apps/app-process.ts";
import { AGENT_RECORD_BYTES_MAX } from "../../../schemas/apps/limits.ts";
import type { AgentDatabase } from "./agent-database.ts";
import { setImmediate } from "./native-timers.ts";
import { isEmptyDatabase } from "./own-tables.ts";
import { emptyRecord } from "./page-log.ts";

/**
 * Number of records after which an image replaces them. It limits the time of a takeover, which reads them all: 501
 * records take 150 ms.
 */
const AGENT_LOG_RECORDS_MAX = 200;

/** Below this size, reading the log's records takes less time than creating an image. */
const LOG_BYTES_MIN = 256 * 1024;

interface GateOptions {
  agent: number;
  database: AgentDatabase;
  send: (message: FromProcess) => void;
  lastCommit: number;
  /** Number of the log's records after its last image. */
  records: number;
  recordBytes: number;
  imageBytes: number;
  /**
   * Returns a change of the agent's alarm. It is called before a record is taken, because it may write to the
   * database.
   */
  alarm: () => number | null | undefined;
}

export class OutputGate {
  readonly #options: GateOptions;
  #last: number;
  #durable: number;
  /** True if a caller waits for the next record. The record is then written even if it has no changes. */
  #isPromised = false;
  /** Number of calls of `after`. */
  #asked = 0;
  #isWanted = false;
  #isArmed = false;
  #isClosed = false;
  #isGone = false;
  #actions: ProcessAction[] = [];
  #said: FromProcess[] = [];
  #waiting: { commit: number; resolve: () => void }[] = [];
  #records: number;
  #recordBytes: number;
  #imageBytes: number;

  constructor(options: GateOptions) {
    this.#options = options;
    this.#last = options.lastCommit;
    this.#durable = options.lastCommit;
    this.#records = options.records;
    this.#recordBytes = options.recordBytes;
    this.#imageBytes = options.imageBytes;
  }

  /**
   * Returns the number of the record that a message sent now must wait for. The record is taken soon or with later
   * writes.
   */
  after({ isSoon = true } = {}): number {
    const { database } = this.#options;
    this.#asked += 1;
    if (!this.#isPromised && !database.isInTransaction && !database.log.isDirty) return this.#last;
    this.#isPromised = true;
    if (isSoon) this.flushSoon();
    return this.#last + 1;
  }

  /** A counter. It changes when a message leaves or waits for a record. */
  get asked(): number {
    return this.#asked;
  }

  /** True if no record is being written or about to be taken, so that later changes can share the next record. */
  get isAtRest(): boolean {
    const isWaiting = this.#isArmed || this.#isWanted || this.#durable < this.#last;
    return !isWaiting && !this.#isClosed;
  }

  act(action: ProcessAction): void {
    this.#actions.push(action);
    this.flushSoon();
  }

  /** Sends a message after all earlier socket actions. It is sent with the next record, which may be taken later. */
  say(message: FromProcess, { isSoon = true } = {}): void {
    this.#said.push(message);
    if (isSoon) this.flushSoon();
  }

  /**
   * Takes a record when the running code pauses, but not immediately. A turn that awaits nothing outside has ended by
   * then and its reply is known, so no record contains only a part of its changes.
   */
  flushSoon(): void {
    if (this.#isArmed || this.#isClosed) return;
    this.#isArmed = true;
    setImmediate(() => {
      this.#isArmed = false;
      this.#say();
    });
  }

  committed(commit: number): void {
    this.#durable = Math.max(this.#durable, commit);
    const done = this.#waiting.filter((waiting) => waiting.commit <= this.#durable);
    this.#waiting = this.#waiting.filter((waiting) => waiting.commit > this.#durable);
    for (const { resolve } of done) resolve();
    // This message is handled before code that awaits continues, so a record taken now could contain half of a turn.
    // The record is taken later.
    if (this.#isPromised || this.#isWanted) this.flushSoon();
  }

  /** Resolves when all earlier changes are durable. */
  durable(): Promise<void> {
    const commit = this.after();
    if (commit <= this.#durable) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ commit, resolve }));
  }

  /** Makes the next record an image, because all data was deleted and no old record may remain. */
  destroyed(): void {
    this.#isGone = true;
  }

  close(): void {
    this.#isClosed = true;
  }

  #say(): void {
    if (this.#isClosed) return;
    this.#record();
    const said = this.#said;
    this.#said = [];
    for (const message of said) this.#options.send(message);
  }

  #record(): void {
    const { agent, database, send } = this.#options;
    if (!this.#isPromised && !database.log.isDirty) {
      const actions = this.#takeActions();
      if (actions.length > 0) send({ type: "act", agent, after: this.#last, actions });
      return;
    }
    if (this.#durable < this.#last) {
      this.#isWanted = true;
      return;
    }
    const wakeAt = this.#options.alarm();
    const isGone = this.#isGone;
    const isEmpty = isEmptyDatabase(database);
    const { record, isImage } = this.#takeRecord();
    this.#isGone = false;
    this.#last += 1;
    this.#isPromised = false;
    this.#isWanted = false;
    send({
      type: "commit",
      agent,
      commit: this.#last,
      record,
      isImage,
      ...(isGone && { isGone }),
      ...(isEmpty && { isEmpty }),
      actions: this.#takeActions(),
      ...(wakeAt !== undefined && { wakeAt }),
    });
  }

  #takeRecord(): { record: Uint8Array; isImage: boolean } {
    const { database } = this.#options;
    const record = database.take() ?? emptyRecord();
    this.#records += 1;
    this.#recordBytes += record.length;
    const isShort =
      !this.#isGone &&
      this.#records < AGENT_LOG_RECORDS_MAX &&
      this.#recordBytes <= Math.max(this.#imageBytes, LOG_BYTES_MIN) &&
      record.length <= AGENT_RECORD_BYTES_MAX;
    if (isShort) return { record, isImage: false };
    const image = database.log.takeImage();
    this.#records = 0;
    this.#recordBytes = 0;
    this.#imageBytes = image.length;
    return { record: image, isImage: true };
  }

  #takeActions(): ProcessAction[] {
    const actions = this.#actions;
    this.#actions = [];
    return actions;
  }
}
