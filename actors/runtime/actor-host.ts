/** Runs the actors of the shards this process owns: takes their messages off the bus and brings their effects back. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Msg, Subscription } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { ActorError } from "../../schemas/errors.ts";
import { HAND_OVER_MS_MAX, HAND_OVER_POLL_MS, HOST_CALLS_MAX } from "../../schemas/limits.ts";
import { liveSubject, shardSubjects, stateBucket, stateSubjects } from "../../schemas/subjects.ts";
import { Activations } from "./activations.ts";
import type { Bus } from "./bus.ts";
import { readCall } from "./call-wire.ts";
import type { Clock } from "./clock.ts";
import { bury } from "./dead-letters.ts";
import type { AnyActorDefinition } from "./define-actor.ts";
import { type ReaderParts, readMail, readReminders } from "./delivery-reader.ts";
import { GroupCommit } from "./group-commit.ts";
import type { Answer, Delivery, IncomingCall } from "./incoming.ts";
import { Outbox } from "./outbox.ts";
import { OutboxRelay, readSentMark } from "./outbox-relay.ts";
import { Placement } from "./placement.ts";
import type { ServiceCounts } from "./service-counts.ts";
import { Shard } from "./shard.ts";
import { StateStore } from "./state-store.ts";

export interface ActorHostParts {
  bus: Bus;
  definitions: readonly AnyActorDefinition[];
  /** The start of this host's id, for operators. */
  hostName: string;
  /** Copies of each state stream, and how many such streams there are. */
  replicas: number;
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
  readonly #relay: OutboxRelay;
  readonly #activations: Activations;
  readonly #shards = new Map<number, Shard>();
  readonly #subscriptions = new Map<Shard, Subscription>();
  readonly #stopped = new AbortController();
  #callsInFlight = 0;

  constructor(parts: ActorHostParts) {
    const { bus, clock, logger } = parts;
    this.#parts = parts;
    this.#stores = Array.from(
      { length: parts.buckets },
      (_, index) => new StateStore(bus, stateSubjects(stateBucket(index))),
    );
    this.#commits = this.#stores.map(
      () =>
        new GroupCommit({
          bus,
          clock,
          logger,
          replicas: parts.replicas,
          host: {
            shardOf: (activation) => this.#shards.get(activation.shard),
            committed: (shard) => this.#relay.add(shard),
            verify: (shards) => this.#verify(shards),
            abandon: (shards) => {
              for (const { number } of shards) this.placement.retake(number);
            },
          },
        }),
    );
    const drained = () => {
      for (const commit of this.#commits) commit.outboxDrained();
    };
    this.#relay = new OutboxRelay({ bus, clock, logger, drained });
    this.#activations = new Activations({
      definitions: parts.definitions,
      clock,
      logger,
      load: (shard, definition, address) => this.#storeOf(shard.number).load(definition, address),
      markDirty: (activation) => this.#commitOf(activation.shard).add(activation),
      publishLive: ({ address }, texts) => this.#publishLive(address, texts),
      answerRead: (shard, _, respond, answer) => this.#answerRead(shard, respond, answer),
      bury: async (address, delivery, error) => {
        parts.counts.fail(kindOf(address), delivery.message, error);
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
        open: (shard, epoch) => this.#open(shard, epoch),
        handOver: (shard) => this.#handOver(shard),
        drop: (shard) => this.#drop(shard),
      },
    });
  }

  /** Actors in memory. */
  get activations(): number {
    return this.#activations.count;
  }

  /** Joins the hosts: takes a lease, then shards as they fall to it. */
  async start(): Promise<void> {
    await this.placement.start();
    void this.#activations.passivateUntil(this.#stopped.signal);
  }

  /** Finishes what was taken, gives the shards to other hosts, and leaves. */
  async stop(): Promise<void> {
    await this.placement.stop();
    this.#stopped.abort();
  }

  async #open(number: number, epoch: number): Promise<void> {
    const { bus, clock, logger } = this.#parts;
    const { subjects } = this.#storeOf(number);
    // After the epoch is written: what a former owner was still committing is there by now, or will be refused.
    const [stored, { mark, revision }] = await Promise.all([
      this.#storeOf(number).read(subjects.outbox(number)),
      readSentMark(bus, number),
    ]);
    const outbox = new Outbox(stored.text, mark);
    const shard = new Shard({ number, epoch, subjects, outbox, sentRevision: revision });
    this.#shards.set(number, shard);
    // No queue group: a former owner that is frozen must not be given every other call.
    const subscription = bus.connection.subscribe(shardSubjects(number), {
      callback: (error, msg) => {
        if (error) logger.error({ err: error, shard: number }, "subscription failed");
        else this.#receive(shard, msg);
      },
    });
    this.#subscriptions.set(shard, subscription);
    if (outbox.entries.length > 0) this.#relay.add(shard);
    const deliver: ReaderParts["deliver"] = (to, address, delivery) => {
      this.#activations.deliver(to, address, this.#countDelivery(address.kind, delivery));
    };
    void readMail({ bus, clock, logger, deliver }, shard);
    void readReminders({ bus, clock, logger, deliver }, shard);
  }

  /** Stops taking messages, finishes those it has, and forgets the shard. Mail that waits is the next owner's. */
  async #handOver(number: number): Promise<void> {
    const { clock, logger } = this.#parts;
    const shard = this.#shards.get(number);
    if (!shard) return;
    shard.status = "leaving";
    shard.closing.abort();
    // What is on its way to us by now still comes, and is sent on.
    await this.#subscriptions.get(shard)?.drain();
    const giveUpAt = clock.monotonic() + HAND_OVER_MS_MAX;
    while (!shard.isSettled && this.#shards.get(number) === shard) {
      if (clock.monotonic() > giveUpAt) {
        logger.warn({ shard: number }, "shard handed over with messages unfinished");
        break;
      }
      await clock.wait(HAND_OVER_POLL_MS);
    }
    this.#drop(number);
  }

  #drop(number: number): void {
    const shard = this.#shards.get(number);
    if (!shard) return;
    this.#shards.delete(number);
    shard.status = "gone";
    shard.closing.abort();
    this.#subscriptions.get(shard)?.unsubscribe();
    this.#subscriptions.delete(shard);
    this.#activations.drop(shard);
  }

  #receive(shard: Shard, msg: Msg): void {
    const { clock } = this.#parts;
    const call = readCall(msg, clock.now());
    if (!call) return;
    const address = shard.readAddress(msg.subject);
    if (!address) {
      call.respond({ refusal: new ActorError("invalid_request", NO_ADDRESS) });
      return;
    }
    const { kind, key } = address;
    this.#count(kind, call);
    if (shard.status !== "open") {
      call.respond({ misdirected: true });
      return;
    }
    try {
      if (this.#callsInFlight > HOST_CALLS_MAX) {
        const message = `Cannot call ${kind}: its host has ${HOST_CALLS_MAX} calls in flight`;
        throw new ActorError("busy", message, { retryAfterS: 1 });
      }
      this.#activations.forCall(shard, kind, key).call(call);
    } catch (error) {
      if (!(error instanceof ActorError)) throw error;
      call.respond({ refusal: error });
    }
  }

  #count(kind: string, call: IncomingCall): void {
    const { clock, counts } = this.#parts;
    const startedAt = clock.monotonic();
    const { respond } = call;
    this.#callsInFlight += 1;
    call.respond = (answer) => {
      this.#callsInFlight -= 1;
      counts.count(kind, call.message, answer, clock.monotonic() - startedAt);
      respond(answer);
    };
  }

  /** Mail and reminders are requests too, which are over when their effect, or their dead letter, is durable. */
  #countDelivery(kind: string, delivery: Delivery): Delivery {
    const { clock, counts } = this.#parts;
    const startedAt = clock.monotonic();
    const done = () => {
      counts.count(kind, delivery.message, { reply: "" }, clock.monotonic() - startedAt);
      delivery.done();
    };
    return { ...delivery, done };
  }

  /** Nothing was written that a lost fence would have stopped, so ownership is made sure of first. */
  #answerRead(shard: Shard, respond: IncomingCall["respond"], answer: Answer): void {
    if (shard.status === "gone") respond({ misdirected: true });
    else if (this.placement.holdsLease()) respond(answer);
    else {
      shard.confirmation ??= this.#confirm(shard);
      void shard.confirmation.then((owned) => respond(owned ? answer : { misdirected: true }));
    }
  }

  /** Nobody is waited for: who watches asks for the state after a disconnection. */
  #publishLive(address: string, texts: readonly string[]): void {
    const { connection, connected } = this.#parts.bus;
    if (!connected || connection.isDraining() || connection.isClosed()) return;
    for (const text of texts) connection.publish(liveSubject(address), text);
  }

  async #confirm(shard: Shard): Promise<boolean> {
    // Reads of this turn share it. A later one asks anew: what the leader said before it came proves nothing for it.
    await nextTurn();
    shard.confirmation = undefined;
    try {
      return await this.placement.confirm(shard.number, shard.epoch);
    } catch (error) {
      this.#parts.logger.warn({ err: error, shard: shard.number }, "ownership not confirmed");
      return false;
    }
  }

  async #verify(shards: ReadonlySet<Shard>): Promise<void> {
    await Promise.all([...shards].map((shard) => this.#confirm(shard)));
  }

  #storeOf(shard: number): StateStore {
    const store = this.#stores[shard % this.#stores.length];
    if (!store) throw new Error("Cannot host actors: there is no state bucket");
    return store;
  }

  #commitOf(shard: number): GroupCommit {
    const commit = this.#commits[shard % this.#commits.length];
    if (!commit) throw new Error("Cannot host actors: there is no state bucket");
    return commit;
  }
}

/** Of `<kind>.<key>`. */
const kindOf = (address: string) => address.slice(0, address.indexOf("."));

const NO_ADDRESS = "Cannot read address: a key is written as encodeKey writes it, on its own shard";
