/**
 * The places of one shard's mail in a host's memory, from its delivery until it is handled. Each key has a share of
 * them. The kinds that run an app's code have half of them together, because an app may take long to open or to answer.
 */

/** Limits the mail of one shard that is being handled. */
export const MAIL_IN_FLIGHT_MAX = 1_000;
/** Limits the mail of one key. */
export const MAIL_OF_KEY_MAX = 250;
/** Limits the mail to hosted kinds (`defineHosted`). */
export const MAIL_OF_HOSTED_MAX = MAIL_IN_FLIGHT_MAX / 2;
/** Limits the part of it that the keys of one account have. */
export const MAIL_OF_ACCOUNT_MAX = MAIL_OF_HOSTED_MAX / 2;

export interface Receiver {
  subject: string;
  kind: string;
  key: string;
  /** The account of an app, whose code handles the mail. Undefined for kinds of the platform. */
  account: string | undefined;
}

export class MailInFlight {
  readonly #ofKey = new Counts();
  readonly #ofAccount = new Counts();
  #ofHosted = 0;

  /** Returns whether the shares to which mail of this receiver belongs have room. */
  hasRoomFor({ subject, account }: Receiver): boolean {
    if (this.#ofKey.of(subject) >= MAIL_OF_KEY_MAX) return false;
    if (account === undefined) return true;
    return this.#ofHosted < MAIL_OF_HOSTED_MAX && this.#ofAccount.of(account) < MAIL_OF_ACCOUNT_MAX;
  }

  /** Takes a place for one message. */
  enter(receiver: Receiver): void {
    this.#count(receiver, 1);
  }

  leave(receiver: Receiver): void {
    this.#count(receiver, -1);
  }

  #count({ subject, account }: Receiver, change: number): void {
    this.#ofKey.add(subject, change);
    if (account === undefined) return;
    this.#ofHosted += change;
    this.#ofAccount.add(account, change);
  }
}

/**
 * Counts by name. Names without a count take no memory. It is no `SharedSlots`, because mail needs room in several
 * shares before it counts in any.
 */
class Counts {
  readonly #counts = new Map<string, number>();

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  add(name: string, change: number): void {
    const count = this.of(name) + change;
    if (count === 0) this.#counts.delete(name);
    else this.#counts.set(name, count);
  }
}
