/**
 * A stream that exists on the bus while a backup is restored. It prevents every role from starting on incomplete
 * data. The restore that holds the mark regularly renews a message in the stream.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream";

export const RESTORE_MARK = "RESTORING";
const SUBJECT = "restoring";
const NO_STREAM = 10059;
const STREAM_EXISTS = 10058;

/** Interval at which a restore renews its message. */
const RENEW_MS = 2_000;
/** A restore that has not renewed its message for this time counts as killed. */
const ABANDONED_MS = 12_000;

export async function isRestoring(jetstream: JetStreamManager): Promise<boolean> {
  try {
    await jetstream.streams.info(RESTORE_MARK);
    return true;
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === NO_STREAM) return false;
    throw error;
  }
}

export async function refuseUnfinishedRestore(jetstream: JetStreamManager): Promise<void> {
  if (!(await isRestoring(jetstream))) return;
  throw new Error(
    "Cannot start: the restore of a backup is under way or was interrupted; wait for it, or run the same trunkline admin restore again, which begins anew",
  );
}

/** Creates the mark's stream, with as many replicas as the data streams. */
export async function markRestore(jetstream: JetStreamManager, replicas: number): Promise<void> {
  const description = "A backup is being restored: see trunkline admin restore";
  try {
    await jetstream.streams.add({
      ...{ name: RESTORE_MARK, subjects: [SUBJECT], description },
      ...{ num_replicas: replicas, max_msgs: 1 },
    });
  } catch (error) {
    // Another restore has just created the stream with a different number of replicas. Only one of the two restores
    // will hold the mark.
    if (!(error instanceof JetStreamApiError) || error.code !== STREAM_EXISTS) throw error;
  }
}

interface HoldOptions {
  renewMs?: number;
  abandonedMs?: number;
}

/**
 * Holds the mark for one restore. Each renewal expects the sequence of the previous renewal, so only one restore can
 * hold the mark.
 */
export class RestoreHold {
  readonly #jetstream: JetStreamManager;
  readonly #id = randomUUID();
  readonly #timer: NodeJS.Timeout;
  #sequence: number;
  #isLost = false;
  #renewing: Promise<unknown> = Promise.resolve();

  private constructor(jetstream: JetStreamManager, sequence: number, renewMs: number) {
    this.#jetstream = jetstream;
    this.#sequence = sequence;
    // Errors are ignored: while the bus is unavailable, a later renewal may succeed.
    this.#timer = setInterval(() => void this.isHeld().catch(() => {}), renewMs);
  }

  /**
   * Takes the mark on the bus. If the mark has the message of another restore, first waits to see whether that
   * restore still renews the message, and rejects if it does.
   */
  static async take(
    jetstream: JetStreamManager,
    { renewMs = RENEW_MS, abandonedMs = ABANDONED_MS }: HoldOptions = {},
  ): Promise<RestoreHold> {
    const { state } = await jetstream.streams.info(RESTORE_MARK);
    if (state.messages > 0) await wait(abandonedMs);
    const hold = new RestoreHold(jetstream, state.last_seq, renewMs);
    try {
      if (await hold.isHeld()) return hold;
    } catch (cause) {
      hold.stop();
      throw cause;
    }
    hold.stop();
    throw new Error("Cannot restore: a restore is under way on this bus; wait for its end");
  }

  /** Renews the mark. Returns false if another restore has taken the mark, or has finished and removed it. */
  isHeld(): Promise<boolean> {
    const renewed = this.#renewing.then(() => this.#renew());
    this.#renewing = renewed.catch(() => {}); // The caller has the error.
    return renewed;
  }

  /** Stops the renewals. The mark stays on the bus. */
  stop(): void {
    clearInterval(this.#timer);
  }

  async #renew(): Promise<boolean> {
    if (this.#isLost) return false;
    const { streams } = this.#jetstream;
    const expect = { lastSequence: this.#sequence };
    try {
      const { seq } = await this.#jetstream.jetstream().publish(SUBJECT, this.#id, { expect });
      this.#sequence = seq;
    } catch {
      if (!(await isRestoring(this.#jetstream))) this.#isLost = true;
      else {
        // The server may have stored the message although the publish failed, so the last message is read.
        const last = await streams.getMessage(RESTORE_MARK, { last_by_subj: SUBJECT });
        this.#isLost = last?.string() !== this.#id;
        this.#sequence = last?.seq ?? this.#sequence;
      }
    }
    return !this.#isLost;
  }
}
