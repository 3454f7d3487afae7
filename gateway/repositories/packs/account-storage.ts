/**
 * Enforces the storage limit of an account. Large uploads reserve space first; small uploads are counted together.
 */
import { randomBytes } from "node:crypto";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { callsOf } from "../../../actors/runtime/calls/call-places.ts";
import {
  accountFull,
  type GitStored,
  gitStorage,
} from "../../../schemas/repositories/git-storage.ts";
import { GIT_NAMES_KEPT } from "../../../schemas/repositories/limits.ts";

/**
 * Uploads of GIT_STORED_SMALL_BYTES or more reserve space first. Smaller uploads are counted together every
 * GIT_STORED_REPORT_MS.
 */
const GIT_STORED_SMALL_BYTES = 1024 * 1024;
const GIT_STORED_REPORT_MS = 1_000;
/**
 * Upkeep may store bytes up to this multiple of the account's limit, because the packs that it replaces stay for some
 * hours. So an account at its limit can store each of its packs once more.
 */
export const UPKEEP_BYTES_FACTOR = 2;
/** How long a gateway uses a cached count of an account's bytes. Small packs may exceed the limit meanwhile. */
const GIT_STORED_KNOWN_MS = 10_000;

interface Known {
  /** The latest reply of the actor, and the time of this reply. */
  stored: GitStored;
  at: number;
  /** Bytes that this gateway has stored but not reported yet. */
  untold: number;
}

export interface StoredThing {
  accountId: string;
  bytes: number;
  /**
   * True for a pack of upkeep, which replaces other packs and so frees bytes. It may pass the limit, up to
   * UPKEEP_BYTES_FACTOR times the limit; a small one passes any limit.
   */
  isUpkeep?: boolean | undefined;
}

const NOTHING: GitStored = { bytes: 0, heldBytes: 0 };

export class AccountStorage {
  readonly #actors: Pick<ActorClient, "call" | "send">;
  readonly #now: () => number;
  readonly #bytesMax: () => number;
  /** The counts by account. The account whose count was read last is at the end. */
  readonly #known = new Map<string, Known>();
  #telling: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;

  /** `bytesMax` returns the limit, which may grow; 0 means no limit. */
  constructor(
    actors: Pick<ActorClient, "call" | "send">,
    { now, bytesMax }: { now: () => number; bytesMax: () => number },
  ) {
    this.#actors = actors;
    this.#now = now;
    this.#bytesMax = bytesMax;
  }

  /**
   * Stores something by `put`, and counts its bytes if it was not stored before. Refuses with `storage_full` past the
   * limit.
   */
  async store<S extends { wasThere?: boolean }>(
    thing: StoredThing,
    put: () => Promise<S>,
    signal: AbortSignal,
  ): Promise<S> {
    const { accountId, bytes, isUpkeep = false } = thing;
    if (bytes >= GIT_STORED_SMALL_BYTES) return await this.#storeLarge(thing, put, signal);
    if (!isUpkeep && bytes > (await this.freeBytes(accountId, signal))) {
      throw accountFull(await this.get(accountId, signal), this.bytesMax);
    }
    const stored = await put();
    if (stored.wasThere === false) this.#count(accountId, bytes);
    return stored;
  }

  /**
   * Returns the bytes that the account may still store, as far as this gateway knows. The result is negative if the
   * account is past its limit.
   */
  async freeBytes(accountId: string, signal: AbortSignal): Promise<number> {
    if (this.bytesMax === 0) return Number.POSITIVE_INFINITY;
    const { bytes, heldBytes } = await this.get(accountId, signal);
    return this.bytesMax - bytes - heldBytes;
  }

  /** Returns the bytes that the account stores, including those that this gateway has not reported yet. */
  async get(accountId: string, signal: AbortSignal): Promise<GitStored> {
    let known = this.#known.get(accountId);
    if (!known || Math.abs(this.#now() - known.at) >= GIT_STORED_KNOWN_MS) {
      this.#learn(accountId, await this.#actors.call(gitStorage, accountId, "get", {}, { signal }));
      known = this.#known.get(accountId);
    }
    const { stored = NOTHING, untold = 0 } = known ?? {};
    return { ...stored, bytes: stored.bytes + untold };
  }

  get bytesMax(): number {
    return this.#bytesMax();
  }

  /** Sends all counts. Resolves when each count is sent or has failed. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#telling;
    await this.#report(AbortSignal.timeout(GIT_STORED_REPORT_MS));
    clearTimeout(this.#timer);
  }

  async #storeLarge<S extends { wasThere?: boolean }>(
    { accountId, bytes, isUpkeep = false }: StoredThing,
    put: () => Promise<S>,
    signal: AbortSignal,
  ): Promise<S> {
    const id = randomBytes(16).toString("hex");
    const bytesMax = (isUpkeep ? UPKEEP_BYTES_FACTOR : 1) * this.bytesMax;
    const hold = { id, bytes, bytesMax };
    this.#learn(
      accountId,
      await this.#actors.call(gitStorage, accountId, "hold", hold, { signal }),
    );
    let isStored = false;
    try {
      const stored = await put();
      isStored = stored.wasThere === false;
      return stored;
    } finally {
      // If this report is lost, the reservation expires after a while.
      const settled = { id, bytes, stored: isStored };
      this.#actors.send(gitStorage, accountId, "settle", settled).catch(() => {});
    }
  }

  #learn(accountId: string, stored: GitStored): void {
    const { untold = 0 } = this.#known.get(accountId) ?? {};
    this.#known.delete(accountId);
    this.#known.set(accountId, { stored, at: this.#now(), untold });
    for (const [oldest, known] of this.#known) {
      if (this.#known.size <= GIT_NAMES_KEPT) break;
      if (known.untold === 0) this.#known.delete(oldest);
    }
  }

  #count(accountId: string, bytes: number): void {
    const known = this.#known.get(accountId) ?? { stored: NOTHING, at: -Infinity, untold: 0 };
    this.#known.set(accountId, { ...known, untold: known.untold + bytes });
    this.#reportSoon();
  }

  #reportSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#telling = this.#report();
    }, GIT_STORED_REPORT_MS).unref();
  }

  /** Sends the counts. Counts that cannot be sent now are sent later. */
  async #report(signal?: AbortSignal): Promise<void> {
    const unreported = [...this.#known].filter(([, known]) => known.untold > 0);
    const options = signal ? { signal } : {};
    const reports = unreported.map(async ([accountId, { untold: bytes }]) => {
      try {
        // The timer began in the request of any account.
        const owner = { accountId, isVisitor: false };
        const stored = await callsOf(owner, () =>
          this.#actors.call(gitStorage, accountId, "add", { bytes }, options),
        );
        this.#subtractReported(accountId, bytes);
        this.#learn(accountId, stored);
      } catch {
        this.#reportSoon();
      }
    });
    await Promise.all(reports);
  }

  #subtractReported(accountId: string, bytes: number): void {
    const known = this.#known.get(accountId);
    if (known) this.#known.set(accountId, { ...known, untold: known.untold - bytes });
  }
}
