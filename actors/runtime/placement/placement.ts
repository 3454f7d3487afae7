/**
 * Decides which shards this host owns. A shard's epoch names its owner, which has a lease in the first state bucket.
 * The shard is free when its owner gave it back, or when the owner's lease has ended.
 */
import { DeliverPolicy, type JsMsg } from "@nats-io/jetstream";
import type { Logger } from "pino";
import { PLACEMENT_PREFETCH, READER_RETRY_MS, SHARDS } from "../../../schemas/limits.ts";
import { writeAtomically } from "../bus/atomic-batch.ts";
import type { Bus } from "../bus/bus.ts";
import { readInOrder } from "../bus/read-in-order.ts";
import type { Clock } from "../lib/clock.ts";
import type { StateStore } from "../state/state-store.ts";
import { Epoch, encodeEpoch, NOBODY, sourcesOf } from "./epoch.ts";
import { endLease, HostLease, LEASE_FORM, Lease } from "./host-lease.ts";
import { HostPresence } from "./host-presence.ts";
import { LeftJournals } from "./left-journals.ts";
import { LivingHosts } from "./living-hosts.ts";
import type { PlacementHost } from "./placement-host.ts";
import { preferredHost } from "./rendezvous.ts";

/** The sequence of a lease that this host wrote and has not read yet. */
const NOT_READ = 0;

interface KnownEpoch extends Epoch {
  sequence: number;
}

export class Placement {
  readonly #bus: Bus;
  readonly #stores: readonly StateStore[];
  readonly #host: PlacementHost;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #lease: HostLease;
  #stopped = false;
  readonly #hosts: LivingHosts;
  readonly #presence: HostPresence;
  readonly #epochs = new Map<number, KnownEpoch>();
  /** Shards that are open here, by the epoch they were opened under. */
  readonly #open = new Map<number, number>();
  /** Shards being taken or given back. */
  readonly #moving = new Map<number, Promise<void>>();
  readonly #journals: LeftJournals;
  /** Buckets whose leases and epochs are known up to now. */
  readonly #watched = new Set<StateStore>();
  #watches = new AbortController();
  /** A renewal that confirmations share. */
  #confirming: Promise<void> | undefined;

  /** One store a state bucket; shard `p` lives in store `p mod stores.length`. */
  constructor(parts: {
    bus: Bus;
    stores: readonly StateStore[];
    host: PlacementHost;
    clock: Clock;
    logger: Logger;
    /** The start of this host's id, for operators; a random part makes it unique. */
    hostName: string;
  }) {
    this.#bus = parts.bus;
    this.#stores = parts.stores;
    this.#host = parts.host;
    this.#clock = parts.clock;
    this.#logger = parts.logger;
    this.#hosts = new LivingHosts(parts.clock);
    this.#journals = new LeftJournals({
      logger: parts.logger,
      isAlive: (host) => host === this.#lease.id || this.#hosts.isAlive(host),
      isGone: (host) => this.#isGone(host),
      known: () => this.#epochs.values(),
      readAll: () =>
        Promise.all(Array.from({ length: SHARDS }, (_, shard) => this.#readEpoch(shard))),
      remove: (host) => parts.host.forgetJournal(host),
    });
    this.#lease = new HostLease({
      ...parts,
      store: this.#firstStore,
      renewing: (id) => this.#presence.answerAs(id),
      renewed: () => {
        this.#reconcile();
        if (this.#watched.size === this.#stores.length) void this.#journals.removeUnnamed();
      },
      lost: () => {
        this.#host.renamed();
        for (const shard of [...this.#open.keys()]) this.#drop(shard);
        // A host that was away for this long may have missed changes of membership.
        this.#watchAll();
      },
    });
    this.#presence = new HostPresence({
      ...parts,
      hosts: this.#hosts,
      end: (host, sequence) =>
        endLease({ bus: this.#bus, store: this.#firstStore }, host, sequence),
    });
  }

  get hostId(): string {
    return this.#lease.id;
  }

  /** Shards that answer here now. */
  get openShards(): number {
    return this.#open.size;
  }

  /** True once every shard has an owner whose lease lives, as far as this host knows. */
  get isComplete(): boolean {
    for (let shard = 0; shard < SHARDS; shard++) {
      const host = this.#epochs.get(shard)?.owner;
      if (!host || !this.#hosts.isAlive(host)) return false;
      if (host === this.#lease.id && !this.#open.has(shard)) return false;
    }
    return true;
  }

  /** Takes a lease, and then shards until `stop`. `journals`: the hosts that have a journal in the store. */
  async start(journals: readonly string[]): Promise<void> {
    for (const journal of journals) this.#journals.add(journal);
    await this.#lease.start();
    this.#watchAll();
    void this.#presence.watch();
    // The lease counts again only after a renewal, which also retries what failed while the bus was away.
    this.#bus.onReconnect(() => void this.#lease.renew());
  }

  /** Gives every shard to the others, then the lease back. */
  async stop(): Promise<void> {
    // Other hosts must know before the first shard is free.
    await this.#lease.announceLeaving();
    this.#hosts.see(this.#lease.id, NOT_READ, { leaving: true, form: LEASE_FORM });
    while (this.#open.size > 0 || this.#moving.size > 0) {
      for (const shard of this.#open.keys()) {
        if (!this.#moving.has(shard)) this.#move(shard, this.#giveBack(shard));
      }
      await Promise.all(this.#moving.values());
    }
    this.#stopped = true;
    this.#watches.abort();
    this.#presence.stop();
    await this.#lease.release();
  }

  /** True while no other host can have taken a shard of this one. */
  holdsLease(): boolean {
    return this.#lease.holds;
  }

  /**
   * True if the lease lives and the store has the epoch under which the shard was opened. If it has another epoch, the
   * host gives up its name.
   */
  async confirm(shard: number, epoch: number): Promise<boolean> {
    const { id } = this.#lease;
    // A leader that has lost the other servers answers reads for up to 20 s, but it stores no renewal.
    this.#confirming ??= this.#lease.renew().finally(() => {
      this.#confirming = undefined;
    });
    await this.#confirming;
    if (!this.#lease.holds || this.#lease.id !== id) return false;
    const known = await this.#readEpoch(shard);
    if (known.sequence === epoch) return known.owner === id;
    this.#learn(shard, known);
    return false;
  }

  /**
   * Drops all shards, and takes shards again under another name, as another host would. Called when another host has
   * sealed this host's journal, or when the outcome of a write is unknown.
   */
  startAnew(): void {
    this.#lease.startAnew();
  }

  get #firstStore(): StateStore {
    return this.#storeOf(0);
  }

  #storeOf(shard: number): StateStore {
    const store = this.#stores[shard % this.#stores.length];
    if (!store) throw new Error("Cannot place shards: there is no state bucket");
    return store;
  }

  #watchAll(): void {
    this.#watches.abort();
    this.#watches = new AbortController();
    this.#watched.clear();
    this.#hosts.clear();
    this.#hosts.see(this.#lease.id, NOT_READ, { leaving: this.#lease.leaving, form: LEASE_FORM });
    for (const store of this.#stores) void this.#watch(store, this.#watches.signal);
  }

  /** Follows leases and epochs of one bucket as they change. */
  async #watch(store: StateStore, signal: AbortSignal): Promise<void> {
    const { subjects } = store;
    const caughtUp = () => {
      if (signal.aborted) return;
      this.#watched.add(store);
      this.#reconcile();
    };
    while (!signal.aborted) {
      try {
        const read = readInOrder(this.#bus, {
          stream: subjects.stream,
          name: "placement",
          select: {
            filter_subjects: [subjects.leases, subjects.epochs],
            deliver_policy: DeliverPolicy.LastPerSubject,
          },
          prefetch: PLACEMENT_PREFETCH,
          signal,
          started: (pending) => pending === 0 && caughtUp(),
        });
        for await (const message of read) {
          this.#observe(store, message);
          if (message.info.pending === 0) caughtUp();
        }
      } catch (error) {
        this.#logger.warn({ err: error }, "placement not watched, will try again");
      }
      await this.#clock.wait(READER_RETRY_MS, signal);
    }
  }

  #observe(store: StateStore, message: JsMsg): void {
    const { subjects } = store;
    const name = subjects.lastToken(message.subject);
    const removed =
      message.headers?.has("KV-Operation") || message.headers?.has("Nats-Marker-Reason");
    if (message.subject === subjects.epoch(Number(name))) {
      const epoch = removed ? NOBODY : Epoch.parse(message.json());
      this.#learn(Number(name), { ...epoch, sequence: message.seq });
    } else if (removed) this.#hosts.forget(name);
    else this.#hosts.see(name, message.seq, Lease.parse(message.json()));
  }

  #learn(shard: number, epoch: KnownEpoch): void {
    const known = this.#epochs.get(shard);
    if (known && known.sequence >= epoch.sequence) return;
    this.#epochs.set(shard, epoch);
    if (epoch.from) this.#journals.add(epoch.from.journal);
    for (const host of epoch.firstJournals) this.#journals.add(host);
    const opened = this.#open.get(shard);
    // The next owner of the shard seals this host's journal, so this host can commit nothing more to any shard.
    if (opened !== undefined && epoch.sequence > opened) this.startAnew();
  }

  /** Compares the owner of each shard with the preferred host, and takes shards or gives them back. */
  #reconcile(): void {
    // A shard that a host takes without a living lease is free at once.
    if (this.#watched.size < this.#stores.length || this.#stopped || !this.#lease.holds) return;
    const staying = this.#hosts.staying();
    for (let shard = 0; shard < SHARDS; shard++) {
      if (this.#moving.has(shard)) continue;
      const preferred = preferredHost(shard, staying);
      const owner = this.#epochs.get(shard)?.owner ?? undefined;
      const free = owner === undefined || !this.#hosts.isAlive(owner) || owner === this.#lease.id;
      if (preferred === this.#lease.id) {
        if (free && !this.#open.has(shard)) this.#move(shard, this.#take(shard));
      } else if (preferred !== undefined && (this.#open.has(shard) || owner === this.#lease.id)) {
        // Also a shard that only its epoch gives to this host, since its return failed half-way: no other host may take
        // it.
        this.#move(shard, this.#giveBack(shard));
      }
    }
  }

  /** Runs one move at a time for each shard, and reconciles again at its end. */
  #move(shard: number, moving: Promise<boolean>): void {
    const ended = moving.then((done) => {
      this.#moving.delete(shard);
      // After a failure the next renewal reconciles: the bus may be away.
      if (done) this.#reconcile();
    });
    this.#moving.set(shard, ended);
  }

  async #take(shard: number): Promise<boolean> {
    const { id } = this.#lease;
    try {
      const known = this.#epochs.get(shard);
      if (known?.owner && known.owner !== id && !(await this.#isGone(known.owner))) return false;
      // The host may have another name by now, whose journal is open.
      if (this.#lease.id !== id) return true;
      const epoch = await this.#takeOver(shard, known, id);
      await this.#host.open(shard, epoch, id);
      this.#open.set(shard, epoch);
      // Meanwhile the lease of this host may have ended, and another host may have taken the shard.
      if (this.#lease.id !== id) this.#drop(shard);
      else if ((this.#epochs.get(shard)?.sequence ?? epoch) > epoch) this.startAnew();
      return true;
    } catch (error) {
      this.#logger.debug({ err: error, shard }, "shard not taken");
      await this.#relearn(shard);
      return false;
    }
  }

  /**
   * Writes the epoch, replays the journal of the last owner, and writes the epoch again, so that nobody needs that
   * journal any more.
   */
  async #takeOver(shard: number, known: KnownEpoch | undefined, owner: string): Promise<number> {
    await this.#host.openJournal(shard, owner);
    // A shard that this host owns and has not open: nothing was committed under its epoch.
    const isOwn = known?.owner === owner && !known.from && known.firstJournals.length === 0;
    const sources = known && !isOwn ? sourcesOf(known) : NOBODY;
    const { from, firstJournals } = sources;
    const taken = { owner, from, firstJournals };
    const epoch = await this.#writeEpoch(shard, taken, known?.sequence ?? 0);
    if (!from && firstJournals.length === 0) return epoch;
    for (const journal of [...(from ? [from.journal] : []), ...firstJournals]) {
      this.#journals.add(journal);
    }
    await this.#host.replay(shard, epoch, { from, firstJournals });
    return this.#writeEpoch(shard, { owner, firstJournals: [] }, epoch);
  }

  async #giveBack(shard: number): Promise<boolean> {
    const { id } = this.#lease;
    try {
      const known = this.#epochs.get(shard);
      const opened = this.#open.get(shard);
      const isWritten = await this.#host.handOver(shard);
      // The next owner reads the journal.
      if (this.#lease.id !== id) return true;
      if (opened !== undefined && !isWritten)
        throw new Error("Cannot write its commits to its keys");
      this.#open.delete(shard);
      if (!known) return true;
      // If this host opened the shard, all commits are in its keys. Otherwise this host has committed nothing to it.
      const { from, firstJournals } = known;
      await this.#writeEpoch(shard, { owner: null, from, firstJournals }, opened ?? known.sequence);
      return true;
    } catch (error) {
      this.#logger.debug({ err: error, shard }, "shard not given back");
      // The next owner takes over what could not be finished; `stop` would otherwise retry for ever.
      if (this.#open.has(shard)) this.startAnew();
      await this.#relearn(shard);
      return false;
    }
  }

  async #writeEpoch(shard: number, epoch: Epoch, expected: number): Promise<number> {
    const { subjects } = this.#storeOf(shard);
    const sequence = await writeAtomically(this.#bus, [
      {
        subject: subjects.epoch(shard),
        payload: encodeEpoch(epoch),
        expect: { sequence: expected },
      },
    ]);
    this.#epochs.set(shard, { ...epoch, sequence });
    return sequence;
  }

  /** Asks the leader whether a host's lease has ended: the watch may lag. */
  async #isGone(host: string): Promise<boolean> {
    const { text, sequence } = await this.#firstStore.read(this.#firstStore.subjects.lease(host));
    if (text === undefined || this.#hosts.hasEnded(host, sequence)) return true;
    this.#hosts.see(host, sequence, Lease.parse(JSON.parse(text)));
    return false;
  }

  /** Reads the epoch from the store: a write with an unknown outcome may have been stored, or lost to another host. */
  async #relearn(shard: number): Promise<void> {
    try {
      this.#learn(shard, await this.#readEpoch(shard));
    } catch (error) {
      this.#logger.debug({ err: error, shard }, "epoch not read");
    }
  }

  async #readEpoch(shard: number): Promise<KnownEpoch> {
    const store = this.#storeOf(shard);
    const { sequence, text } = await store.read(store.subjects.epoch(shard));
    return { ...(text === undefined ? NOBODY : Epoch.parse(JSON.parse(text))), sequence };
  }

  #drop(shard: number): void {
    // The reason is logged once, not once for each shard.
    if (this.#open.delete(shard)) this.#logger.debug({ shard }, "shard dropped");
    this.#host.drop(shard);
  }
}
