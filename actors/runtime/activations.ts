/** The actors a host has in memory: loads them when a message comes, and lets them go when they are idle. */
import type { Logger } from "pino";
import { ActorError } from "../../schemas/errors.ts";
import {
  ACTIVATION_IDLE_MS,
  ACTIVATIONS_MAX,
  MAIL_RETRY_MS,
  MAIL_RETRY_MS_MAX,
  MAIL_TRIES_MAX,
  PASSIVATION_SWEEP_MS,
  VOLATILE_IDLE_MS,
} from "../../schemas/limits.ts";
import { addressOf } from "../../schemas/subjects.ts";
import { Activation, type ActivationHost, type Delivery } from "./activation.ts";
import type { Clock } from "./clock.ts";
import type { AnyActorDefinition } from "./define-actor.ts";
import type { Shard } from "./shard.ts";
import { decodeActor, type LoadedActor } from "./stored-actor.ts";

/** What the activations of all shards need of their host, besides themselves. */
export type ActivationsParts = Pick<ActivationHost, "clock" | "logger" | "markDirty"> & {
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
    if (this.#count >= ACTIVATIONS_MAX) this.#passivate({ durableMs: 0, volatileMs: 0 });
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
      this.#passivate({ durableMs: ACTIVATION_IDLE_MS, volatileMs: VOLATILE_IDLE_MS });
    }
  }

  #activate(shard: Shard, definition: AnyActorDefinition, key: string): Activation {
    const address = addressOf(definition.contract.kind, key);
    const { markDirty, answerRead, bury } = this.#parts;
    const activation = new Activation(
      {
        clock: this.#clock,
        logger: this.#logger,
        markDirty,
        answerRead: (...answer) => answerRead(shard, ...answer),
        bury: (_, delivery, error) => bury(address, delivery, error),
        restart: (ended, deliveries) => this.#restart(shard, ended, deliveries),
      },
      { definition, address, key, shard: shard.number },
    );
    this.#shards.add(shard);
    shard.activations.set(address, activation);
    this.#count += 1;
    void this.#load(shard, activation);
    return activation;
  }

  async #load(shard: Shard, activation: Activation): Promise<void> {
    const { definition, address } = activation;
    if (!definition.durable) return activation.start(decodeActor(definition, undefined, new Map()));
    let loaded: LoadedActor;
    try {
      loaded = await this.#parts.load(shard, definition, address);
    } catch (error) {
      this.#logger.error(
        { err: error, kind: definition.contract.kind, key: activation.key },
        "actor not loaded",
      );
      return this.#afterFailedLoad(shard, activation, error);
    }
    activation.start(loaded);
  }

  async #afterFailedLoad(shard: Shard, activation: Activation, error: unknown): Promise<void> {
    const refusal = new ActorError(
      "unavailable",
      `Cannot load ${activation.address}: see the log`,
      {
        retryAfterS: 1,
      },
    );
    const deliveries = activation.failToStart(refusal);
    this.#forget(shard, activation);
    const [first] = deliveries;
    if (!first) return;
    const again = deliveries.map((delivery) => ({ ...delivery, tries: delivery.tries + 1 }));
    if (first.tries + 1 >= MAIL_TRIES_MAX) {
      const cause = error instanceof Error ? error : new Error(String(error));
      await this.#parts.bury(activation.address, first, cause);
      first.done();
      again.shift();
    } else {
      await this.#clock.wait(Math.min(MAIL_RETRY_MS * 2 ** first.tries, MAIL_RETRY_MS_MAX));
    }
    this.#redeliver(shard, activation, again);
  }

  #restart(shard: Shard, ended: Activation, deliveries: Delivery[]): void {
    this.#forget(shard, ended);
    this.#redeliver(shard, ended, deliveries);
  }

  #redeliver(shard: Shard, ended: Activation, deliveries: Delivery[]): void {
    const { kind } = ended.definition.contract;
    for (const delivery of deliveries) this.deliver(shard, { kind, key: ended.key }, delivery);
  }

  #forget(shard: Shard, activation: Activation): void {
    if (shard.activations.get(activation.address) !== activation) return;
    shard.activations.delete(activation.address);
    this.#count -= 1;
  }

  #passivate(idle: { durableMs: number; volatileMs: number }): void {
    const now = this.#clock.monotonic();
    for (const shard of this.#shards) {
      for (const activation of shard.activations.values()) {
        const idleMs = activation.definition.durable ? idle.durableMs : idle.volatileMs;
        if (activation.isIdle && now - activation.lastUsedAt >= idleMs) {
          this.#forget(shard, activation);
        }
      }
    }
  }
}
