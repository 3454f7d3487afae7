/**
 * A host's sign of life: one key that ends by itself unless it is renewed. It is renewed only over its last renewal, so
 * once it has ended it stays so, and the host goes on under a new name.
 */
import { randomBytes } from "node:crypto";
import type { Logger } from "pino";
import { z } from "zod";
import {
  LEASE_ANSWER_MS_MAX,
  LEASE_MARGIN_MS,
  LEASE_RENEW_MS,
  LEASE_START_TRIES_MAX,
  LEASE_TTL_MS,
} from "../../../schemas/limits.ts";
import { type Write, writeAtomically } from "../bus/atomic-batch.ts";
import type { Bus } from "../bus/bus.ts";
import type { Clock } from "../lib/clock.ts";
import type { StateStore } from "../state/state-store.ts";

export const Lease = z.object({
  /** It gives its shards away and takes none. */
  leaving: z.boolean(),
  /** Id of the server whose connection it was renewed on. */
  server: z.string().optional(),
});
export type Lease = z.infer<typeof Lease>;

const NEVER = {
  monotonic: Number.NEGATIVE_INFINITY,
  wall: Number.NEGATIVE_INFINITY,
  disconnections: 0,
};

interface HostLeaseParts {
  bus: Bus;
  store: StateStore;
  clock: Clock;
  logger: Logger;
  /** The start of the host's id, for operators; a random part makes it unique. */
  hostName: string;
  /** The lease is about to be written under this name. */
  renewing(id: string): void;
  renewed(): void;
  /** The lease has ended; `id` is a new one by now. */
  lost(): void;
}

export class HostLease {
  readonly #parts: HostLeaseParts;
  readonly #stopped = new AbortController();
  #id: string;
  #revision = 0;
  /** By the monotonic clock, and by the other one; and no longer than the connection lasts that it was renewed by. */
  #holdsUntil = NEVER;
  #leaving = false;
  #renewing: Promise<void> = Promise.resolve();

  constructor(parts: HostLeaseParts) {
    this.#parts = parts;
    this.#id = newId(parts.hostName);
  }

  get id(): string {
    return this.#id;
  }

  get leaving(): boolean {
    return this.#leaving;
  }

  /** True while it surely lives, by this machine's own clocks and its connection. */
  get holds(): boolean {
    const { bus, clock } = this.#parts;
    const { monotonic, wall, disconnections } = this.#holdsUntil;
    // Whoever sees that this host has lost its connection may end its lease: see `HostPresence`.
    if (bus.disconnections !== disconnections) return false;
    // The monotonic clock stands still while a virtual machine is suspended; the other may be set back.
    return clock.monotonic() < monotonic && clock.now() < wall;
  }

  /** Resolves when the lease is written; from then on it is renewed until `release`. */
  async start(): Promise<void> {
    const { clock, logger } = this.#parts;
    // The stream may be without a leader, or its disk slow, at this moment of all.
    for (let tries = 1; !this.holds; tries++) {
      try {
        await this.#renew();
      } catch (error) {
        if (tries >= LEASE_START_TRIES_MAX) throw error;
        logger.warn({ err: error, tries }, "lease not taken, will try again");
        await clock.wait(LEASE_RENEW_MS);
        // What was tried may be stored after all; under that name nobody owns anything, and it ends by itself.
        this.#id = newId(this.#parts.hostName);
      }
    }
    this.#parts.logger.info({ host: this.#id }, "lease taken");
    void this.#renewForever();
  }

  /** Tells the other hosts that this one leaves; the lease goes on. */
  async announceLeaving(): Promise<void> {
    this.#leaving = true;
    await this.#renewNext();
  }

  /** Ends the lease at once. It leaves a marker as one that expires does: others would count on what is just gone. */
  async release(): Promise<void> {
    this.#stopped.abort();
    await this.#renewing;
    const { bus, store, logger } = this.#parts;
    try {
      await writeAtomically(bus, [endOf(store, this.#id)]);
    } catch (error) {
      logger.warn({ err: error, host: this.#id }, "lease left to expire");
    }
  }

  /** At once, whenever it was renewed last; one after the other. */
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
    const { logger, lost, hostName } = this.#parts;
    if (this.#stopped.signal.aborted) return;
    try {
      await this.#renew();
    } catch (error) {
      logger.warn({ err: error, host: this.#id }, "lease not renewed");
      try {
        if (await this.#stillStored()) return await this.#renew();
        logger.warn({ host: this.#id }, "lease lost");
        this.#id = newId(hostName);
        this.#revision = 0;
        this.#holdsUntil = NEVER;
        lost();
        await this.#renew();
        logger.info({ host: this.#id }, "lease taken");
      } catch (cause) {
        logger.warn({ err: cause, host: this.#id }, "lease unknown, will try again");
      }
    }
  }

  /** A renewal whose answer was lost may have been stored: then the lease is still ours, at another revision. */
  async #stillStored(): Promise<boolean> {
    const { store } = this.#parts;
    const { sequence, text } = await store.read(store.subjects.lease(this.#id));
    if (text === undefined) return false;
    this.#revision = sequence;
    return true;
  }

  /** The time it holds counts from before it was sent. */
  async #renew(): Promise<void> {
    const { bus, store, clock, renewing } = this.#parts;
    renewing(this.#id);
    const lease: Lease = { leaving: this.#leaving, server: bus.server };
    const holdsMs = LEASE_TTL_MS - LEASE_MARGIN_MS;
    const until = {
      monotonic: clock.monotonic() + holdsMs,
      wall: clock.now() + holdsMs,
      disconnections: bus.disconnections,
    };
    const write = {
      subject: store.subjects.lease(this.#id),
      payload: JSON.stringify(lease),
      headers: { "Nats-TTL": `${LEASE_TTL_MS / 1_000}s` },
      expect: { sequence: this.#revision },
    };
    this.#revision = await writeAtomically(bus, [write], LEASE_ANSWER_MS_MAX);
    this.#holdsUntil = until;
  }
}

/** Ends the lease of another host as it was seen last. Rejects with WriteRefused where it was renewed since. */
export async function endLease(
  { bus, store }: Pick<HostLeaseParts, "bus" | "store">,
  host: string,
  sequence: number,
): Promise<void> {
  await writeAtomically(
    bus,
    [{ ...endOf(store, host), expect: { sequence } }],
    LEASE_ANSWER_MS_MAX,
  );
}

const endOf = (store: StateStore, host: string): Write => ({
  subject: store.subjects.lease(host),
  payload: "",
  headers: RELEASED,
});

/** Long enough for a host that was away to see it; one that was away longer has lost its own lease, and looks anew. */
const RELEASED = { "KV-Operation": "DEL", "Nats-TTL": "60s" } as const;

const newId = (hostName: string) => `${hostName}-${randomBytes(4).toString("hex")}`;
