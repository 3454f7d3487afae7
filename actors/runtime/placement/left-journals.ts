/** Journals of hosts that may be gone. A journal is removed when its host is gone and no epoch names it. */
import type { Logger } from "pino";
import { type Epoch, namesJournal } from "./epoch.ts";

interface LeftJournalsParts {
  logger: Logger;
  /** True for this host, and for hosts that are alive as far as this host knows. */
  isAlive(host: string): boolean;
  /** True if this host is to remove the journal: otherwise each host would read all epochs after each death. */
  isMine(host: string): boolean;
  /** Asks the leader whether the lease of a host has ended. */
  isGone(host: string): Promise<boolean>;
  /** The epochs as far as this host knows. */
  known(): Iterable<Epoch>;
  /** Reads the epochs of all shards from the leaders. */
  readAll(): Promise<readonly Epoch[]>;
  remove(host: string): Promise<void>;
}

export class LeftJournals {
  readonly #hosts = new Set<string>();
  readonly #parts: LeftJournalsParts;

  constructor(parts: LeftJournalsParts) {
    this.#parts = parts;
  }

  add(host: string): void {
    this.#hosts.add(host);
  }

  /**
   * Removes the journals that nobody needs. Returns true if one is left that may be removed later, although no host joins
   * or ends and no epoch changes.
   */
  async removeUnnamed(): Promise<boolean> {
    const { logger, isAlive, isMine, isGone, known, readAll, remove } = this.#parts;
    let isLeft = false;
    for (const host of this.#hosts) {
      const isNamed = (epoch: Epoch) => namesJournal(epoch, host);
      if (isAlive(host) || !isMine(host) || [...known()].some(isNamed)) continue;
      try {
        // What this host knows may be old: only the leaders know that no epoch names a host that is gone.
        if (!(await isGone(host)) || (await readAll()).some(isNamed)) {
          isLeft = true;
          continue;
        }
        await remove(host);
        this.#hosts.delete(host);
      } catch (error) {
        logger.warn({ err: error, host }, "journal not removed, will try again");
        isLeft = true;
      }
    }
    return isLeft;
  }
}
