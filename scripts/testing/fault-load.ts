/** Many clients that call the test kinds while a test breaks things, and note what they asked and what came back. */

import { Bus } from "../../actors/runtime/bus/bus.ts";
import { BusActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { systemClock as clock } from "../../actors/runtime/lib/clock.ts";
import { ActorError } from "../../schemas/errors.ts";
import { counter } from "./counter.ts";
import { ledger } from "./ledger.ts";
import type { Operation } from "./linearizability.ts";
import type { SeededRandom } from "./seeded-random.ts";

const CLIENTS = 200;
/** Each client has a time to itself between two calls, so that the checker has thousands of calls and not millions. */
const PAUSE_MS_MAX = 120;
/** Longer than any takeover, on a busy machine too: no call has a reason to fail. */
const DEADLINE_MS = 60_000;

export const COUNTERS = names("counter", 50);
/** Counters that get mail: clients only read them, and never less than before. */
export const SINKS = names("sink", 10);
export const LEDGERS = names("ledger", 20);

/** Adds to a number and answers what it is then; adding 0 reads it. */
export type Add = Operation<number, number>;

export interface FaultLoadOptions {
  /** One connection each, shared by the clients in turn. */
  urls: readonly string[];
  random: SeededRandom;
  /** Default: CLIENTS, which take all of two processors. */
  clients?: number;
}

export class FaultLoad {
  readonly history: Add[] = [];
  /** Calls and sends that ended in an error, in words. */
  readonly failures: string[] = [];
  /** By ledger and sender: entries that clients sent themselves, and know to be on their way. */
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
    const { urls, random, clients } = options;
    const buses = await Promise.all(urls.map((url) => Bus.connect({ url, name: "load" })));
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

  /** Holds every client back before its next call, until what is returned is called. */
  pause(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#mayCall = promise;
    return resolve;
  }

  /** Ends the calls that wait: their outcome is unknown. */
  giveUp(): void {
    this.#leaving.abort();
  }

  /** Resolves when every client has the answer to its last call. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#running;
  }

  async close(): Promise<void> {
    await Promise.all(this.#buses.map((bus) => bus.close()));
  }

  /** Asks every actor something and returns how long it took until the last had answered, in ms. */
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

  /** The longest any call took that was under way at or after this monotonic time, in ms. */
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
      // Every other refusal says that nothing happened.
      if (error.code === "unavailable" || error.code === "cancelled") onUnknown?.();
    }
  }
}

function names(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${name}-${index}`);
}
