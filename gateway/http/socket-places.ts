/**
 * Counts the WebSockets of one gateway, open ones and those whose upgrade is being decided. Each account has a share,
 * so that one account cannot keep the clients of all others out.
 */
import type { Logger } from "pino";
import type { WebSocket } from "ws";
import { SharedSlots } from "../../actors/runtime/lib/shared-slots.ts";
import { ActorError } from "../../schemas/errors.ts";

/** Limits the WebSockets of one gateway. */
export const SOCKETS_MAX = 10_000;
/**
 * One account's share of the sockets. The rest is for other accounts, and the fewer sockets an account has, the more of
 * the rest it may take. Without a share, an app that accepts everybody could take all sockets, and the agents and
 * DevTools clients of all other accounts would get 503.
 */
const SOCKETS_ACCOUNT_SHARE = 0.75;
/** Interval of log lines about accounts that have their share. Their clients may try again every second. */
const SHARE_LOG_MS = 60_000;

/** Returns the limit for the sockets of one account, when all accounts together have `max`. */
export function socketsOfAccountMax(max: number): number {
  return Math.max(1, Math.floor(max * SOCKETS_ACCOUNT_SHARE));
}

export class SocketPlaces {
  readonly #slots: SharedSlots<string | object>;
  readonly #logger: Logger | undefined;
  readonly #now: () => number;
  #loggedAt = Number.NEGATIVE_INFINITY;

  constructor({
    max = SOCKETS_MAX,
    logger,
    now = () => performance.now(),
  }: {
    max?: number | undefined;
    logger?: Logger | undefined;
    now?: () => number;
  }) {
    const perOwner = socketsOfAccountMax(max);
    this.#slots = new SharedSlots({ max, perOwner, keptFree: max - perOwner });
    this.#logger = logger;
    this.#now = now;
  }

  /** Takes a place for an upgrade whose account is not known yet. Returns undefined if all places are taken. */
  tryTake(): SocketPlace | undefined {
    // Until the account is known, the upgrade is its own owner. That ends when a token or an address was checked.
    const release = this.#slots.tryTake({});
    return release && new SocketPlace((accountId) => this.#takeFor(accountId), release);
  }

  #takeFor(accountId: string): () => void {
    const release = this.#slots.tryTake(accountId);
    if (release) return release;
    if (this.#now() - this.#loggedAt >= SHARE_LOG_MS) {
      this.#loggedAt = this.#now();
      this.#logger?.warn({ account: accountId }, "account has its share of the sockets");
    }
    throw new ActorError(
      "busy",
      "Cannot open WebSocket: this account has its share of the WebSockets of this gateway; try again",
    );
  }
}

/** The place of one upgrade, and later of its socket. */
export class SocketPlace {
  readonly #takeFor: (accountId: string) => () => void;
  #release: () => void;
  #accountId: string | undefined;
  #isDecided = false;
  #isPastShare = false;

  /** `takeFor` takes a place for an account, or throws. `release` releases the present place. */
  constructor(takeFor: (accountId: string) => () => void, release: () => void) {
    this.#takeFor = takeFor;
    this.#release = release;
  }

  /** Whether the account had its share, so that the upgrade was refused. */
  get isPastShare(): boolean {
    return this.#isPastShare;
  }

  /**
   * Counts the place for this account. Refuses with `busy` if the account has its share. Then the place is released.
   */
  countFor(accountId: string): void {
    if (this.#isDecided) {
      throw new ActorError("cancelled", "Cannot open WebSocket: its upgrade was answered already");
    }
    if (this.#accountId === accountId) return;
    this.#release();
    this.#accountId = undefined;
    this.#isPastShare = true;
    this.#release = this.#takeFor(accountId);
    this.#isPastShare = false;
    this.#accountId = accountId;
  }

  /** Keeps the place until the socket is closed. */
  keepFor(socket: Pick<WebSocket, "once">): void {
    this.#isDecided = true;
    // A listener lives as long as its socket. This one references nothing of the request.
    socket.once("close", this.#release);
  }

  /** Ends the decision about the upgrade. Releases the place if no socket keeps it. */
  end(): void {
    if (this.#isDecided) return;
    this.#isDecided = true;
    this.#release();
  }
}
