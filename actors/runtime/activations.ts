/** The actors a host has in memory: loads them when a message comes, and lets them go when they are idle. */
import type { Logger } from "pino";
import { ZodError } from "zod";
import { ActorError } from "../../schemas/errors.ts";
import {
  ACTIVATION_IDLE_MS,
  ACTIVATIONS_MAX,
  EVICTED_SHARE,
  LOADS_IN_FLIGHT_MAX,
  MAIL_RETRY_MS,
  MAIL_RETRY_MS_MAX,
  MAIL_TRIES_MAX,
  PASSIVATION_SWEEP_MS,
  VOLATILE_IDLE_MS,
} from "../../schemas/limits.ts";
import { addressOf } from "../../schemas/subjects.ts";
import { Activation } from "./activation.ts";
import type { ActivationHost } from "./activation-host.ts";
import type { Clock } from "./clock.ts";
import type { AnyActorDefinition } from "./define-actor.ts";
import { InFlight } from "./in-flight.ts";
import type { Delivery, Waiting } from "./incoming.ts";
import type { Shard } from "./shard.ts";
import { decodeActor, type LoadedActor } from "./stored-actor.ts";

/** What the activations of all shards need of their host, besides themselves. */
export type ActivationsParts = Pick<
  ActivationHost,
  "clock" | "logger" | "markDirty" | "publishLive"
> & {
  definitions: readonly AnyActorDefinition[];
  /** Reads an actor of the shard from the store. */
  load(shard: Shard, definition: AnyActorDefinition, address: string): Promise<LoadedActor>;
  answerRead(shard: Shard, ...answer: Parameters<ActivationHost["answerRead"]>): void;
  /** Keeps a delivery that cannot be handled. Resolves when that is durable; never rejects. */
  bury(address: string, delivery: Delivery, error: Error): Promise<void>;
};

export class Activations {
  readonly #parts: ActivationsParts;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #definitions: ReadonlyMap<string, AnyActorDefinition>;
  readonly #shards = new Set<Shard>();
  readonly #loads = new InFlight(LOADS_IN_FLIGHT_MAX);
  #count = 0;

  constructor(parts: ActivationsParts) {
    this.#parts = parts;
    this.#clock = parts.clock;
    this.#logger = parts.logger;
    this.#definitions = new Map(parts.definitions.map((one) => [one.contract.kind, one]));
  }

  get count(): number {
    return this.#count;
  }

  /** The actor for a call. Throws ActorError where there is no such kind, or memory is full of busy ones. */
  forCall(shard: Shard, kind: string, key: string): Activation {
    const definition = this.#definitions.get(kind);
    if (!definition) throw new ActorError("not_found", `Cannot call "${kind}": no such kind`);
    const known = shard.activations.get(addressOf(kind, key));
    if (known) return known;
    if (this.#count >= ACTIVATIONS_MAX) this.#evict();
    if (this.#count >= ACTIVATIONS_MAX) {
      const message = `Cannot call ${kind}: its host has ${ACTIVATIONS_MAX} busy actors`;
      throw new ActorError("busy", message, { retryAfterS: 1 });
    }
    return this.#activate(shard, definition, key);
  }

  /** Gives mail or a reminder to its actor. A kind that does not exist makes it a dead letter. */
  deliver(shard: Shard, { kind, key }: { kind: string; key: string }, delivery: Delivery): void {
    if (shard.status === "gone") return;
    const definition = this.#definitions.get(kind);
    const address = addressOf(kind, key);
    if (definition) {
      const known = shard.activations.get(address);
      // Mail in flight is bounded by itself; the idle actors it leaves behind are not.
      if (!known && this.#count >= ACTIVATIONS_MAX) this.#evict();
      (known ?? this.#activate(shard, definition, key)).deliver(delivery);
      return;
    }
    const error = new ActorError("not_found", `Cannot deliver to "${kind}": no such kind`);
    void this.#parts.bury(address, delivery, error).then(delivery.done);
  }

  /** Ends every activation of a shard: callers ask again elsewhere. */
  drop(shard: Shard): void {
    this.#shards.delete(shard);
    this.#count -= shard.activations.size;
    for (const activation of shard.activations.values()) activation.end();
    shard.activations.clear();
  }

  /** Lets idle actors go, from now until the signal. */
  async passivateUntil(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#clock.wait(PASSIVATION_SWEEP_MS, signal);
      this.#passivate();
    }
  }

  #activate(
    shard: Shard,
    definition: AnyActorDefinition,
    key: string,
    { pauseMs, careful } = { pauseMs: 0, careful: false },
  ): Activation {
    const address = addressOf(definition.contract.kind, key);
    const { markDirty, publishLive, answerRead, bury } = this.#parts;
    const activation = new Activation(
      {
        clock: this.#clock,
        logger: this.#logger,
        markDirty,
        publishLive,
        answerRead: (...answer) => answerRead(shard, ...answer),
        bury: (_, delivery, error) => bury(address, delivery, error),
        restart: (ended, waiting) => this.#restart(shard, ended, waiting),
      },
      { definition, address, key, shard: shard.number },
      { careful },
    );
    this.#shards.add(shard);
    shard.activations.set(address, activation);
    this.#count += 1;
    void this.#load(shard, activation, pauseMs);
    return activation;
  }

  /** Reads the actor, again and again while deliveries wait for it: later mail must not overtake them. */
  async #load(shard: Shard, activation: Activation, pauseMs: number): Promise<void> {
    const { definition, address } = activation;
    const initial = () => decodeActor(definition, undefined, new Map());
    let nextPauseMs = MAIL_RETRY_MS;
    for (let tries = 1; ; tries++) {
      if (pauseMs > 0) await this.#clock.wait(pauseMs);
      if (activation.isEnded) return;
      try {
        const { load } = this.#parts;
        return activation.start(
          definition.durable
            ? await this.#loads.run(() => load(shard, definition, address))
            : initial(),
        );
      } catch (error) {
        const waits = await this.#afterFailedLoad(activation, tries, error);
        if (!waits) return this.#forget(shard, activation);
      }
      pauseMs = nextPauseMs;
      nextPauseMs = Math.min(2 * nextPauseMs, MAIL_RETRY_MS_MAX);
    }
  }

  /** True when a delivery waits. Stored bytes that cannot be read make it a dead letter; a bus that is away does not. */
  async #afterFailedLoad(activation: Activation, tries: number, error: unknown): Promise<boolean> {
    const { definition, address, key } = activation;
    const { kind } = definition.contract;
    this.#logger.error({ err: error, kind, key, tries }, "actor not loaded");
    const unreadable = error instanceof ZodError || error instanceof SyntaxError;
    const message = `Cannot load ${address}: see the log`;
    const refusal = new ActorError("unavailable", message, { retryAfterS: 1 });
    // A bus that is away passes: callers ask again, here or where the shard is by then.
    const delivery = activation.failToStart(unreadable ? { refusal } : { misdirected: true });
    if (!delivery) return false;
    if (unreadable && tries >= MAIL_TRIES_MAX) {
      await this.#parts.bury(address, delivery, error);
      activation.giveUpFirst();
    }
    return true;
  }

  /** A successor takes what is to be delivered, in the same order, and deliveries after a pause: what failed at once may do so again. */
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

  #forget(shard: Shard, activation: Activation): void {
    if (shard.activations.get(activation.address) !== activation) return;
    shard.activations.delete(activation.address);
    this.#count -= 1;
  }

  #passivate(): void {
    const now = this.#clock.monotonic();
    for (const { shard, activation } of this.#idle()) {
      const idleMs = activation.definition.durable ? ACTIVATION_IDLE_MS : VOLATILE_IDLE_MS;
      if (now - activation.lastUsedAt >= idleMs) this.#forget(shard, activation);
    }
  }

  /** Makes room: those who were longest idle go, and what is only in memory goes last. */
  #evict(): void {
    const idle = [...this.#idle()].toSorted(
      ({ activation: one }, { activation: other }) =>
        Number(other.definition.durable) - Number(one.definition.durable) ||
        one.lastUsedAt - other.lastUsedAt,
    );
    const gone = idle.slice(0, Math.ceil(ACTIVATIONS_MAX * EVICTED_SHARE));
    for (const { shard, activation } of gone) this.#forget(shard, activation);
  }

  *#idle(): Generator<{ shard: Shard; activation: Activation }> {
    for (const shard of this.#shards) {
      for (const activation of shard.activations.values()) {
        if (activation.isIdle) yield { shard, activation };
      }
    }
  }
}
