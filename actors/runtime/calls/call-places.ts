/**
 * Limits the calls that a client has in flight. Each account has a share of them, so that the requests of one account
 * do not refuse those of all others.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { ActorError } from "../../../schemas/errors.ts";
import { SharedSlots } from "../lib/shared-slots.ts";

/** Limits the calls that a client may have in flight. Further calls are refused. */
export const CLIENT_CALLS_MAX = 16_384;
/**
 * One account's share of these calls. The rest is for other accounts, and the fewer calls an account has, the more of
 * the rest it may take. Without visitors, the tokens of an account do not fill its share in one window of requests
 * (REQUESTS_PER_WINDOW requests with CALLS_OF_REQUEST_MAX calls each).
 */
export const ACCOUNT_CALLS_MAX = 0.75 * CLIENT_CALLS_MAX;
/**
 * The part of this share that visitors of the account have. The rest stays free for its members, so that they can, for
 * example, delete an app whose visitors wait for it. All sockets of an account may have a call.
 */
export const VISITORS_CALLS_MAX = 0.75 * ACCOUNT_CALLS_MAX;

/** The account that calls are counted for. */
export interface CallOwner {
  accountId: string;
  /** True for calls whose number strangers can choose: those of visitors of apps and of git clients. */
  isVisitor: boolean;
}

const owners = new AsyncLocalStorage<CallOwner>();

/** Runs the work, so that all calls that it makes count for this owner. */
export function callsOf<T>(owner: CallOwner, work: () => T): T {
  return owners.run(owner, work);
}

/** Returns the owner of the calls of the current work; undefined if none is known. */
export function currentCallOwner(): CallOwner | undefined {
  return owners.getStore();
}

export class CallPlaces {
  readonly #ofAccounts = new SharedSlots<string | object>({
    max: CLIENT_CALLS_MAX,
    perOwner: ACCOUNT_CALLS_MAX,
    keptFree: CLIENT_CALLS_MAX - ACCOUNT_CALLS_MAX,
  });
  readonly #ofVisitors = new SharedSlots<string>({
    max: CLIENT_CALLS_MAX,
    perOwner: VISITORS_CALLS_MAX,
  });

  /** Takes a place for a call of the current owner. Returns a function that releases it. Refuses with `busy`. */
  take(kind: string): () => void {
    const owner = currentCallOwner();
    // A call without a known account is its own owner.
    if (!owner) return this.#ofAccounts.tryTake({}) ?? refuse(kind, CLIENT_CALLS_MAX);
    const { accountId, isVisitor } = owner;
    const leave = isVisitor ? this.#ofVisitors.tryTake(accountId) : () => {};
    if (!leave) return refuse(kind, VISITORS_CALLS_MAX);
    const release = this.#ofAccounts.tryTake(accountId);
    if (release) {
      return () => {
        leave();
        release();
      };
    }
    leave();
    return refuse(kind, this.#ofAccounts.takenBy(accountId));
  }
}

function refuse(kind: string, calls: number): never {
  const text = `Cannot call ${kind}: ${calls} calls are in flight`;
  throw new ActorError("busy", text, { retryAfterS: 1 });
}
