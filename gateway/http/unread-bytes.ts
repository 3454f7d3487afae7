/**
 * Limits the bytes that the clients of one account make a gateway hold: messages that they have not read yet, and
 * messages of theirs that nobody has taken yet. Other accounts have limits of their own.
 */

export class UnreadBytes {
  readonly #accounts: Accounts;

  /** `max` is the limit for all clients of one account together. */
  constructor(max: number) {
    this.#accounts = { max, byId: new Map() };
  }

  /** Bytes that the clients of an account hold. */
  of(accountId: string): number {
    return this.#accounts.byId.get(accountId)?.bytes ?? 0;
  }

  /** Counts the bytes of one client. `cutOff` must release the memory of all that the client holds. */
  client(accountId: string, cutOff: () => void): UnreadClient {
    return new UnreadClient(this.#accounts, accountId, cutOff);
  }

  /**
   * Counts a message that is about to be written to a client of which nothing else is counted. Returns a function that
   * removes the message.
   */
  add(accountId: string, bytes: number, cutOff: () => void): () => void {
    return this.client(accountId, cutOff).hold(bytes);
  }
}

interface Accounts {
  max: number;
  /** The accounts whose clients hold bytes. */
  byId: Map<string, Account>;
}

interface Hold {
  bytes: number;
  shared: Uint8Array | undefined;
}

/** The bytes of the clients of one account. */
class Account {
  readonly #max: number;
  /** How many holds there are of the content that several clients may hold. */
  readonly #shared = new Map<Uint8Array, number>();
  /** The clients that hold bytes. Those that released some most recently are last. */
  readonly clients = new Set<UnreadClient>();
  bytes = 0;

  constructor(max: number) {
    this.#max = max;
  }

  add({ bytes, shared }: Hold): void {
    this.bytes += bytes;
    if (!shared) return;
    const holds = this.#shared.get(shared) ?? 0;
    this.#shared.set(shared, holds + 1);
    if (holds === 0) this.bytes += shared.length;
  }

  remove({ bytes, shared }: Hold): void {
    this.bytes -= bytes;
    if (!shared) return;
    const holds = (this.#shared.get(shared) ?? 1) - 1;
    if (holds > 0) this.#shared.set(shared, holds);
    else {
      this.#shared.delete(shared);
      this.bytes -= shared.length;
    }
  }

  /**
   * Past the limit, cuts off the clients that have released nothing for the longest time: they have stopped reading.
   * The last client remains, because a single message may be larger than the limit.
   */
  limit(): void {
    for (const oldest of this.clients) {
      if (this.bytes <= this.#max || this.clients.size === 1) return;
      oldest.cutOff();
    }
  }
}

/** The bytes that a gateway holds because of one client. Without any, it costs little memory. */
export class UnreadClient {
  readonly #accounts: Accounts;
  readonly #accountId: string;
  readonly #whenCutOff: () => void;
  #holds: Set<Hold> | undefined;
  #account: Account | undefined;
  #isCutOff = false;

  constructor(accounts: Accounts, accountId: string, whenCutOff: () => void) {
    this.#accounts = accounts;
    this.#accountId = accountId;
    this.#whenCutOff = whenCutOff;
  }

  /**
   * Counts bytes until the returned function is called. `shared` is content that other clients of the account may hold
   * too. It counts one time, in addition to `bytes`. Past the limit, cuts off clients, perhaps also this one.
   */
  hold(bytes: number, shared?: Uint8Array): () => void {
    if (this.#isCutOff) return ignore;
    const hold = { bytes, shared };
    this.#holds ??= new Set();
    this.#holds.add(hold);
    const { byId, max } = this.#accounts;
    const account = this.#account ?? byId.get(this.#accountId) ?? new Account(max);
    byId.set(this.#accountId, account);
    this.#account = account;
    account.clients.add(this);
    account.add(hold);
    account.limit();
    return () => this.#release(hold);
  }

  /** Counts nothing of this client any more, and releases what it holds. */
  cutOff(): void {
    this.#isCutOff = true;
    const holds = this.#holds ?? [];
    this.#holds = undefined;
    for (const hold of holds) this.#account?.remove(hold);
    this.#leave();
    this.#whenCutOff();
  }

  #release(hold: Hold): void {
    if (!this.#holds?.delete(hold)) return;
    const account = this.#account;
    account?.remove(hold);
    // The client goes to the end, because it reads. Clients that do not are cut off before it.
    account?.clients.delete(this);
    if (this.#holds.size > 0) account?.clients.add(this);
    else this.#leave();
  }

  #leave(): void {
    const account = this.#account;
    this.#account = undefined;
    this.#holds = undefined;
    account?.clients.delete(this);
    if (account?.clients.size === 0) this.#accounts.byId.delete(this.#accountId);
  }
}

function ignore(): void {}
