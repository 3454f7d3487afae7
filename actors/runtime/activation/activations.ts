/** The actors that a host has in memory. Loads an actor when a message comes for it, and drops it when it is idle. */
import type { Logger } from "pino";
import { ZodError } from "zod";
import { ActorError } from "../../../schemas/errors.ts";
import {
  ACTIVATION_BYTES_MAX,
  EVICTED_SHARE,
  MAIL_RETRY_MS,
  MAIL_RETRY_MS_MAX,
  MAIL_TRIES_MAX,
} from "../../../schemas/limits.ts";
import { addressOf } from "../../../schemas/subjects.ts";
import type { AnyActorDefinition } from "../kinds/define-actor.ts";
import type { AnyHostedDefinition } from "../kinds/define-hosted.ts";
import type { Clock } from "../lib/clock.ts";
import type { Answer, Delivery, IncomingCall, Waiting } from "../shards/incoming.ts";
import type { ReadAddress, Shard } from "../shards/shard.ts";
import { decodeActor, type LoadedActor } from "../state/stored-actor.ts";
import type { Activated } from "./activated.ts";
import { Activation } from "./activation.ts";
import type { ActivationHost } from "./activation-host.ts";
import { HostedActivation } from "./hosted-activation.ts";

/** A durable actor without messages for this long leaves memory. */
export const ACTIVATION_IDLE_MS = 60_000;
/**
 * Idle time after which an actor whose state is only in memory is dropped: twice the longest window in which such an
 * actor counts something.
 */
export const VOLATILE_IDLE_MS = 600_000;
/**
 * Limits the number of actors in memory, whatever their size; only mail may exceed it. An actor usually takes a few
 * kB.
 */
export const ACTIVATIONS_MAX = 20_000;
/** Interval at which a host looks for idle actors. */
export const PASSIVATION_SWEEP_MS = 1_000;

type AnyActivation = Activation | HostedActivation;
type AnswerRead = [respond: IncomingCall["respond"], answer: Answer];

/** The parts of their host that the activations of all shards use. */
export type ActivationsParts = Pick<ActivationHost, "clock" | "logger"> & {
  definitions: readonly AnyActorDefinition[];
  /** Limit of the bytes of rows in memory. Default: ACTIVATION_BYTES_MAX. */
  rowBytesMax?: number | undefined;
  hosted?: readonly AnyHostedDefinition[] | undefined;
  /** Notifies the host that the activation has a change to commit. */
  markDirty(activation: Activation): void;
  publishLive(shard: Shard, address: string, texts: readonly string[]): void;
  /** Reads an actor of the shard from the store. */
  load(shard: Shard, definition: AnyActorDefinition, address: string): Promise<LoadedActor>;
  /** Resolves with true if this host surely owns the shard. */
  confirm(shard: Shard): Promise<boolean>;
  answerRead(shard: Shard, ...answer: AnswerRead): void;
  /** Stores an undeliverable message as a dead letter. Resolves when the letter is durable; never rejects. */
  bury(address: string, delivery: Delivery, error: Error): Promise<void>;
};

export class Activations {
  readonly #parts: ActivationsParts;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #definitions: ReadonlyMap<string, AnyActorDefinition | AnyHostedDefinition>;
  /** By shard, and in it by address. */
  readonly #shards = new Map<Shard, Map<string, AnyActivation>>();
  /**
   * The closing of each hosted instance whose shard has left this host, by address. No new instance of a key opens
   * before the old one has closed.
   */
  readonly #closing = new Map<string, Promise<void>>();
  /** The loaded state of activations with rows. */
  readonly #loaded = new WeakMap<AnyActivation, LoadedActor>();
  #count = 0;

  constructor(parts: ActivationsParts) {
    this.#parts = parts;
    this.#clock = parts.clock;
    this.#logger = parts.logger;
    const { definitions, hosted = [] } = parts;
    this.#definitions = new Map([...definitions, ...hosted].map((one) => [one.contract.kind, one]));
  }

  /** True for a kind whose messages run an app's code. */
  readonly isHosted = (kind: string): boolean => {
    const definition = this.#definitions.get(kind);
    return definition !== undefined && !("handlers" in definition);
  };

  get count(): number {
    return this.#count;
  }

  /**
   * Returns the actor for a call. Throws ActorError if the kind does not exist, or if memory is full of busy actors.
   */
  forCall(shard: Shard, { kind, key, address }: ReadAddress): Activated {
    const definition = this.#definitions.get(kind);
    if (!definition) throw new ActorError("not_found", `Cannot call "${kind}": no such kind`);
    const known = this.#shards.get(shard)?.get(address);
    if (known) return known;
    if (this.#count >= ACTIVATIONS_MAX) this.#evict();
    if (this.#count >= ACTIVATIONS_MAX) {
      const message = `Cannot call ${kind}: its host has ${ACTIVATIONS_MAX} busy actors`;
      throw new ActorError("busy", message, { retryAfterS: 1 });
    }
    return this.#add(shard, definition, key);
  }

  /**
   * Delivers mail or a reminder to its actor. Stores the message as a dead letter if the kind does not exist, or if the
   * message has a reply: a role with the right to send mail to a kind must not make its calls.
   */
  deliver(shard: Shard, { kind, key }: { kind: string; key: string }, delivery: Delivery): void {
    if (shard.status === "gone") return;
    const definition = this.#definitions.get(kind);
    const address = addressOf(kind, key);
    const { message } = delivery;
    const isCall = definition?.contract.messages[message]?.reply !== undefined;
    if (definition && !isCall) {
      const known = this.#shards.get(shard)?.get(address);
      // Mail in flight has its own limit, so deliveries are never refused here. But mail leaves idle actors in
      // memory, so some idle actors are evicted.
      if (!known && this.#count >= ACTIVATIONS_MAX) this.#evict();
      (known ?? this.#add(shard, definition, key)).deliver(delivery);
      return;
    }
    const error = isCall
      ? new ActorError("invalid_request", `Cannot deliver ${message}: its caller waits for a reply`)
      : new ActorError("not_found", `Cannot deliver to "${kind}": no such kind`);
    void this.#parts.bury(address, delivery, error).then(delivery.done);
  }

  /** Ends all activations of a shard. Callers send their unanswered calls again. */
  drop(shard: Shard): void {
    const activations = this.#shards.get(shard) ?? new Map<string, AnyActivation>();
    this.#shards.delete(shard);
    this.#count -= activations.size;
    for (const activation of activations.values()) {
      activation.end();
      if (activation instanceof HostedActivation) this.#keepClosing(activation);
    }
  }

  /**
   * True when the shard's actors have answered all calls, nothing waits for a commit, and no direct mail that they
   * sent is open.
   */
  isSettled(shard: Shard): boolean {
    if (shard.sends.direct.size > 0) return false;
    const activations = this.#shards.get(shard)?.values() ?? [];
    for (const activation of activations) if (!activation.isSettled) return false;
    return true;
  }

  /** Lets the agents of a shard that moves away finish their messages and close. Another host will open them. */
  leave(shard: Shard): void {
    for (const activation of this.#shards.get(shard)?.values() ?? []) {
      if (activation instanceof HostedActivation) activation.leave();
    }
  }

  /** Drops idle actors, until the signal aborts. */
  async passivateUntil(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#clock.wait(PASSIVATION_SWEEP_MS, signal);
      this.#passivate();
    }
  }

  #add(shard: Shard, definition: AnyActorDefinition | AnyHostedDefinition, key: string): Activated {
    if ("handlers" in definition) return this.#activate(shard, definition, key);
    const address = addressOf(definition.contract.kind, key);
    const { answerRead, bury, confirm } = this.#parts;
    const activation = new HostedActivation(
      {
        clock: this.#clock,
        logger: this.#logger,
        confirm: () => confirm(shard),
        answerRead: (...answer) => answerRead(shard, ...answer),
        bury: (delivery, error) => bury(address, delivery, error),
        forget: (closed) => this.#forget(shard, closed),
      },
      { definition, address, key },
    );
    const closed = this.#closing.get(address);
    if (closed) activation.startAfter(closed);
    this.#keep(shard, activation);
    return activation;
  }

  #keepClosing(activation: HostedActivation): void {
    const { address } = activation;
    const closed = activation.closed.then(() => {
      if (this.#closing.get(address) === closed) this.#closing.delete(address);
    });
    this.#closing.set(address, closed);
  }

  #keep(shard: Shard, activation: AnyActivation): void {
    const activations = this.#shards.get(shard) ?? new Map<string, AnyActivation>();
    this.#shards.set(shard, activations.set(activation.address, activation));
    this.#count += 1;
  }

  #activate(
    shard: Shard,
    definition: AnyActorDefinition,
    key: string,
    { pauseMs, careful } = { pauseMs: 0, careful: false },
  ): Activation {
    const address = addressOf(definition.contract.kind, key);
    const { markDirty, publishLive, answerRead, bury } = this.#parts;
    const activation: Activation = new Activation(
      {
        clock: this.#clock,
        logger: this.#logger,
        markDirty: () => markDirty(activation),
        publishLive: (texts) => publishLive(shard, address, texts),
        answerRead: (...answer) => answerRead(shard, ...answer),
        bury: (delivery, error) => bury(address, delivery, error),
        restart: (waiting) => this.#restart(shard, activation, waiting),
      },
      { definition, address, key, shard: shard.number },
      { careful },
    );
    this.#keep(shard, activation);
    void this.#load(shard, activation, pauseMs);
    return activation;
  }

  /** Loads the actor. Retries while deliveries wait for it, because later mail must not overtake these deliveries. */
  async #load(shard: Shard, activation: Activation, pauseMs: number): Promise<void> {
    const { definition, address } = activation;
    const initial = () => decodeActor(definition, undefined, new Map());
    let nextPauseMs = MAIL_RETRY_MS;
    for (let tries = 1; ; tries++) {
      if (pauseMs > 0) await this.#clock.wait(pauseMs);
      if (activation.isEnded) return;
      try {
        const { load } = this.#parts;
        // The store limits its own reads (`ReadLimits`), so that the rows of large actors delay no other actor.
        const actor = definition.durable ? await load(shard, definition, address) : initial();
        if (definition.rows) this.#loaded.set(activation, actor);
        return activation.start(actor);
      } catch (error) {
        const waits = await this.#afterFailedLoad(activation, tries, error);
        if (!waits) return this.#forget(shard, activation);
      }
      pauseMs = nextPauseMs;
      nextPauseMs = Math.min(2 * nextPauseMs, MAIL_RETRY_MS_MAX);
    }
  }

  /**
   * Handles a failed load. Returns true if a delivery still waits for the actor. After MAIL_TRIES_MAX tries the
   * delivery becomes a dead letter if the stored bytes cannot be read, but not if the bus is unreachable.
   */
  async #afterFailedLoad(activation: Activation, tries: number, error: unknown): Promise<boolean> {
    const { definition, address, key } = activation;
    const { kind } = definition.contract;
    this.#logger.error({ err: error, kind, key, tries }, "actor not loaded");
    const unreadable = error instanceof ZodError || error instanceof SyntaxError;
    const message = `Cannot load ${address}: see the log`;
    const refusal = new ActorError("unavailable", message, { retryAfterS: 1 });
    // If the bus was unreachable, callers send their calls again, to this host or to the shard's next owner.
    const delivery = activation.failToStart(unreadable ? { refusal } : { misdirected: true });
    if (!delivery) return false;
    if (unreadable && tries >= MAIL_TRIES_MAX) {
      await this.#parts.bury(address, delivery, error);
      activation.giveUpFirst();
    }
    return true;
  }

  /**
   * Starts the next activation if messages wait or `careful` is set, and passes it the messages in their order. If
   * deliveries wait, it loads after a pause, because the same failure may follow.
   */
  #restart(shard: Shard, ended: Activation, { deliveries, calls, careful }: Waiting): void {
    this.#forget(shard, ended);
    if (shard.status === "gone") for (const call of calls) call.respond({ misdirected: true });
    else if (careful || deliveries.length + calls.length > 0) {
      const pauseMs = deliveries.length > 0 ? MAIL_RETRY_MS : 0;
      const next = this.#activate(shard, ended.definition, ended.key, { pauseMs, careful });
      for (const delivery of deliveries) next.deliver(delivery);
      for (const call of calls) next.call(call);
    }
  }

  #forget(shard: Shard, activation: AnyActivation): void {
    const activations = this.#shards.get(shard);
    if (activations?.get(activation.address) !== activation) return;
    activations.delete(activation.address);
    this.#count -= 1;
  }

  #passivate(): void {
    const now = this.#clock.monotonic();
    for (const { shard, activation } of this.#idle()) {
      if (now - activation.lastUsedAt >= idleMsOf(activation)) this.#letGo(shard, activation);
    }
    this.#passivateByBytes();
  }

  /** Drops idle activations with rows, the longest idle first, until the rows of the others fit the limit. */
  #passivateByBytes(): void {
    const { rowBytesMax = ACTIVATION_BYTES_MAX } = this.#parts;
    let bytes = 0;
    for (const activations of this.#shards.values()) {
      for (const activation of activations.values()) bytes += this.#rowBytes(activation);
    }
    if (bytes <= rowBytesMax) return;
    for (const { shard, activation } of this.#longestIdle()) {
      const freed = this.#rowBytes(activation);
      if (freed === 0) continue;
      this.#letGo(shard, activation);
      bytes -= freed;
      if (bytes <= rowBytesMax) return;
    }
  }

  #rowBytes(activation: AnyActivation): number {
    return this.#loaded.get(activation)?.rowBytes ?? 0;
  }

  /** Drops an idle activation. A hosted instance stays in memory until it has closed. */
  #letGo(shard: Shard, activation: AnyActivation): void {
    if (activation instanceof HostedActivation) activation.passivate();
    else this.#forget(shard, activation);
  }

  /** Drops the longest idle activations, at most EVICTED_SHARE of the limit; actors only in memory come last. */
  #evict(): void {
    const gone = this.#longestIdle().slice(0, Math.ceil(ACTIVATIONS_MAX * EVICTED_SHARE));
    for (const { shard, activation } of gone) this.#letGo(shard, activation);
  }

  #longestIdle(): { shard: Shard; activation: AnyActivation }[] {
    return [...this.#idle()].sort(
      ({ activation: one }, { activation: other }) =>
        Number(isDurable(other)) - Number(isDurable(one)) || one.lastUsedAt - other.lastUsedAt,
    );
  }

  *#idle(): Generator<{ shard: Shard; activation: AnyActivation }> {
    for (const [shard, activations] of this.#shards) {
      for (const activation of activations.values()) {
        if (activation.isIdle) yield { shard, activation };
      }
    }
  }
}

const isDurable = (activation: AnyActivation) =>
  activation instanceof HostedActivation || activation.definition.durable;

function idleMsOf(activation: AnyActivation): number {
  if (activation instanceof HostedActivation) return activation.idleMs;
  return activation.definition.durable ? ACTIVATION_IDLE_MS : VOLATILE_IDLE_MS;
}
