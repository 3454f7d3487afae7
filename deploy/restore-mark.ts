/**
 * A stream that is on the bus while a backup is restored, so that nothing starts on a part of the data. The restore that
 * holds the mark renews a message in it.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream";

export const RESTORE_MARK = "RESTORING";
const SUBJECT = "restoring";
const NO_STREAM = 10059;
const STREAM_EXISTS = 10058;

/** How often a restore renews its message. */
const RENEW_MS = 2_000;
/** A restore that has not renewed its message for this long was killed. */
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

/** Makes the mark, with as many copies as the data. */
export async function markRestore(jetstream: JetStreamManager, replicas: number): Promise<void> {
  const description = "A backup is being restored: see trunkline admin restore";
  try {
    await jetstream.streams.add({
      ...{ name: RESTORE_MARK, subjects: [SUBJECT], description },
      ...{ num_replicas: replicas, max_msgs: 1 },
    });
  } catch (error) {
    // Another restore has just made it with other copies. Only one of the two will hold it.
    if (!(error instanceof JetStreamApiError) || error.code !== STREAM_EXISTS) throw error;
  }
}

interface HoldOptions {
  renewMs?: number;
  abandonedMs?: number;
}

/** Holds the mark for one restore. Each renewal expects the sequence of the last one, so two restores cannot hold it. */
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
    // While the bus is away, a later renewal may reach it.
    this.#timer = setInterval(() => void this.isHeld().catch(() => {}), renewMs);
  }

  /** Takes the mark on the bus. Rejects if another restore holds it; waits for a while to see whether that one still runs. */
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

  /** Renews the mark. False once another restore has it, or has ended with it. */
  isHeld(): Promise<boolean> {
    const renewed = this.#renewing.then(() => this.#renew());
    this.#renewing = renewed.catch(() => {}); // The caller has the error.
    return renewed;
  }

  /** Ends the renewals. The mark stays. */
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
        // The message may be stored although its publication failed.
        const last = await streams.getMessage(RESTORE_MARK, { last_by_subj: SUBJECT });
        this.#isLost = last?.string() !== this.#id;
        this.#sequence = last?.seq ?? this.#sequence;
      }
    }
    return !this.#isLost;
  }
}
