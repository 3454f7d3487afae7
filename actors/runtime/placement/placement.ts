/**
 * Decides which shards this host owns. A shard's epoch names its owner, which has a lease in the first state bucket.
 * The shard is free when its owner gave it back, or when the owner's lease has ended.
 */
import type { Logger } from "pino";
import { BUS_REQUEST_MS, SHARD_STARTS_MAX } from "../../../schemas/limits.ts";
import { countWork } from "../../../schemas/meter.ts";
import type { Bus } from "../bus/bus.ts";
import { type Clock, OVER } from "../lib/clock.ts";
import { Semaphore } from "../lib/semaphore.ts";
import type { StateStore } from "../state/state-store.ts";
import { NOBODY, sourcesOf } from "./epoch.ts";
import { GiveTurns } from "./give-turns.ts";
import { endLease, HostLease, LEASE_FORM, readLease } from "./host-lease.ts";
import { HostPresence } from "./host-presence.ts";
import { type KnownEpoch, KnownEpochs } from "./known-epochs.ts";
import { LeaseEnds } from "./lease-ends.ts";
import { LeftJournals } from "./left-journals.ts";
import { Members } from "./members.ts";
import type { PlacementHost, PlacementParts } from "./placement-host.ts";
import { followPlacement } from "./placement-news.ts";

export class Placement {
  readonly #bus: Bus;
  readonly #stores: readonly StateStore[];
  readonly #host: PlacementHost;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #lease: HostLease;
  #stopped = false;
  readonly #members: Members;
  readonly #ends: LeaseEnds;
  readonly #presence: HostPresence;
  readonly #epochs: KnownEpochs;
  /** Shards that are open on this host, with the epoch under which each was opened. */
  readonly #open = new Map<number, number>();
  readonly #takes = new Semaphore(SHARD_STARTS_MAX);
  readonly #gives: GiveTurns;
  /** Shards being taken or given back. */
  readonly #moving = new Map<number, Promise<void>>();
  readonly #journals: LeftJournals;
  /** True if a shard could not be placed for a reason that may end without a change of members or epochs. */
  #isUnsettled = false;
  readonly #watched = new Set<StateStore>();
  #watches = new AbortController();
  readonly #left = new AbortController();
  /** Called whenever `#isCaughtUp` becomes true. */
  #caughtUp: () => void = () => {};
  /** The renewal of the lease for which all calls of `confirm` wait that come meanwhile. */
  #confirming: Promise<void> | undefined;

  constructor(parts: PlacementParts) {
    this.#bus = parts.bus;
    this.#stores = parts.stores;
    this.#host = parts.host;
    this.#clock = parts.clock;
    this.#logger = parts.logger;
    this.#members = new Members(this.#shards);
    this.#gives = new GiveTurns(this.#shards, parts.clock);
    this.#epochs = new KnownEpochs({
      ...parts,
      storeOf: (shard) => this.#storeOf(shard),
      learned: (shard, epoch) => this.#learned(shard, epoch),
    });
    this.#ends = new LeaseEnds({ ...parts, store: this.#firstStore, members: this.#members });
    this.#journals = new LeftJournals({
      logger: parts.logger,
      isAlive: (host) => host === this.#lease.id || this.#members.has(host),
      isMine: (host) => this.#members.chosenFor(host) === this.#lease.id,
      isGone: (host) => this.#ends.hasEnded(host),
      known: () => this.#epochs.all(),
      shards: this.#shards,
      readEpoch: (shard) => this.#epochs.read(shard),
      exists: (host) => parts.host.hasJournal(host),
      remove: (host) => parts.host.forgetJournal(host),
      release: (host) => parts.host.releaseJournal(host),
    });
    this.#lease = new HostLease({
      ...parts,
      store: this.#firstStore,
      renewing: (id) => this.#presence.answerAs(id),
      renewed: () => {
        if (this.#isUnsettled) this.#reconcile();
        if (this.#isCaughtUp()) void this.#journals.removeUnnamed();
      },
      lost: () => {
        this.#host.renamed();
        for (const shard of [...this.#open.keys()]) this.#drop(shard);
        // A host that was away long enough to lose its lease may have missed changes of members.
        this.#watchAll();
      },
    });
    this.#presence = new HostPresence({
      ...parts,
      members: this.#members,
      lease: (host) => readLease(this.#firstStore, host),
      end: (host, sequence) =>
        endLease({ bus: this.#bus, store: this.#firstStore }, host, sequence),
    });
  }

  get hostId(): string {
    return this.#lease.id;
  }

  /** Number of shards that are open on this host. */
  get openShards(): number {
    return this.#open.size;
  }

  /** True if each shard has a living owner, as far as this host knows, and this host has opened its own shards. */
  get isComplete(): boolean {
    for (let shard = 0; shard < this.#shards; shard++) {
      const host = this.#epochs.get(shard)?.owner;
      if (!host || !this.#members.has(host)) return false;
      if (host === this.#lease.id && !this.#open.has(shard)) return false;
    }
    return true;
  }

  /** Takes a lease, and then shards until `stop`. `journals`: the hosts that have a journal in the store. */
  async start(journals: readonly string[]): Promise<void> {
    for (const journal of journals) this.#journals.add(journal);
    await this.#followBeforeJoining();
    await this.#lease.start();
    // Opens the journals while others give their shards away. After a failure, taking the first shard tries again.
    for (const shard of this.#stores.keys())
      this.#host.openJournal(shard, this.#lease.id).catch(() => {});
    this.#reconcile();
    void this.#presence.watch();
    void this.#ends.watch(() => this.#lease.id, this.#left.signal);
    // After a reconnection, the lease counts only after a renewal, which also retries work that failed meanwhile.
    this.#bus.onReconnect(() => void this.#lease.renew());
  }

  /** Gives every shard to the other hosts, and then ends the lease. */
  async stop(): Promise<void> {
    // Other hosts must know that this host leaves before its first shard is free.
    await this.#lease.announceLeaving();
    this.#members.add(this.#lease.id, { leaving: true, form: LEASE_FORM });
    while (this.#open.size > 0 || this.#moving.size > 0) {
      for (const shard of this.#open.keys()) {
        if (!this.#moving.has(shard)) this.#move(shard, this.#giveInTurn(shard));
      }
      await Promise.all(this.#moving.values());
    }
    this.#stopped = true;
    this.#watches.abort();
    this.#left.abort();
    this.#presence.stop();
    await this.#lease.release();
  }

  /** True while no other host can have taken a shard of this host. */
  holdsLease(): boolean {
    return this.#lease.holds;
  }

  /**
   * True if the lease lives and the store holds the epoch under which this host opened the shard. If the store holds
   * a later epoch, this host drops all shards and continues under a new name.
   */
  async confirm(shard: number, epoch: number): Promise<boolean> {
    const { id } = this.#lease;
    // Renews first: a leader that has lost the other servers answers reads for up to 20 s, but stores no renewal.
    this.#confirming ??= this.#lease.renew().finally(() => {
      this.#confirming = undefined;
    });
    await this.#confirming;
    if (!this.#lease.holds || this.#lease.id !== id) return false;
    const known = await this.#epochs.read(shard);
    if (known.sequence === epoch) return known.owner === id;
    this.#epochs.learn(shard, known);
    return false;
  }

  /**
   * Drops all shards, and takes shards again under another name, as another host would. Called when another host has
   * sealed this host's journal, or when the outcome of a write is unknown.
   */
  startAnew(): void {
    this.#lease.startAnew();
  }

  /** True while the members, and the epochs of all buckets or of the shard's, are known up to now. */
  #isCaughtUp(shard?: number): boolean {
    const needed = shard === undefined ? this.#stores : [this.#firstStore, this.#storeOf(shard)];
    return needed.every((store) => this.#watched.has(store));
  }

  get #shards(): number {
    return this.#bus.layout.shards;
  }

  get #firstStore(): StateStore {
    return this.#storeOf(0);
  }

  #storeOf(shard: number): StateStore {
    const store = this.#stores[shard % this.#stores.length];
    if (!store) throw new Error("Cannot place shards: there is no state bucket");
    return store;
  }

  /** Other hosts give shards to this host as soon as it joins, so it must know the epochs of all shards by then. */
  async #followBeforeJoining(): Promise<void> {
    const caughtUp = new AbortController();
    this.#caughtUp = () => caughtUp.abort(OVER);
    this.#watchAll();
    // Limits the wait, because the stream may have no leader at a start. Taking the lease then reports the error.
    await this.#clock.wait(BUS_REQUEST_MS, caughtUp.signal);
  }

  #watchAll(): void {
    this.#watches.abort();
    this.#watches = new AbortController();
    this.#watched.clear();
    this.#members.clear();
    this.#members.add(this.#lease.id, { leaving: this.#lease.leaving, form: LEASE_FORM });
    for (const store of this.#stores) this.#follow(store, this.#watches.signal);
  }

  #follow(store: StateStore, signal: AbortSignal): void {
    const { members, epochs } = store.subjects;
    const filters = store === this.#firstStore ? [members, epochs] : [epochs];
    const parts = { bus: this.#bus, clock: this.#clock, logger: this.#logger };
    void followPlacement(
      { ...parts, store, filters, signal },
      {
        epoch: (shard, epoch) => {
          this.#journals.changed();
          this.#epochs.learn(shard, epoch);
          this.#place(shard);
        },
        member: (host, lease) => {
          this.#journals.changed();
          // This host knows that it leaves before the news reports it.
          const leaves = host === this.#lease.id && this.#lease.leaving;
          if (lease) this.#members.add(host, leaves ? { ...lease, leaving: true } : lease);
          // A host with an old copy of the store may have announced this host's end, although this host lives.
          else if (host === this.#lease.id) this.#lease.announceAgain();
          else {
            this.#journals.add(host);
            // Several hosts may announce one end.
            if (!this.#members.has(host)) return;
            this.#members.remove(host);
          }
          this.#reconcile();
        },
        caughtUp: (members) => {
          if (store === this.#firstStore)
            for (const host of this.#members.retain(members, this.#lease.id))
              this.#journals.add(host);
          this.#watched.add(store);
          if (this.#isCaughtUp()) this.#caughtUp();
          this.#reconcile();
        },
      },
    );
  }

  #learned(shard: number, epoch: KnownEpoch): void {
    if (epoch.from) this.#journals.add(epoch.from.journal);
    for (const host of epoch.firstJournals) this.#journals.add(host);
    const opened = this.#open.get(shard);
    // The next owner of the shard seals this host's journal, so this host can commit nothing more to any shard.
    if (opened !== undefined && epoch.sequence > opened) this.startAnew();
  }

  #reconcile(): void {
    this.#isUnsettled = false;
    for (let shard = 0; shard < this.#shards; shard++) this.#place(shard);
  }

  /** Compares the owner of a shard with the preferred host, and takes the shard or gives it back. */
  #place(shard: number): void {
    if (!this.#isCaughtUp(shard) || this.#stopped || this.#moving.has(shard)) return;
    // Takes no shard without a living lease, because other hosts would treat the shard as free.
    if (!this.#lease.holds) {
      this.#isUnsettled = true;
      return;
    }
    const preferred = this.#members.preferredFor(shard);
    const owner = this.#epochs.get(shard)?.owner ?? undefined;
    const free = owner === undefined || !this.#members.has(owner) || owner === this.#lease.id;
    if (preferred === this.#lease.id) {
      if (free && !this.#open.has(shard)) {
        const taken = this.#takes.run(() => this.#take(shard));
        this.#move(shard, taken);
      }
    } else if (preferred !== undefined && this.#has(shard)) {
      this.#move(shard, this.#giveInTurn(shard));
    }
  }

  /** Registers a move of a shard until its end. Then places the shard again; after a failure, a renewal does so. */
  #move(shard: number, moving: Promise<boolean>): void {
    const ended = moving.then((done) => {
      this.#moving.delete(shard);
      // After a failure, the next renewal places the shards again, because the bus may be away now.
      if (done) this.#place(shard);
      else this.#isUnsettled = true;
    });
    this.#moving.set(shard, ended);
  }

  async #take(shard: number): Promise<boolean> {
    const { id } = this.#lease;
    // This call has waited for a free slot. The host may have a new name by now, whose lease is not written yet.
    if (!this.#lease.holds || !this.#isCaughtUp(shard)) return false;
    if (this.#members.preferredFor(shard) !== id) return true;
    try {
      const known = this.#epochs.get(shard);
      if (known?.owner && known.owner !== id && !(await this.#ends.hasEnded(known.owner)))
        return false;
      // The host may have another name by now; then only the journal of the new name is open.
      if (this.#lease.id !== id) return true;
      const epoch = await this.#takeOver(shard, known, id);
      await this.#host.open(shard, epoch, id);
      this.#open.set(shard, epoch);
      const after = known?.owner && known.owner !== id ? "death" : "handover";
      countWork("shard_takeovers_total", { after });
      // Meanwhile the lease of this host may have ended, and another host may have taken the shard.
      if (this.#lease.id !== id) this.#drop(shard);
      else if ((this.#epochs.get(shard)?.sequence ?? epoch) > epoch) this.startAnew();
      return true;
    } catch (error) {
      this.#logger.debug({ err: error, shard }, "shard not taken");
      await this.#epochs.relearn(shard);
      return false;
    }
  }

  /**
   * Writes the epoch, replays the journal of the last owner, and writes the epoch again, so that nobody needs that
   * journal any more.
   */
  async #takeOver(shard: number, known: KnownEpoch | undefined, owner: string): Promise<number> {
    await this.#host.openJournal(shard, owner);
    // If this host owns the shard but has not opened it, nothing was committed under this epoch.
    const isOwn = known?.owner === owner && !known.from && known.firstJournals.length === 0;
    const { from, firstJournals } = known && !isOwn ? sourcesOf(known) : NOBODY;
    const taken = { owner, from, firstJournals };
    const epoch = await this.#epochs.write(shard, taken, known?.sequence ?? 0);
    if (!from && firstJournals.length === 0) return epoch;
    for (const journal of [...(from ? [from.journal] : []), ...firstJournals]) {
      this.#journals.add(journal);
    }
    await this.#host.replay(shard, epoch, { from, firstJournals });
    return this.#epochs.write(shard, { owner, firstJournals: [] }, epoch);
  }

  /** Gives few shards at a time, because calls wait for the next owner. Without a next owner, gives all at once. */
  #giveInTurn(shard: number): Promise<boolean> {
    if (this.#members.preferredFor(shard) === undefined) return this.#giveBack(shard);
    return this.#gives.run(() => {
      // Meanwhile the next host may have ended, or this host may have lost the shard.
      const preferred = this.#members.preferredFor(shard);
      const isToGive = preferred !== undefined && preferred !== this.#lease.id;
      if (!(isToGive || this.#lease.leaving) || !this.#has(shard)) return undefined;
      return this.#giveBack(shard);
    });
  }

  /** True for an open shard, and for a shard whose epoch still names this host because its return failed half-way. */
  #has(shard: number): boolean {
    return this.#open.has(shard) || this.#epochs.get(shard)?.owner === this.#lease.id;
  }

  async #giveBack(shard: number): Promise<boolean> {
    const { id } = this.#lease;
    try {
      const known = this.#epochs.get(shard);
      const opened = this.#open.get(shard);
      const isWritten = await this.#host.handOver(shard);
      // The host has a new name. The next owner of the shard reads the journal of the former name.
      if (this.#lease.id !== id) return true;
      if (opened !== undefined && !isWritten)
        throw new Error("Cannot write its commits to its keys");
      this.#open.delete(shard);
      if (!known) return true;
      // If this host opened the shard, all commits are in its keys. Otherwise this host has committed nothing to it.
      await this.#epochs.write(shard, { ...known, owner: null }, opened ?? known.sequence);
      return true;
    } catch (error) {
      this.#logger.debug({ err: error, shard }, "shard not given back");
      // Takes a new name, so that the shard's next owner finishes its commits. Otherwise `stop` would retry for ever.
      if (this.#open.has(shard)) this.startAnew();
      await this.#epochs.relearn(shard);
      return false;
    }
  }

  #drop(shard: number): void {
    // The reason is logged once, not once for each shard.
    if (this.#open.delete(shard)) this.#logger.debug({ shard }, "shard dropped");
    this.#host.drop(shard);
  }
}
