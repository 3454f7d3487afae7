/**
 * Counts the slots of a limit that several owners, such as accounts, share. An owner without room is refused; see
 * `FairSemaphore` for work that waits.
 */

export interface SlotLimits {
  /** Slots of all owners together. */
  max: number;
  /** Slots of one owner. Defaults to `max`. */
  perOwner?: number;
  /**
   * Slots that an owner with all of its own leaves to other owners. An owner that has fewer slots leaves fewer, and
   * an owner without a slot may take the last one. Defaults to 0.
   */
  keptFree?: number;
  /** Slots that an owner with any slot leaves to owners without one. Defaults to 0. */
  reserved?: number;
}

export class SharedSlots<Owner> {
  readonly #limits: Required<SlotLimits>;
  readonly #ofOwners = new Map<Owner, number>();
  #taken = 0;

  constructor(limits: SlotLimits) {
    this.#limits = { perOwner: limits.max, keptFree: 0, reserved: 0, ...limits };
  }

  get taken(): number {
    return this.#taken;
  }

  get isFull(): boolean {
    return this.#taken >= this.#limits.max;
  }

  /** True if every owner may take a slot now. */
  get isOpenToAll(): boolean {
    return !this.isFull && [...this.#ofOwners.keys()].every((owner) => this.#hasRoom(owner));
  }

  takenBy(owner: Owner): number {
    return this.#ofOwners.get(owner) ?? 0;
  }

  /** Takes a slot if this owner may have one now. Returns a function that releases the slot and may be called again. */
  tryTake(owner: Owner): (() => void) | undefined {
    if (!this.#hasRoom(owner)) return undefined;
    this.#count(owner, 1);
    let isHeld = true;
    return () => {
      if (isHeld) this.#count(owner, -1);
      isHeld = false;
    };
  }

  #hasRoom(owner: Owner): boolean {
    const { max, perOwner, keptFree, reserved } = this.#limits;
    const taken = this.takenBy(owner);
    // The more slots an owner has, the more it leaves to owners that have fewer.
    const left = taken === 0 ? 0 : Math.max(reserved, Math.floor((keptFree * taken) / perOwner));
    return taken < perOwner && this.#taken + left < max;
  }

  #count(owner: Owner, change: 1 | -1): void {
    this.#taken += change;
    const count = this.takenBy(owner) + change;
    if (count > 0) this.#ofOwners.set(owner, count);
    else this.#ofOwners.delete(owner);
  }
}
