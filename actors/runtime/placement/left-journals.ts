/** Journals of hosts that may be gone. A journal is removed when its host is gone and no epoch names it. */
import type { Logger } from "pino";
import { SHARD_STARTS_MAX } from "../../../schemas/limits.ts";
import { Semaphore } from "../lib/semaphore.ts";
import { type Epoch, namesJournal } from "./epoch.ts";

interface LeftJournalsParts {
  logger: Logger;
  /** True for this host, and for hosts that are alive as far as this host knows. */
  isAlive(host: string): boolean;
  /**
   * True if this host must remove the journal. One host is chosen, because otherwise every host would read all epochs
   * after each death.
   */
  isMine(host: string): boolean;
  /** Asks the leader whether the lease of a host has ended. */
  isGone(host: string): Promise<boolean>;
  /** The epochs as far as this host knows. */
  known(): Iterable<Epoch>;
  /** The number of shards. */
  shards: number;
  /** Reads the epoch of a shard from the leader. */
  readEpoch(shard: number): Promise<Epoch>;
  /** Asks the leaders of the streams of journals and of state whether anything of the journal is stored. */
  exists(host: string): Promise<boolean>;
  remove(host: string): Promise<void>;
  /** Frees the memory of a journal that this host has read and that another host removes. */
  release(host: string): void;
}

export class LeftJournals {
  readonly #hosts = new Set<string>();
  /** True if members or epochs have changed since the last removal, or if a removal must be retried. */
  #mayRemove = true;
  #isRemoving = false;
  readonly #parts: LeftJournalsParts;

  constructor(parts: LeftJournalsParts) {
    this.#parts = parts;
  }

  add(host: string): void {
    this.#hosts.add(host);
  }

  /** Called when a member or an epoch has changed, because another journal may be unneeded now. */
  changed(): void {
    this.#mayRemove = true;
  }

  /** Removes the journals that nobody needs. Does nothing while another call runs. Never rejects. */
  async removeUnnamed(): Promise<void> {
    if (!this.#mayRemove || this.#isRemoving) return;
    this.#mayRemove = false;
    this.#isRemoving = true;
    if (await this.#removeOnce()) this.#mayRemove = true;
    this.#isRemoving = false;
  }

  /** Returns true if the removal must be tried again, even if no member and no epoch changes until then. */
  async #removeOnce(): Promise<boolean> {
    const { logger, remove } = this.#parts;
    let isLeft = false;
    try {
      const gone = await this.#goneHosts();
      isLeft = gone.isLeft;
      if (gone.hosts.length === 0) return isLeft;
      // The epochs that this host knows may be old. Only the leaders can prove that no epoch names a host that is
      // gone. Such a host takes no more shards, so epochs that are read after its end prove this for all journals.
      const epochs = await this.#readEpochs();
      for (const host of gone.hosts) {
        if (epochs.some((epoch) => namesJournal(epoch, host))) {
          isLeft = true;
          continue;
        }
        await remove(host);
        this.#hosts.delete(host);
      }
    } catch (error) {
      logger.warn({ err: error }, "journals not removed, will try again");
      return true;
    }
    return isLeft;
  }

  #readEpochs(): Promise<Epoch[]> {
    const { shards, readEpoch } = this.#parts;
    const reads = new Semaphore(SHARD_STARTS_MAX);
    return Promise.all(
      Array.from({ length: shards }, (_, shard) => reads.run(() => readEpoch(shard))),
    );
  }

  /** Returns the hosts that are gone and whose journals this host must remove. Forgets hosts that have no journal. */
  async #goneHosts(): Promise<{ hosts: string[]; isLeft: boolean }> {
    const { isAlive, isMine, isGone, known, exists, release } = this.#parts;
    const hosts: string[] = [];
    let isLeft = false;
    for (const host of this.#hosts) {
      if (isAlive(host) || [...known()].some((epoch) => namesJournal(epoch, host))) continue;
      if (!isMine(host)) release(host);
      else if (!(await isGone(host))) isLeft = true;
      else if (await exists(host)) hosts.push(host);
      else this.#hosts.delete(host);
    }
    return { hosts, isLeft };
  }
}
