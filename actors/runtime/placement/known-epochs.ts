/** The epochs of all shards, as this host has read, heard and written them. */
import type { Logger } from "pino";
import { writeAtomically } from "../bus/atomic-batch.ts";
import type { Bus } from "../bus/bus.ts";
import type { StateStore } from "../state/state-store.ts";
import { Epoch, encodeEpoch, NOBODY } from "./epoch.ts";

export interface KnownEpoch extends Epoch {
  sequence: number;
}

interface KnownEpochsParts {
  bus: Bus;
  logger: Logger;
  /** The bucket that holds the shard. */
  storeOf(shard: number): StateStore;
  /** Called for each epoch that is newer than the known one and that this host has not written. */
  learned(shard: number, epoch: KnownEpoch): void;
}

export class KnownEpochs {
  readonly #parts: KnownEpochsParts;
  readonly #epochs = new Map<number, KnownEpoch>();

  constructor(parts: KnownEpochsParts) {
    this.#parts = parts;
  }

  get(shard: number): KnownEpoch | undefined {
    return this.#epochs.get(shard);
  }

  all(): Iterable<KnownEpoch> {
    return this.#epochs.values();
  }

  learn(shard: number, epoch: KnownEpoch): void {
    const known = this.#epochs.get(shard);
    if (known && known.sequence >= epoch.sequence) return;
    this.#epochs.set(shard, epoch);
    this.#parts.learned(shard, epoch);
  }

  /** Writes an epoch if the stored one still has the sequence `expected`. Returns the sequence of the new epoch. */
  async write(shard: number, epoch: Epoch, expected: number): Promise<number> {
    const { bus, storeOf } = this.#parts;
    const subject = storeOf(shard).subjects.epoch(shard);
    const payload = encodeEpoch(epoch);
    const sequence = await writeAtomically(bus, [
      { subject, payload, expect: { sequence: expected } },
    ]);
    // The news of a later epoch, by which another host took the shard, may come before the answer to this write.
    if ((this.#epochs.get(shard)?.sequence ?? 0) < sequence) {
      this.#epochs.set(shard, { ...epoch, sequence });
    }
    return sequence;
  }

  /** Reads an epoch from the leader. */
  async read(shard: number): Promise<KnownEpoch> {
    const store = this.#parts.storeOf(shard);
    const { sequence, text } = await store.read(store.subjects.epoch(shard));
    return { ...(text === undefined ? NOBODY : Epoch.parse(JSON.parse(text))), sequence };
  }

  /** Reads the epoch from the store: a write with an unknown outcome may have been stored, or lost to another host. */
  async relearn(shard: number): Promise<void> {
    try {
      this.learn(shard, await this.read(shard));
    } catch (error) {
      this.#parts.logger.debug({ err: error, shard }, "epoch not read");
    }
  }
}
