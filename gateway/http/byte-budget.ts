/**
 * Limits the bytes that one gateway holds in memory for one purpose, such as the bodies of requests. Each owner, such
 * as an account, has a share, so that one owner cannot use all of the memory. Small bodies have a reserve of their
 * own, so that large bodies cannot keep them out.
 */
import type { ActorError } from "../../schemas/errors.ts";
import { SMALL_BODIES_BYTES_MAX, SMALL_BODY_BYTES_MAX } from "../../schemas/memory-limits.ts";

export interface ByteLimits {
  /** Limit for the bytes outside the reserve. */
  bytesMax: number;
  /** Limit for the bytes in the reserve; defaults to SMALL_BODIES_BYTES_MAX. */
  smallBytesMax?: number;
  /** The share of each level of owners, between 0 and 1. The first level is the account. */
  shares: readonly number[];
  /** Creates the error for bytes that have no room. */
  refusal: () => ActorError;
}

/** The bytes of one body or response. They count until they are released. */
export interface HeldBytes extends Disposable {
  /** Counts more bytes. Throws the budget's refusal if they have no room. */
  take(bytes: number): void;
  /** Counts more bytes, also if they have no room. */
  count(bytes: number): void;
  /** Stops counting all bytes. May be called again. */
  release(): void;
}

export class ByteBudget {
  readonly #small: Pool;
  readonly #large: Pool;
  readonly #refusal: () => ActorError;

  constructor(limits: ByteLimits) {
    const { bytesMax, smallBytesMax = SMALL_BODIES_BYTES_MAX, shares, refusal } = limits;
    this.#small = new Pool(smallBytesMax, shares);
    this.#large = new Pool(bytesMax, shares);
    this.#refusal = refusal;
  }

  get bytes(): number {
    return this.#small.bytes + this.#large.bytes;
  }

  /**
   * Opens a count for these owners, one for each level of shares. Throws the refusal if the declared bytes have no
   * room now. They are not counted, because the client may never send them.
   */
  open(owners: readonly string[], declaredBytes = 0): HeldBytes {
    let bytes = 0;
    let pool = this.#small;
    const roomFor = (wanted: number) =>
      this.#poolsFor(wanted).find((one) => one.hasRoom(owners, wanted, one === pool ? bytes : 0));
    const move = (to: Pool, wanted: number) => {
      pool.add(owners, -bytes);
      to.add(owners, wanted);
      [pool, bytes] = [to, wanted];
    };
    const release = () => move(this.#small, 0);
    if (!roomFor(declaredBytes)) throw this.#refusal();
    return {
      take: (more) => {
        const room = roomFor(bytes + more);
        if (!room) throw this.#refusal();
        move(room, bytes + more);
      },
      count: (more) => move(roomFor(bytes + more) ?? this.#large, bytes + more),
      release,
      [Symbol.dispose]: release,
    };
  }

  /**
   * Throws the refusal if counted bytes already exceed a limit. This is for a request whose response is counted
   * without a refusal, so an owner may be past its share for long, and is refused only while half of all bytes are used. If only the limit for all owners is exceeded, an owner without large bytes is not refused.
   */
  checkOwed(owners: readonly string[]): void {
    if (this.#large.isExceededBy(owners)) throw this.#refusal();
  }

  /** A small body may also use the room of large ones. */
  #poolsFor(bytes: number): Pool[] {
    return bytes <= SMALL_BODY_BYTES_MAX ? [this.#small, this.#large] : [this.#large];
  }
}

class Pool {
  readonly #bytesMax: number;
  readonly #shares: readonly number[];
  readonly #ofOwners = new Map<string, number>();
  #bytes = 0;

  constructor(bytesMax: number, shares: readonly number[]) {
    this.#bytesMax = bytesMax;
    this.#shares = shares;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Returns whether a body fits with `bytes` in all. This pool already counts `own` of them. */
  hasRoom(owners: readonly string[], bytes: number, own: number): boolean {
    return (
      fits(this.#bytes - own, bytes, this.#bytesMax) &&
      owners.every((owner, level) => fits(this.#of(owner) - own, bytes, this.#shareAt(level)))
    );
  }

  isExceededBy(owners: readonly string[]): boolean {
    const isOver = owners.some((owner, level) => this.#of(owner) > this.#shareAt(level));
    const isHalfUsed = this.#bytes > this.#bytesMax / 2;
    return (
      (isOver && isHalfUsed) ||
      (this.#bytes > this.#bytesMax && owners.some((owner) => this.#of(owner) > 0))
    );
  }

  add(owners: readonly string[], bytes: number): void {
    if (bytes === 0) return;
    this.#bytes += bytes;
    for (const owner of owners) {
      const sum = this.#of(owner) + bytes;
      if (sum === 0) this.#ofOwners.delete(owner);
      else this.#ofOwners.set(owner, sum);
    }
  }

  #of(owner: string): number {
    return this.#ofOwners.get(owner) ?? 0;
  }

  #shareAt(level: number): number {
    return this.#bytesMax * (this.#shares[level] ?? 1);
  }
}

/** A body that is the only one always fits, because an operator may set a limit for bodies that is above a share. */
const fits = (others: number, bytes: number, bytesMax: number) =>
  others === 0 || others + bytes <= bytesMax;
