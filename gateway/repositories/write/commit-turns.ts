/** Runs one gateway's commits to one branch one after the other, so that none starts from an outdated tip. */

export class CommitTurns {
  /** For each branch with running or waiting commits: the end of the last of them. */
  readonly #last = new Map<string, Promise<unknown>>();

  /**
   * Runs the work when all earlier work of this branch has ended. Rejects with the signal's reason if the signal
   * aborts before the work starts.
   */
  async run<T>(branch: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(branch) ?? Promise.resolve();
    const turn = before.then(() => {
      signal.throwIfAborted();
      return work();
    });
    const ended = turn.catch(() => {});
    this.#last.set(branch, ended);
    try {
      return await turn;
    } finally {
      if (this.#last.get(branch) === ended) this.#last.delete(branch);
    }
  }
}
