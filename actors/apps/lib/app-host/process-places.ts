/**
 * Counts the app processes of one host, with those that only check a version. Each account has a share, so that one
 * account cannot keep the apps of all others from starting.
 */
import { readAppKey } from "../../../../schemas/apps/app-names.ts";
import { APP_PROCESSES_MAX } from "../../../../schemas/apps/limits.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import { SharedSlots } from "../../../runtime/lib/shared-slots.ts";

/** One account's share of the processes. The rest is for other accounts. */
const PROCESSES_ACCOUNT_SHARE = 0.75;

/** Returns the limit for the processes of one account, when all accounts together have `max`. */
export function processesOfAccountMax(max = APP_PROCESSES_MAX): number {
  return Math.max(1, Math.floor(max * PROCESSES_ACCOUNT_SHARE));
}

/** A process that nothing uses. */
export interface IdleProcess {
  /** The key of its app. */
  key: string;
  /** Monotonic time since which nothing uses it; undefined if that was noticed only now. */
  idleSince: number | undefined;
  /** Ends the process and releases its place. */
  giveWay(): void;
}

export class ProcessPlaces {
  readonly #max: number;
  readonly #slots: SharedSlots<string>;

  constructor(max = APP_PROCESSES_MAX) {
    this.#max = max;
    this.#slots = new SharedSlots({ max, perOwner: processesOfAccountMax(max) });
  }

  /**
   * Takes a place for a process of this app. If there is none, an idle process gives way: the one that has been idle
   * longest, of the same account if there is one. Returns a function that releases the place. Throws ActorError
   * `busy`.
   */
  take(key: string, idle: () => readonly IdleProcess[]): () => void {
    const { accountId } = readAppKey(key);
    const free = this.#slots.tryTake(accountId);
    if (free) return free;
    const candidates = idle().toSorted(
      (one, other) => (one.idleSince ?? Infinity) - (other.idleSince ?? Infinity),
    );
    const own = candidates.find((one) => readAppKey(one.key).accountId === accountId);
    const hasShare = this.#slots.takenBy(accountId) >= processesOfAccountMax(this.#max);
    (own ?? (hasShare ? undefined : candidates[0]))?.giveWay();
    const place = this.#slots.tryTake(accountId);
    if (place) return place;
    const running = hasShare
      ? `${processesOfAccountMax(this.#max)} of its account`
      : `${this.#max} of them`;
    const text = `Cannot start the app: its host runs ${running}`;
    throw new ActorError("busy", text, { retryAfterS: 1 });
  }
}
