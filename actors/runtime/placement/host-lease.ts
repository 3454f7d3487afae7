/**
 * The lease of a host: one key that expires unless the host renews it. A renewal succeeds only if the host's previous
 * renewal is still stored. So a lease that has ended never returns, and its host continues under a new name. A second
 * key, the member, has the same content without `ttlMs` and does not expire. It is written only when the content
 * changes, and all hosts watch it.
 */
import { randomBytes } from "node:crypto";
import type { Logger } from "pino";
import { z } from "zod";
import { LEASE_TTL_MS } from "../../../schemas/limits.ts";
import { countWork } from "../../../schemas/meter.ts";
import { type Write, writeAtomically } from "../bus/atomic-batch.ts";
import type { Bus } from "../bus/bus.ts";
import type { Clock } from "../lib/clock.ts";
import type { StateStore } from "../state/state-store.ts";
import { LeaseLength } from "./lease-length.ts";

/** Interval of renewals: four in the lifetime of a lease, so that a lost message does no harm. */
export const LEASE_RENEW_MS = 500;
/** Timeout of the write that ends another host's lease. After a failure, a later round tries again. */
const LEASE_END_MS_MAX = 1_000;
/**
 * Limits the tries to take the first lease, with one renewal interval between them. The election of a leader at the
 * start takes up to 9 s.
 */
const LEASE_START_TRIES_MAX = 40;
/**
 * The host trusts its lease for reads only until this long before the end, because clocks of two machines drift and
 * timers run late.
 */
export const LEASE_MARGIN_MS = 500;
/**
 * A host trusts its lease for at most this time after a renewal, and then confirms it before a read. An older lease
 * may be ended by others: the server closes the connection of a silent client after 4 s or more (see `HostPresence`),
 * and hosts of earlier versions take a lease that is not renewed for 4 s for a ghost.
 */
export const LEASE_TRUSTED_MS_MAX = 4_000;

export const Lease = z.object({
  /** The host gives its shards away and takes none. */
  leaving: z.boolean(),
  /** Id of the server through which the host renewed the lease. */
  server: z.string().optional(),
  /**
   * The form of epochs that the host can read. Absent in leases of the first release, whose hosts cannot read epochs of
   * this release.
   */
  form: z.number().optional(),
  /** How long this lease lasts. Default: LEASE_TTL_MS. A member has no such field. */
  ttlMs: z.number().optional(),
});
/** The form of epochs and journals that hosts of this release write. */
export const LEASE_FORM = 2;
export type Lease = z.infer<typeof Lease>;

const NEVER = {
  monotonic: Number.NEGATIVE_INFINITY,
  wall: Number.NEGATIVE_INFINITY,
  disconnections: 0,
};

interface HeldLease {
  readonly id: string;
  revision: number;
  /** The content of the member as it was written last. */
  member: string;
  /**
   * An earlier name of this host whose member may still exist. The first write under the new name ends this member.
   */
  readonly former: string | undefined;
}

interface HostLeaseParts {
  bus: Bus;
  store: StateStore;
  clock: Clock;
  logger: Logger;
  /** The first part of the host's id, by which operators recognize the host. A random part makes the id unique. */
  hostName: string;
  /** Called before the lease is written under this name. */
  renewing(id: string): void;
  renewed(): void;
  /** Called when the lease has ended. `id` is then already a new name. */
  lost(): void;
}

export class HostLease {
  readonly #parts: HostLeaseParts;
  readonly #stopped = new AbortController();
  #held: HeldLease;
  /**
   * The time until which the lease surely lives: by the monotonic clock, by the wall clock, and only while the
   * connection lasts that renewed the lease.
   */
  #holdsUntil = NEVER;
  readonly #length = new LeaseLength();
  /** The time when the last successful renewal began, and the connection that it used. */
  #renewed = { at: 0, disconnections: -1 };
  #leaving = false;
  #renewing: Promise<void> = Promise.resolve();

  constructor(parts: HostLeaseParts) {
    this.#parts = parts;
    this.#held = this.#newName();
  }

  get id(): string {
    return this.#held.id;
  }

  get leaving(): boolean {
    return this.#leaving;
  }

  /** True while the lease surely lives, by this machine's own clocks and its connection. */
  get holds(): boolean {
    const { bus, clock } = this.#parts;
    const { monotonic, wall, disconnections } = this.#holdsUntil;
    // Another host that sees the loss of this host's connection may end the lease: see `HostPresence`.
    if (bus.disconnections !== disconnections) return false;
    // Checks both clocks: the monotonic clock stops while a virtual machine is suspended, and the wall clock may be
    // set back.
    return clock.monotonic() < monotonic && clock.now() < wall;
  }

  /** Takes the lease. Resolves when the lease is written; from then on the host renews it until `release`. */
  async start(): Promise<void> {
    const { clock, logger } = this.#parts;
    // At a start the stream may have no leader, or its disk may be slow.
    for (let tries = 1; !this.holds; tries++) {
      try {
        await this.#renew();
      } catch (error) {
        if (tries >= LEASE_START_TRIES_MAX) throw error;
        logger.warn({ err: error, tries }, "lease not taken, will try again");
        await clock.wait(LEASE_RENEW_MS);
        await this.#learnFate();
      }
    }
    this.#parts.logger.info({ host: this.id }, "lease taken");
    void this.#renewForever();
  }

  /**
   * Reads whether a first write without an answer is stored. The host keeps its name unless this lease has ended
   * already, because another name would leave a member to which others give shards.
   */
  async #learnFate(): Promise<void> {
    const { store, logger } = this.#parts;
    const held = this.#held;
    try {
      const { sequence, text } = await store.read(store.subjects.lease(held.id));
      if (text === undefined && sequence > 0) this.#rename(held.id);
      else held.revision = sequence;
    } catch (error) {
      logger.debug({ err: error, host: held.id }, "lease not read, will try again");
    }
  }

  /** Announces to the other hosts that this host leaves. The host still renews its lease. */
  async announceLeaving(): Promise<void> {
    this.#leaving = true;
    await this.#renewNext();
  }

  /** Makes the next renewal announce the member again, unless the lease has ended. */
  announceAgain(): void {
    this.#held.member = "";
  }

  /** Ends the lease immediately. This leaves a marker, as an expired lease does, so that other hosts see the end. */
  async release(): Promise<void> {
    this.#stopped.abort();
    await this.#renewing;
    const { bus, store, logger } = this.#parts;
    try {
      await writeAtomically(bus, [endOfMember(store, this.id), endOf(store, this.id)]);
    } catch (error) {
      logger.warn({ err: error, host: this.id }, "lease not released, it expires by itself");
    }
  }

  /**
   * Takes a new name immediately, which makes the host drop all its shards. Then ends the lease of the former name.
   */
  startAnew(): void {
    if (this.#stopped.signal.aborted) return;
    const { bus, store, logger } = this.#parts;
    const former = this.#held;
    logger.warn({ host: former.id }, "lease released, the host goes on under a new name");
    countWork("host_restarts_total", {});
    this.#rename();
    this.#renewing = this.#renewing.then(async () => {
      try {
        // A renewal whose answer was lost may be stored, so its sequence is read.
        const lease = await readLease(store, former.id);
        if (lease) await endLease({ bus, store }, former.id, lease.sequence);
      } catch (error) {
        logger.warn({ err: error, host: former.id }, "lease not released, it expires by itself");
      }
    });
    void this.renew();
  }

  /** Renews the lease immediately, regardless of the time of the last renewal. Renewals run one after the other. */
  async renew(): Promise<void> {
    await this.#renewNext();
    if (!this.#stopped.signal.aborted) this.#parts.renewed();
  }

  async #renewNext(): Promise<void> {
    this.#renewing = this.#renewing.then(() => this.#renewOrStartAnew());
    await this.#renewing;
  }

  async #renewForever(): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      await this.#parts.clock.wait(LEASE_RENEW_MS, signal);
      await this.renew();
    }
  }

  async #renewOrStartAnew(): Promise<void> {
    const { logger } = this.#parts;
    if (this.#stopped.signal.aborted) return;
    const held = this.#held;
    try {
      await this.#renew();
    } catch (error) {
      logger.warn({ err: error, host: held.id }, "lease not renewed");
      // The host has a new name by now; the renewal of the new name's lease follows.
      if (this.#held !== held) return;
      try {
        if (await this.#stillStored()) return await this.#renew();
        if (this.#held !== held) return;
        logger.warn({ host: held.id }, "lease lost");
        this.#rename(held.id);
        await this.#renew();
        logger.info({ host: this.id }, "lease taken");
      } catch (cause) {
        logger.warn({ err: cause, host: this.id }, "state of the lease unknown, will try again");
      }
    }
  }

  #rename(former?: string): void {
    this.#held = this.#newName(former);
    this.#holdsUntil = NEVER;
    this.#parts.lost();
  }

  #newName(former?: string): HeldLease {
    return { id: newId(this.#parts.hostName), revision: 0, member: "", former };
  }

  /**
   * Returns whether the lease still lives. A renewal whose answer was lost may have been stored; then the lease has
   * another revision.
   */
  async #stillStored(): Promise<boolean> {
    const { store } = this.#parts;
    const held = this.#held;
    const { sequence, text } = await store.read(store.subjects.lease(held.id));
    if (text === undefined) return false;
    held.revision = sequence;
    return true;
  }

  /** Renews the lease. Its lifetime counts from the time before the renewal is sent. */
  async #renew(): Promise<void> {
    const { bus, store, clock, renewing } = this.#parts;
    const held = this.#held;
    renewing(held.id);
    const ttlMs = this.#length.ms;
    const member: Lease = { leaving: this.#leaving, server: bus.server, form: LEASE_FORM };
    const lease = ttlMs === LEASE_TTL_MS ? member : { ...member, ttlMs };
    const { disconnections } = bus;
    const begin = { at: clock.monotonic(), disconnections };
    const holdsMs = Math.min(ttlMs, LEASE_TRUSTED_MS_MAX) - LEASE_MARGIN_MS;
    const until = { monotonic: begin.at + holdsMs, wall: clock.now() + holdsMs, disconnections };
    // Until the answer arrives, trusts only the earlier end: this renewal may be stored without an answer, and its
    // lease may be shorter.
    this.#holdsUntil = earlier(this.#holdsUntil, until);
    const payload = JSON.stringify(member);
    const write = {
      subject: store.subjects.lease(held.id),
      payload: JSON.stringify(lease),
      headers: { "Nats-TTL": `${ttlMs / 1_000}s` },
      expect: { sequence: held.revision },
    };
    // Member and lease are written in one batch, so that no host becomes a member again after its lease has ended.
    const news =
      held.member === payload ? [] : [{ subject: store.subjects.member(held.id), payload }];
    const end =
      held.revision > 0 || held.former === undefined ? [] : [endOfMember(store, held.former)];
    const announced = held.member;
    try {
      // The timeout is half of the lease's lifetime, so that the lease lives long enough for another try.
      held.revision = await writeAtomically(bus, [...end, ...news, write], ttlMs / 2);
    } finally {
      // Measures failed renewals too. Otherwise a lease that is too short for its renewals would never become longer.
      this.#measure(begin);
    }
    this.#renewed = begin;
    // If `held.member` has changed meanwhile, another host has announced this host's end, and the next renewal
    // announces the member again.
    if (held.member === announced) held.member = payload;
    if (this.#held === held) this.#holdsUntil = until;
  }

  /**
   * Records how long the renewal took, unless the connection was lost meanwhile: then the bus was away, and the host
   * was not slow.
   */
  #measure(begin: { at: number; disconnections: number }): void {
    const { bus, clock } = this.#parts;
    if (bus.disconnections !== begin.disconnections) return;
    const isConnected = this.#renewed.disconnections === begin.disconnections;
    const since = isConnected ? this.#renewed.at : begin.at;
    this.#length.tried(clock.monotonic() - since);
  }
}

/** The earlier end of each clock, on the connection of `one`. */
const earlier = (one: typeof NEVER, other: typeof NEVER): typeof NEVER => ({
  monotonic: Math.min(one.monotonic, other.monotonic),
  wall: Math.min(one.wall, other.wall),
  disconnections: one.disconnections,
});

/**
 * Ends another host's lease if its last sequence is still `sequence`. Rejects with WriteRefused if the host has
 * renewed the lease since.
 */
export async function endLease(
  { bus, store }: Pick<HostLeaseParts, "bus" | "store">,
  host: string,
  sequence: number,
): Promise<void> {
  await writeAtomically(
    bus,
    [endOfMember(store, host), { ...endOf(store, host), expect: { sequence } }],
    LEASE_END_MS_MAX,
  );
}

/** Reads the lease of a host from the leader; undefined where it has ended. */
export async function readLease(store: StateStore, host: string) {
  const { sequence, text } = await store.read(store.subjects.lease(host));
  if (text === undefined) return undefined;
  const { server } = Lease.parse(JSON.parse(text));
  return { sequence, server };
}

const endOf = (store: StateStore, host: string): Write => ({
  subject: store.subjects.lease(host),
  payload: "",
  headers: RELEASED,
});

/**
 * Announces to all hosts that a lease has ended. This needs no fence, because a lease that has ended never returns.
 */
export const endOfMember = (store: StateStore, host: string): Write => ({
  subject: store.subjects.member(host),
  payload: "",
  headers: RELEASED,
});

/**
 * The marker lives long enough for a host that was disconnected to see it. A host that was disconnected longer has
 * lost its own lease, and reads all members and epochs again.
 */
const RELEASED = { "KV-Operation": "DEL", "Nats-TTL": "60s" } as const;

const newId = (hostName: string) => `${hostName}-${randomBytes(4).toString("hex")}`;
