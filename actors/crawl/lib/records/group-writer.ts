/** Writes items in groups: items that arrive during a write go together into the next one. */

/** Writes a group. Resolves with a function that returns the result of each of its items. */
type WriteGroup<T, R> = (items: T[]) => Promise<(item: T) => R>;

interface Waiting<T, R> extends Pick<PromiseWithResolvers<R>, "resolve" | "reject"> {
  item: T;
}

export class GroupWriter<T, R> {
  readonly #write: WriteGroup<T, R>;
  readonly #groupMax: number;
  #waiting: Waiting<T, R>[] = [];
  #writing = false;

  constructor(write: WriteGroup<T, R>, groupMax: number) {
    this.#write = write;
    this.#groupMax = groupMax;
  }

  /** Resolves with the item's result when it is written. Rejects if its group fails. */
  add(item: T): Promise<R> {
    const { promise, resolve, reject } = Promise.withResolvers<R>();
    this.#waiting.push({ item, resolve, reject });
    if (!this.#writing) void this.#run();
    return promise;
  }

  async #run(): Promise<void> {
    this.#writing = true;
    // Items of the same tick join the group.
    await undefined;
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, this.#groupMax);
      try {
        const resultOf = await this.#write(group.map(({ item }) => item));
        for (const { item, resolve } of group) resolve(resultOf(item));
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    this.#writing = false;
  }
}
