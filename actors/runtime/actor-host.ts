/**
 * Runs the actors of the shards that this process owns: takes their messages from the bus, and stores and sends the
 * effects.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Logger } from "pino";
import { ActorError } from "../../schemas/errors.ts";
import { HAND_OVER_MS_MAX, HAND_OVER_POLL_MS, HOST_CALLS_MAX } from "../../schemas/limits.ts";
import {
  liveSubject,
  openedSubject,
  shardSubjects,
  stateBucket,
  stateSubjects,
} from "../../schemas/subjects.ts";
import { Activations } from "./activation/activations.ts";
import { tell } from "./bus/ask.ts";
import type { Bus, BusSubscription, ReceivedMessage } from "./bus/bus.ts";
import { readCalls } from "./calls/call-wire.ts";
import { forwardOperatorCalls } from "./calls/operator-calls.ts";
import { GroupCommit } from "./commit/group-commit.ts";
import { JournalReplay, listJournals } from "./commit/journal-replay.ts";
import type { AnyActorDefinition } from "./kinds/define-actor.ts";
import type { AnyHostedDefinition } from "./kinds/define-hosted.ts";
import type { Clock } from "./lib/clock.ts";
import { bury } from "./mail/dead-letters.ts";
import { type ReaderParts, readDeliveries } from "./mail/delivery-reader.ts";
import { DirectMail } from "./mail/direct-mail.ts";
import { watchTimeOfDay } from "./mail/early-reminders.ts";
import { mailStreamOf, OutboxRelay, readSentMarks } from "./mail/outbox-relay.ts";
import type { ServiceCounts } from "./observe/service-counts.ts";
import { Placement } from "./placement/placement.ts";
import type { PlacementHost } from "./placement/placement-host.ts";
import type { Answer, IncomingCall } from "./shards/incoming.ts";
import { Outbox } from "./shards/outbox.ts";
import { type ReadAddress, Shard } from "./shards/shard.ts";
import { StateStore } from "./state/state-store.ts";

export interface ActorHostParts {
  bus: Bus;
  definitions: readonly AnyActorDefinition[];
  /** Kinds whose messages run an app's code. */
  hosted?: readonly AnyHostedDefinition[];
  /** The first part of this host's id, by which operators recognize the host. */
  hostName: string;
  /** Limit of the bytes of rows in memory. Default: ACTIVATION_BYTES_MAX. */
  rowBytesMax?: number;
  /** The number of state streams. */
  buckets: number;
  clock: Clock;
  logger: Logger;
  counts: ServiceCounts;
}

export class ActorHost {
  readonly placement: Placement;
  readonly #parts: ActorHostParts;
  readonly #stores: readonly StateStore[];
  readonly #commits: readonly GroupCommit[];
  readonly #replays: readonly JournalReplay[];
  readonly #relay: OutboxRelay;
  readonly #directMail: DirectMail;
  readonly #activations: Activations;
  readonly #shards = new Map<number, Shard>();
  readonly #subscriptions = new Map<Shard, BusSubscription>();
  readonly #stopped = new AbortController();
  #callsInFlight = 0;

  constructor(parts: ActorHostParts) {
    const { bus, clock, logger } = parts;
    this.#parts = parts;
    this.#stores = Array.from(
      { length: parts.buckets },
      (_, index) => new StateStore(bus, stateSubjects(stateBucket(index))),
    );
    this.#replays = this.#stores.map(({ subjects }) => new JournalReplay(bus, subjects));
    const drained = () => {
      for (const commit of this.#commits) commit.outboxDrained();
    };
    const reloaded = (shard: Shard) => this.#directMail.startKnowing(shard);
    const owns = async (shard: Shard) => this.#owns(shard);
    this.#relay = new OutboxRelay({ bus, clock, logger, drained, owns, reloaded });
    const durable = parts.definitions.filter((definition) => definition.durable);
    const kinds = new Set(durable.map(({ contract }) => contract.kind));
    this.#directMail = new DirectMail({
      bus,
      logger,
      shards: this.#shards,
      commitTogether: (one, other) => this.#commitOf(one.number) === this.#commitOf(other.number),
      isDurable: (kind) => kinds.has(kind),
      deliver: this.#deliver,
      publish: (shard) => this.#relay.add(shard),
    });
    this.#commits = this.#stores.map((store) => this.#newCommit(store));
    this.#activations = new Activations({
      definitions: parts.definitions,
      hosted: parts.hosted,
      rowBytesMax: parts.rowBytesMax,
      clock,
      logger,
      load: async ({ number }, definition, address) => {
        await this.#commitOf(number).journal.flushed(address);
        return this.#storeOf(number).load(definition, address);
      },
      markDirty: (activation) => this.#commitOf(activation.shard).add(activation),
      publishLive: (shard, address, texts) => this.#publishLive(shard, address, texts),
      confirm: async (shard) => this.#owns(shard),
      answerRead: (shard, respond, answer) => this.#answerRead(shard, respond, answer),
      bury: async (address, delivery, error) => {
        const [kind = ""] = address.split(".", 1);
        parts.counts.fail(kind, delivery.message, error);
        await bury({ bus, clock, logger }, address, delivery, error);
      },
    });
    this.placement = new Placement({
      bus,
      clock,
      logger,
      stores: this.#stores,
      hostName: parts.hostName,
      host: {
        openJournal: (shard, host) => this.#commitOf(shard).journal.open(host),
        replay: (shard, epoch, sources) => this.#replay(shard, epoch, sources),
        open: (shard, epoch, host) => this.#open(shard, epoch, host),
        handOver: (shard) => this.#handOver(shard),
        drop: (shard) => this.#drop(shard),
        renamed: () => this.#stopJournals(),
        hasJournal: async (host) =>
          (await Promise.all(this.#replays.map((replay) => replay.exists(host)))).includes(true),
        forgetJournal: (host) => this.#forgetJournal(host),
        releaseJournal: (host) => this.#replays.forEach((replay) => void replay.release(host)),
      },
    });
  }

  /** Actors in memory. */
  get activations(): number {
    return this.#activations.count;
  }

  /** Calls that are not answered yet. */
  get callsInFlight(): number {
    return this.#callsInFlight;
  }

  /** Joins the hosts: takes a lease, and then the shards that the placement assigns to this host. */
  async start(): Promise<void> {
    const { bus } = this.#parts;
    const journals = await Promise.all(
      this.#stores.map(({ subjects }) => listJournals(bus, subjects)),
    );
    await this.placement.start(journals.flat());
    void this.#activations.passivateUntil(this.#stopped.signal);
    const held = { stores: this.#stores, shards: this.#shards, deliver: this.#deliver };
    void watchTimeOfDay({ ...this.#parts, ...held }, this.#stopped.signal);
    forwardOperatorCalls(bus, this.#stopped.signal);
  }

  /** Finishes its messages, gives its shards to other hosts, and leaves. */
  async stop(): Promise<void> {
    await this.placement.stop();
    this.#stopped.abort();
    this.#stopJournals();
    await this.#forgetOwnJournal();
  }

  #newCommit({ subjects }: StateStore): GroupCommit {
    const { bus, clock, logger } = this.#parts;
    const hostId = () => this.placement.hostId;
    return new GroupCommit({
      ...{ bus, subjects, clock, logger },
      host: {
        get id() {
          return hostId();
        },
        directMail: this.#directMail,
        shardOf: (activation) => this.#shards.get(activation.shard),
        committed: (shard) => this.#relay.add(shard),
        startAnew: () => this.placement.startAnew(),
      },
    });
  }

  #stopJournals(): void {
    for (const { journal } of this.#commits) journal.stop();
  }

  async #replay(...[number, epoch, sources]: Parameters<PlacementHost["replay"]>): Promise<void> {
    const { subjects } = this.#storeOf(number);
    const fence = { sequence: epoch, subject: subjects.epoch(number) };
    const replay = ofBucket(this.#replays, number);
    await replay.replay(number, fence, sources, this.placement.hostId);
  }

  async #open(number: number, epoch: number, host: string): Promise<void> {
    const { bus, clock, logger } = this.#parts;
    const { subjects } = this.#storeOf(number);
    // This host has written its epoch, so commits of a former owner are stored by now, or will be refused.
    const [stored, { marks, revisions: sentRevisions }] = await Promise.all([
      this.#storeOf(number).read(subjects.outbox(number)),
      readSentMarks(bus, number),
    ]);
    const outbox = new Outbox(stored.text, marks, mailStreamOf(bus));
    const { shards } = bus.layout;
    const shard = new Shard({ number, epoch, host, subjects, outbox, sentRevisions, shards });
    // A process that was suspended may have read the outbox of the shard's next owner, which delivers this mail
    // itself. A host that took a new name meanwhile has no journal under the name in the epoch.
    if (!(await this.#owns(shard)) || this.placement.hostId !== host) {
      throw new Error(`Cannot open shard ${number}: another host has taken it`);
    }
    this.#shards.set(number, shard);
    this.#directMail.startKnowing(shard);
    // Subscribes without a queue group: in a group, a former owner that is suspended would receive every other call.
    const subscription = bus.hearBelow(
      shardSubjects(number),
      (heard) => this.#receive(shard, heard),
      {
        // Without a connection or lease, another host may own the shard; calls then go through the server to it.
        isHere: () => bus.connected && this.placement.holdsLease(),
        failed: (error) => logger.error({ err: error, shard: number }, "subscription failed"),
      },
    );
    this.#subscriptions.set(shard, subscription);
    // Announces the shard on the subscription's connection, so that the server handles the subscription first.
    tell(bus, openedSubject(number), "");
    if (outbox.entries.length > 0) this.#relay.add(shard);
    const { isHosted } = this.#activations;
    readDeliveries({ bus, clock, logger, deliver: this.#deliver, isHosted }, shard);
  }

  /** Takes no more messages, finishes those in progress, drops the shard. The next owner delivers waiting mail. */
  async #handOver(number: number): Promise<boolean> {
    const { clock, logger } = this.#parts;
    const shard = this.#shards.get(number);
    if (!shard) return false;
    const { journal } = this.#commitOf(number);
    shard.status = "leaving";
    shard.closing.abort();
    // Messages that are on their way still arrive, and are answered as misdirected.
    await this.#subscriptions.get(shard)?.drain();
    this.#activations.leave(shard);
    this.#directMail.publishAll(shard);
    const giveUpAt = clock.monotonic() + HAND_OVER_MS_MAX;
    while (!this.#activations.isSettled(shard) && this.#shards.get(number) === shard) {
      if (clock.monotonic() > giveUpAt) {
        logger.warn({ shard: number }, "shard handed over with messages unfinished");
        break;
      }
      await clock.wait(HAND_OVER_POLL_MS);
    }
    // From now on no commit includes a change of the shard.
    shard.status = "gone";
    this.#activations.drop(shard);
    while (this.#commitOf(number).isCommitting(shard) && clock.monotonic() < giveUpAt) {
      await clock.wait(HAND_OVER_POLL_MS);
    }
    const flushed = new AbortController();
    await Promise.race([
      journal.flushedShard(shard).then(() => flushed.abort()),
      clock.wait(Math.max(0, giveUpAt - clock.monotonic()), flushed.signal),
    ]);
    const isWritten =
      this.#shards.get(number) === shard &&
      !this.#commitOf(number).isCommitting(shard) &&
      !journal.holds(shard);
    this.#drop(number);
    return isWritten;
  }

  #drop(number: number): void {
    const shard = this.#shards.get(number);
    if (!shard) return;
    this.#shards.delete(number);
    shard.status = "gone";
    shard.closing.abort();
    this.#subscriptions.get(shard)?.close();
    this.#subscriptions.delete(shard);
    this.#activations.drop(shard);
    this.#directMail.drop(shard);
  }

  /** Removes this host's journal if it is empty. Otherwise the next owners apply its commits, and then remove it. */
  async #forgetOwnJournal(): Promise<void> {
    if (!this.#commits.every(({ journal }) => journal.isEmpty)) return;
    try {
      await this.#forgetJournal(this.placement.hostId);
    } catch (error) {
      this.#parts.logger.warn({ err: error }, "journal not finished, another host replays it");
    }
  }

  async #forgetJournal(host: string): Promise<void> {
    await Promise.all(this.#replays.map((replay) => replay.remove(host)));
  }

  #receive(shard: Shard, heard: ReceivedMessage): void {
    const { bus, clock } = this.#parts;
    const arrivedAt = clock.monotonic();
    const calls = readCalls(bus, heard, clock.now());
    const to = shard.readAddress(heard.subject);
    for (const call of calls) {
      if (to) {
        this.#count(to.kind, call, arrivedAt);
        this.#take(shard, to, call);
      } else call.respond({ refusal: new ActorError("invalid_request", NO_ADDRESS) });
    }
  }

  #take(shard: Shard, to: ReadAddress, call: IncomingCall): void {
    if (shard.status !== "open") {
      call.respond({ misdirected: true });
      return;
    }
    try {
      if (this.#callsInFlight > HOST_CALLS_MAX) {
        const message = `Cannot call ${to.kind}: its host has ${HOST_CALLS_MAX} calls in flight`;
        throw new ActorError("busy", message, { retryAfterS: 1 });
      }
      this.#activations.forCall(shard, to).call(call);
    } catch (error) {
      if (!(error instanceof ActorError)) throw error;
      call.respond({ refusal: error });
    }
  }

  #count(kind: string, call: IncomingCall, arrivedAt: number): void {
    const { clock, counts } = this.#parts;
    const { respond } = call;
    this.#callsInFlight += 1;
    call.respond = (answer) => {
      this.#callsInFlight -= 1;
      counts.count(kind, call.message, answer, clock.monotonic() - arrivedAt);
      respond(answer);
    };
  }

  readonly #deliver: ReaderParts["deliver"] = (to, address, delivery) => {
    const { clock, counts } = this.#parts;
    this.#activations.deliver(to, address, counts.countDelivery(address.kind, delivery, clock));
  };

  /** Verifies that this host owns the shard before it answers a read, because the fence protects only writes. */
  #answerRead(shard: Shard, respond: IncomingCall["respond"], answer: Answer): void {
    const owned = this.#owns(shard);
    if (typeof owned === "boolean") respond(owned ? answer : { misdirected: true });
    else void owned.then((sure) => respond(sure ? answer : { misdirected: true }));
  }

  /** Decides immediately if the lease surely holds or the shard is lost; otherwise reads the epoch from the bus. */
  #owns(shard: Shard): boolean | Promise<boolean> {
    if (shard.status === "gone") return false;
    if (this.#surelyOwns(shard)) return true;
    shard.confirmation ??= this.#confirm(shard);
    return shard.confirmation;
  }

  #surelyOwns(shard: Shard): boolean {
    const { placement } = this;
    return shard.status !== "gone" && placement.holdsLease() && placement.hostId === shard.host;
  }

  /**
   * Publishes live updates without an acknowledgement: after a disconnection or an empty update, subscribers read the
   * state again. If this host may have lost the shard, its updates may be outdated, so it sends an empty update.
   */
  #publishLive(shard: Shard, address: string, texts: readonly string[]): void {
    const shown = texts.length === 0 || this.#surelyOwns(shard) ? texts : [""];
    for (const text of shown) this.#parts.bus.publishFirst(liveSubject(address), text);
  }

  async #confirm(shard: Shard): Promise<boolean> {
    // All reads of this turn of the event loop share one check. A later read needs a new check, because another host
    // may have taken the shard after the last one.
    await nextTurn();
    shard.confirmation = undefined;
    try {
      return await this.placement.confirm(shard.number, shard.epoch);
    } catch (error) {
      this.#parts.logger.warn({ err: error, shard: shard.number }, "ownership not confirmed");
      return false;
    }
  }

  #storeOf(shard: number): StateStore {
    return ofBucket(this.#stores, shard);
  }

  #commitOf(shard: number): GroupCommit {
    return ofBucket(this.#commits, shard);
  }
}

/** Returns the part that belongs to the state bucket of the shard. */
function ofBucket<T>(buckets: readonly T[], shard: number): T {
  const one = buckets[shard % buckets.length];
  if (one === undefined) throw new Error("Cannot host actors: there is no state bucket");
  return one;
}

const NO_ADDRESS = "Cannot read address: a key is written as encodeKey writes it, on its own shard";
