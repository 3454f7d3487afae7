/** Decides which of the imports that a gateway has taken runs next. Accounts take turns. */

/**
 * Imports that one gateway runs at the same time. Each occupies a git process, the disk and the network. One account
 * runs at most all but one of them.
 */
export const IMPORT_SLOTS = 3;

interface AccountImports {
  running: number;
  /** The functions that start the waiting imports, the oldest first. */
  waiting: (() => void)[];
}

export class ImportTurns {
  readonly #slots: number;
  /** The accounts with running or waiting imports. The account whose import ended last is last. */
  readonly #accounts = new Map<string, AccountImports>();
  #running = 0;

  /** `slots` is the number of imports that run at the same time. */
  constructor(slots: number) {
    this.#slots = slots;
  }

  /**
   * Waits for a slot. Resolves with a function that releases the slot. Rejects with the signal's reason if the signal
   * aborts first.
   */
  enter(accountId: string, signal: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const account = this.#accounts.get(accountId) ?? { running: 0, waiting: [] };
      this.#accounts.set(accountId, account);
      const leave = () => {
        account.waiting = account.waiting.filter((other) => other !== start);
        this.#forgetIdle(accountId, account);
        reject(signal.reason);
      };
      const start = () => {
        signal.removeEventListener("abort", leave);
        resolve(() => this.#end(accountId, account));
      };
      signal.addEventListener("abort", leave, { once: true });
      account.waiting.push(start);
      this.#startNext();
    });
  }

  #end(accountId: string, account: AccountImports): void {
    account.running -= 1;
    this.#running -= 1;
    this.#accounts.delete(accountId);
    this.#accounts.set(accountId, account);
    this.#forgetIdle(accountId, account);
    this.#startNext();
  }

  #startNext(): void {
    for (;;) {
      const next = this.#next();
      const start = next?.waiting.shift();
      if (!next || !start) return;
      next.running += 1;
      this.#running += 1;
      start();
    }
  }

  /**
   * Returns the account whose import starts next. The last free slot is for accounts without a running import.
   * Otherwise the slow imports of one account would delay all other accounts.
   */
  #next(): AccountImports | undefined {
    const free = this.#slots - this.#running;
    if (free === 0) return undefined;
    const ready = [...this.#accounts.values()].filter(({ waiting }) => waiting.length > 0);
    return ready.find(({ running }) => running === 0) ?? (free > 1 ? ready[0] : undefined);
  }

  #forgetIdle(accountId: string, { running, waiting }: AccountImports): void {
    if (running === 0 && waiting.length === 0) this.#accounts.delete(accountId);
  }
}
