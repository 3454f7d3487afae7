/** A queue in which owners, such as accounts, take turns, so that no owner waits for all items of another. */
export class TurnQueue<Owner, Item> {
  /** The items of each owner, the oldest first. The owners are in the order of their turns. */
  readonly #items = new Map<Owner, Item[]>();
  #size = 0;
  /** The owner that had the last turn. */
  #last: Owner | undefined;

  /** The items of all owners. */
  get size(): number {
    return this.#size;
  }

  push(owner: Owner, item: Item): void {
    const items = this.#items.get(owner);
    if (items) items.push(item);
    else this.#items.set(owner, [item]);
    this.#size += 1;
  }

  /** Removes and returns the oldest item of the owner whose turn is next. */
  shift(): Item | undefined {
    this.#moveLastOwnerBack();
    const [first] = this.#items;
    if (!first) return undefined;
    const [owner, items] = first;
    const item = items.shift();
    if (items.length === 0) this.#items.delete(owner);
    this.#size -= 1;
    this.#last = owner;
    return item;
  }

  /** Removes an item that no longer waits. Returns false if it is not in the queue. */
  remove(owner: Owner, item: Item): boolean {
    const items = this.#items.get(owner) ?? [];
    const index = items.indexOf(item);
    if (index < 0) return false;
    items.splice(index, 1);
    if (items.length === 0) this.#items.delete(owner);
    this.#size -= 1;
    return true;
  }

  /** Removes and returns all items. */
  clear(): Item[] {
    const items = [...this.#items.values()].flat();
    this.#items.clear();
    this.#size = 0;
    return items;
  }

  /**
   * The owner that had the last turn moves behind all others only now. So owners that came during its turn are served
   * before its next one.
   */
  #moveLastOwnerBack(): void {
    const owner = this.#last;
    this.#last = undefined;
    const items = owner === undefined ? undefined : this.#items.get(owner);
    if (owner === undefined || !items) return;
    this.#items.delete(owner);
    this.#items.set(owner, items);
  }
}
