/**
 * Runs many clients that call the test kinds while a test injects faults, and records their calls and the replies.
 */

import { Bus } from "../../actors/runtime/bus/bus.ts";
import { BusActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { systemClock as clock } from "../../actors/runtime/lib/clock.ts";
import { type DataLayout, FIRST_LAYOUT } from "../../schemas/data-layout.ts";
import { ActorError } from "../../schemas/errors.ts";
import { counter } from "./counter.ts";
import { ledger } from "./ledger.ts";
import type { Operation } from "./linearizability.ts";
import type { SeededRandom } from "./seeded-random.ts";

const CLIENTS = 200;
/**
 * Maximum pause of a client between two calls. Without pauses, the checker would have millions of calls instead of
 * thousands.
 */
const PAUSE_MS_MAX = 120;
/** Deadline of a call. It is longer than any takeover, also on a busy machine, so no call should fail. */
const DEADLINE_MS = 60_000;

export const COUNTERS = names("counter", 50);
/**
 * Counters that are changed only by mail from other counters. Clients only read them, and their values never
 * decrease.
 */
export const SINKS = names("sink", 10);
export const LEDGERS = names("ledger", 20);

/** Adds the input to a number and returns the sum. Adding 0 reads the number. */
export type Add = Operation<number, number>;

export interface FaultLoadOptions {
  /** One URL for each connection. The clients are distributed over the connections. */
  urls: readonly string[];
  random: SeededRandom;
  /** Number of clients. Default: CLIENTS, which use two processors completely. */
  clients?: number;
  layout?: DataLayout;
}

export class FaultLoad {
  readonly history: Add[] = [];
  /** Descriptions of the calls and sends that failed. */
  readonly failures: string[] = [];
  /** For each ledger and sender, the number of entries that clients sent directly and whose send was acknowledged. */
  readonly entries = new Map<string, number>();
  readonly #buses: readonly Bus[];
  readonly #clients: readonly BusActorClient[];
  readonly #clientCount: number;
  readonly #random: SeededRandom;
  readonly #leaving = new AbortController();
  readonly #options = { deadlineMs: DEADLINE_MS, signal: this.#leaving.signal };
  #stopping = false;
  /** Resolves when clients may call; pending while they are held back. */
  #mayCall: Promise<void> = Promise.resolve();
  #running: Promise<unknown> = Promise.resolve();

  static async connect(options: FaultLoadOptions): Promise<FaultLoad> {
    const { urls, random, clients, layout = FIRST_LAYOUT } = options;
    const buses = await Promise.all(urls.map((url) => Bus.connect({ url, name: "load" })));
    for (const bus of buses) bus.layout = layout;
    return new FaultLoad(buses, random, clients);
  }

  constructor(buses: readonly Bus[], random: SeededRandom, clientCount = CLIENTS) {
    this.#buses = buses;
    this.#clientCount = clientCount;
    this.#clients = buses.map((bus) => new BusActorClient(bus, clock));
    this.#random = random;
  }

  /** Lets the clients begin. */
  start(): void {
    const clients = Array.from({ length: this.#clientCount }, (_, index) => {
      const client = this.#clientOf(index);
      return this.#runClient(`client-${index}`, client, this.#random.fork());
    });
    this.#running = Promise.all(clients);
  }

  /** Holds every client back before its next call, until the caller calls the returned function. */
  pause(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#mayCall = promise;
    return resolve;
  }

  /** Cancels the calls in flight. Their outcome is unknown. */
  giveUp(): void {
    this.#leaving.abort();
  }

  /** Stops the clients. Resolves when each client has the reply to its last call. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#running;
  }

  async close(): Promise<void> {
    await Promise.all(this.#buses.map((bus) => bus.close()));
  }

  /** Calls every actor once, and returns the time in ms until the last actor has replied. */
  async askAll(): Promise<number> {
    const startedAt = clock.monotonic();
    const client = this.#clientOf(0);
    await Promise.all([
      ...[...COUNTERS, ...SINKS].map((key) => this.#read(client, key)),
      ...LEDGERS.map((key) =>
        this.#attempt(() => client.call(ledger, key, "read", {}, this.#options)),
      ),
    ]);
    return Math.round(clock.monotonic() - startedAt);
  }

  readLedger(key: string) {
    return this.#clientOf(0).call(ledger, key, "read", {}, this.#options);
  }

  async readCount(key: string): Promise<number> {
    return (await this.#clientOf(0).call(counter, key, "get", {}, this.#options)).count;
  }

  /** Returns the duration in ms of the longest call that ended at or after the monotonic time `time`. */
  slowestSince(time: number): number {
    const slow = this.history.map(({ startedAt, ended }) =>
      ended && ended.at >= time ? ended.at - startedAt : 0,
    );
    return Math.round(slow.reduce((most, ms) => Math.max(most, ms), 0));
  }

  #clientOf(index: number): BusActorClient {
    const client = this.#clients[index % this.#clients.length];
    if (!client) throw new Error("Cannot load: there is no connection");
    return client;
  }

  async #runClient(name: string, client: BusActorClient, random: SeededRandom): Promise<void> {
    while (!this.#stopping && !this.#leaving.signal.aborted) {
      await clock.wait(random.next() * PAUSE_MS_MAX);
      await this.#mayCall;
      if (this.#stopping || this.#leaving.signal.aborted) return;
      const choice = random.next();
      if (choice < 0.3) await this.#increment(client, random);
      else if (choice < 0.55) await this.#read(client, random.pick(COUNTERS));
      else if (choice < 0.65) await this.#give(client, random);
      else if (choice < 0.7) await this.#read(client, random.pick(SINKS));
      else if (choice < 0.85) await this.#post(client, random);
      else if (choice < 0.95) await this.#sendEntry(name, client, random);
      else await this.#remind(client, random);
    }
  }

  #increment(client: BusActorClient, random: SeededRandom): Promise<void> {
    const key = random.pick(COUNTERS);
    const by = random.integer(1, 9);
    return this.#add(key, by, async () => {
      return (await client.call(counter, key, "increment", { by }, this.#options)).count;
    });
  }

  #read(client: BusActorClient, key: string): Promise<void> {
    return this.#add(key, 0, async () => {
      return (await client.call(counter, key, "get", {}, this.#options)).count;
    });
  }

  #give(client: BusActorClient, random: SeededRandom): Promise<void> {
    const key = random.pick(COUNTERS);
    const to = random.pick(SINKS);
    const by = random.integer(1, 9);
    return this.#add(key, -by, async () => {
      return (await client.call(counter, key, "give", { to, by }, this.#options)).count;
    });
  }

  #post(client: BusActorClient, random: SeededRandom): Promise<void> {
    const key = random.pick(LEDGERS);
    const to = random.pick(LEDGERS);
    const stumbles = random.chance(0.02) ? random.integer(1, 2) : 0;
    return this.#add(`${key}>${to}`, 1, async () => {
      return (await client.call(ledger, key, "post", { to, stumbles }, this.#options)).number;
    });
  }

  async #sendEntry(name: string, client: BusActorClient, random: SeededRandom): Promise<void> {
    const to = random.pick(LEDGERS);
    const id = `${to}<${name}`;
    const before = this.entries.get(id) ?? 0;
    const entry = { from: name, number: before + 1, stumbles: 0 };
    await this.#attempt(async () => {
      await client.send(ledger, to, "entry", entry);
      this.entries.set(id, before + 1);
    });
  }

  async #remind(client: BusActorClient, random: SeededRandom): Promise<void> {
    const key = random.pick(LEDGERS);
    const ms = random.integer(0, 1_500);
    await this.#attempt(() => client.call(ledger, key, "remindIn", { ms }, this.#options));
  }

  async #add(key: string, input: number, call: () => Promise<number>): Promise<void> {
    const operation: Add = { key, input, startedAt: clock.monotonic() };
    await this.#attempt(
      async () => {
        const output = await call();
        this.history.push({ ...operation, ended: { at: clock.monotonic(), output } });
      },
      () => this.history.push(operation),
    );
  }

  async #attempt(action: () => Promise<unknown>, onUnknown?: () => void): Promise<void> {
    try {
      await action();
    } catch (error) {
      if (!(error instanceof ActorError)) throw error;
      this.failures.push(`${error.code}: ${error.message}`);
      // Only these two codes leave the outcome unknown. Each other code means that the call had no effect.
      if (error.code === "unavailable" || error.code === "cancelled") onUnknown?.();
    }
  }
}

function names(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${name}-${index}`);
}
