/**
 * A log under one subject of a stream, with one writer at a time. A writer that takes over the log fences out the
 * previous writer, whose next message is refused.
 */
import { setTimeout as wait } from "node:timers/promises";
import { BUS_REQUEST_MS, CALL_RETRY_MS_MAX } from "../../../schemas/limits.ts";
import { WriteRefused, writeAtomically } from "../../runtime/bus/atomic-batch.ts";
import type { Bus } from "../../runtime/bus/bus.ts";
import { firstTwoTokens } from "../../runtime/bus/first-two-tokens.ts";
import { isUnanswered, readDirect } from "../../runtime/bus/reads/read-direct.ts";
import type { SharedWrites } from "./shared-writes.ts";

export interface LogMessage {
  sequence: number;
  data: Uint8Array;
  /** Returns an empty string if the message has no such header. */
  header(name: string): string;
}

export interface NewLogMessage {
  payload: Uint8Array;
  headers: Readonly<Record<string, string>>;
  /** The message replaces all messages before it. */
  isRollup?: boolean;
}

/** Another writer has taken the log over. */
export class LogTaken extends Error {}

/** Limit of the attempts to take over a log while others write to it. The other writers stop after some time. */
const TRIES_MAX = 20;

export class SubjectLog {
  readonly #bus: Bus;
  readonly #writes: SharedWrites;
  readonly #stream: string;
  readonly #subject: string;
  #last: number;

  /**
   * Writes the message that `first` makes of the last stored one, and reads all messages before it. Waits while this
   * process takes over many other logs. Rejects as `writeAtomically` does.
   */
  static takeOver(
    bus: Bus,
    at: { stream: string; subject: string; writes: SharedWrites },
    first: (last: LogMessage | undefined) => NewLogMessage,
  ): Promise<{ log: SubjectLog; messages: LogMessage[] }> {
    const owner = firstTwoTokens(at.subject);
    return bus.readLimits.logs.run(owner, () => SubjectLog.#takeOver(bus, at, first));
  }

  static async #takeOver(
    bus: Bus,
    { stream, subject, writes }: { stream: string; subject: string; writes: SharedWrites },
    first: (last: LogMessage | undefined) => NewLogMessage,
  ): Promise<{ log: SubjectLog; messages: LogMessage[] }> {
    for (let tries = 1; ; tries++) {
      const stored = await bus.readLast(stream, subject);
      const last = stored && readStored(stored);
      const log = new SubjectLog(bus, { stream, subject, writes, last: last?.sequence ?? 0 });
      try {
        const [messages] = await Promise.all([
          last ? log.#read(last) : [],
          log.append(first(last)),
        ]);
        return { log, messages };
      } catch (error) {
        if (!(error instanceof LogTaken) || tries === TRIES_MAX) throw error;
      }
    }
  }

  private constructor(
    bus: Bus,
    at: { stream: string; subject: string; writes: SharedWrites; last: number },
  ) {
    this.#bus = bus;
    this.#writes = at.writes;
    this.#stream = at.stream;
    this.#subject = at.subject;
    this.#last = at.last;
  }

  /**
   * Appends a message. Callers append one message at a time, each after the previous call has resolved. Rejects with
   * LogTaken, WriteRefused or OutcomeUnknown; after a rejection this writer can append nothing.
   */
  async append({ payload, headers, isRollup = false }: NewLogMessage): Promise<void> {
    const write = {
      subject: this.#subject,
      payload,
      headers: { ...headers, ...(isRollup && { "Nats-Rollup": "sub" }) },
      expect: { sequence: this.#last },
    };
    try {
      // A batch cannot contain a message that removes others (ADR-50), so such a message is written alone.
      this.#last = isRollup
        ? await writeAtomically(this.#bus, [write])
        : await this.#writes.write(write);
    } catch (cause) {
      if (!(cause instanceof WriteRefused) || !cause.conflict) throw cause;
      throw new LogTaken(`Cannot write to ${this.#subject}: somebody else does`, { cause });
    }
  }

  /** The sequence of the last message that this writer has stored. */
  get last(): number {
    return this.#last;
  }

  /**
   * Removes messages that are no longer needed. If this fails, the next removal deletes the remaining messages. Waits
   * while this process removes or takes over many other logs, because the bus drops requests of which too many wait.
   */
  async remove(sequences: readonly number[]): Promise<void> {
    const { jetstream, readLimits } = this.#bus;
    const owner = firstTwoTokens(this.#subject);
    for (const sequence of sequences) {
      const remove = () => jetstream.streams.deleteMessage(this.#stream, sequence, false);
      await readLimits.logs.run(owner, () => this.#bus.whileConnected(remove));
    }
  }

  /**
   * Reads the messages up to `last`, which is surely stored. If a replica lags or a message of an answer is lost, the
   * read is repeated.
   */
  async #read(last: LogMessage): Promise<LogMessage[]> {
    const messages: LogMessage[] = [];
    let giveUpAt = performance.now() + BUS_REQUEST_MS;
    for (;;) {
      const before = messages.length;
      if (await this.#readOn(messages, last)) return messages;
      if (messages.length > before) giveUpAt = performance.now() + BUS_REQUEST_MS;
      else if (performance.now() > giveUpAt)
        throw new Error(`Cannot read ${this.#subject} to its end`);
      else await wait(CALL_RETRY_MS_MAX);
    }
  }

  /** Reads the next messages. Returns true when the last message was read. */
  async #readOn(messages: LogMessage[], last: LogMessage): Promise<boolean> {
    const seq = (messages.at(-1)?.sequence ?? 0) + 1;
    const select = { next_by_subj: this.#subject, seq };
    // The end of an answer may be lost or late, too.
    const answer = await readDirect(this.#bus, this.#stream, select).catch((error: unknown) => {
      if (isUnanswered(error)) return undefined;
      throw error;
    });
    for (const { headers, data } of answer?.messages ?? []) {
      const header = (name: string) => headers?.get(name) ?? "";
      const sequence = Number(header("Nats-Sequence"));
      if (sequence > last.sequence) return true;
      messages.push({ sequence, data, header });
      if (sequence === last.sequence) return true;
    }
    return false;
  }
}

interface Stored {
  seq: number;
  data: Uint8Array;
  header: { get(name: string): string };
}

const readStored = ({ seq, data, header }: Stored): LogMessage => ({
  sequence: seq,
  data,
  header: (name) => header.get(name),
});
