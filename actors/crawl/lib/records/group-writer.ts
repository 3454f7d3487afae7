/** Writes items in groups: items that arrive during a write go together into the next one. */

interface Waiting<T> {
  item: T;
  settled(error?: unknown): void;
}

export class GroupWriter<T> {
  readonly #write: (items: T[]) => Promise<void>;
  readonly #groupMax: number;
  #waiting: Waiting<T>[] = [];
  #writing = false;

  constructor(write: (items: T[]) => Promise<void>, groupMax: number) {
    this.#write = write;
    this.#groupMax = groupMax;
  }

  /** Resolves when the item is written. Rejects if its group fails. */
  add(item: T): Promise<void> {
    return new Promise((resolve, reject) => {
      const settled = (error?: unknown) => (error === undefined ? resolve() : reject(error));
      this.#waiting.push({ item, settled });
      if (!this.#writing) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#writing = true;
    // Items of the same tick join the group.
    await undefined;
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, this.#groupMax);
      const error = await this.#write(group.map(({ item }) => item)).then(
        () => undefined,
        (cause: unknown) => cause ?? new Error("Cannot write"),
      );
      for (const { settled } of group) settled(error);
    }
    this.#writing = false;
  }
}
