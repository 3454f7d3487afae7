/**
 * A private bus with the streams of the runtime, and hosts, workers and clients on it, all in the test's own process.
 */

import type { StreamInfoRequestOptions } from "@nats-io/jetstream";
import { TimeoutError } from "@nats-io/transport-node";
import pino, { type Logger } from "pino";
import { ActorHost } from "../../actors/runtime/actor-host.ts";
import { Bus, BusLost, type BusOptions, type Listeners } from "../../actors/runtime/bus/bus.ts";
import { BusActorClient } from "../../actors/runtime/calls/actor-client.ts";
import type { AnyActorDefinition } from "../../actors/runtime/kinds/define-actor.ts";
import type { AnyHostedDefinition } from "../../actors/runtime/kinds/define-hosted.ts";
import { type Clock, systemClock } from "../../actors/runtime/lib/clock.ts";
import { ServiceCounts } from "../../actors/runtime/observe/service-counts.ts";
import { LEASE_TTL_MS_MAX } from "../../actors/runtime/placement/lease-length.ts";
import type { AnyWorkerDefinition } from "../../actors/runtime/workers/define-worker.ts";
import { WorkerHost } from "../../actors/runtime/workers/worker-host.ts";
import { declareStreams } from "../../deploy/streams.ts";
import type { TaskContract } from "../../schemas/contract.ts";
import { type DataLayout, FIRST_LAYOUT } from "../../schemas/data-layout.ts";
import { SHARDS } from "../../schemas/limits.ts";
import { allMail } from "../../schemas/split-streams.ts";
import { stateBucket, stateSubjects } from "../../schemas/subjects.ts";
import { LeapingClock } from "./leaping-clock.ts";
import { startNats, type TestNatsServer } from "./nats-server.ts";
import { connectPatiently } from "./patient-bus.ts";
import { until } from "./until.ts";

export interface WorldOptions {
  definitions?: readonly AnyActorDefinition[];
  /** Creates the hosted kinds of each host from the host's own bus connection. */
  hosted?: (bus: Bus) => readonly AnyHostedDefinition[];
  tasks?: readonly TaskContract[];
  buckets?: number;
  /** The number of shards. Default: SHARDS. */
  shards?: number;
  /** The numbers of other streams. */
  layout?: Partial<Omit<DataLayout, "shards" | "stateStreams">>;
  replicas?: number;
  /** How long the bus keeps the marker of a removed key. At least one second. */
  markerMs?: number;
  /** The default clock of hosts, workers and clients. */
  clock?: Clock;
  /** The URL of running servers, to use instead of a private server. */
  url?: string;
}

export interface LogLine {
  level: number;
  msg: string;
  [field: string]: unknown;
}

export async function startWorld(options: WorldOptions = {}): Promise<World> {
  const nats = options.url === undefined ? await startNats() : undefined;
  const url = options.url ?? nats?.url ?? "";
  const bus = nats ? await connectPatiently(url) : await Bus.connect({ url, name: "test" });
  const { replicas = 1, buckets = 1, shards = SHARDS, tasks = [], markerMs } = options;
  bus.layout = { ...FIRST_LAYOUT, ...options.layout, shards, stateStreams: buckets };
  await declareStreams(bus.jetstream, {
    replicas,
    layout: bus.layout,
    tasks,
    ...(markerMs !== undefined && { markerMs }),
  });
  return new World(options, bus, url, nats);
}

export class World {
  readonly nats: TestNatsServer | undefined;
  readonly bus: Bus;
  readonly url: string;
  readonly client: BusActorClient;
  /** Log lines of hosts and workers. */
  readonly log: LogLine[] = [];
  readonly subjects = stateSubjects(stateBucket(0));
  readonly #options: WorldOptions;
  readonly #logger: Logger;
  /** The functions that close the world's parts, called in reverse order. */
  readonly #closing: (() => Promise<void>)[] = [];

  constructor(options: WorldOptions, bus: Bus, url: string, nats: TestNatsServer | undefined) {
    this.#options = options;
    this.bus = bus;
    this.url = url;
    this.nats = nats;
    this.client = new BusActorClient(bus, this.#clock);
    this.#logger = pino({}, { write: (line) => void this.log.push(JSON.parse(line) as LogLine) });
  }

  /** Starts a host and waits until every shard has an owner. With `complete: false` it does not wait. */
  async host(
    options: {
      name?: string;
      clock?: Clock;
      definitions?: readonly AnyActorDefinition[];
      complete?: boolean;
      /**
       * Makes the host's leases long, so that a process that stands still for seconds keeps its shards. For tests that
       * count messages or writes, because a new owner makes more of them.
       */
      longLease?: boolean;
      counts?: ServiceCounts;
      hosted?: readonly AnyHostedDefinition[];
      rowBytesMax?: number;
      /** The URL of the bus, and listeners for calls within this process. */
      bus?: Pick<BusOptions, "url" | "listeners">;
    } = {},
  ): Promise<ActorHost> {
    const { name = "host", complete = true, longLease = false } = options;
    const { clock = this.#clock } = options;
    const bus = await this.#connect({ ...options.bus, name });
    const host = new ActorHost({
      bus,
      definitions: options.definitions ?? this.#options.definitions ?? [],
      hosted: options.hosted ?? this.#options.hosted?.(bus) ?? [],
      hostName: name,
      ...(options.rowBytesMax !== undefined && { rowBytesMax: options.rowBytesMax }),
      buckets: this.#options.buckets ?? 1,
      clock: longLease ? new LeapingClock(clock) : clock,
      logger: this.#logger,
      counts: options.counts ?? new ServiceCounts(new Map()),
    });
    await host.start();
    let stopping: Promise<void> | undefined;
    const stop = host.stop.bind(host);
    // Stops the host only once, because the test may have stopped it before.
    host.stop = () => {
      stopping ??= stop();
      return stopping;
    };
    this.#closing.push(async () => {
      await host.stop();
      await bus.close();
    });
    if (longLease) await until("its lease is long", () => this.#hasLongLease(host));
    if (complete) {
      await until("every shard has an owner", () => host.placement.isComplete, 60_000);
      // Waits until the server has the host's subscriptions, because a test's own request is not retried.
      await bus.connection.flush();
    }
    return host;
  }

  /** Creates a client with its own connection to the bus. */
  async newClient({
    listeners,
    clock = this.#clock,
  }: {
    listeners?: Listeners;
    clock?: Clock;
  } = {}): Promise<BusActorClient> {
    const shared = listeners && { listeners };
    const bus = await this.#connect({ ...shared, name: "client" });
    this.#closing.push(() => bus.close());
    return new BusActorClient(bus, clock);
  }

  async worker(
    definitions: readonly AnyWorkerDefinition[],
    shared: Pick<BusOptions, "listeners"> = {},
  ): Promise<WorkerHost> {
    const bus = await this.#connect({ ...shared, name: "worker" });
    const counts = new ServiceCounts(new Map());
    const parts = { bus, clock: this.#clock, logger: this.#logger, counts };
    const worker = new WorkerHost({ ...parts, definitions });
    worker.start();
    this.#closing.push(async () => {
      await worker.stop(0);
      await bus.close();
    });
    return worker;
  }

  async #hasLongLease({ placement }: ActorHost): Promise<boolean> {
    const { stream, lease } = this.subjects;
    const stored = await this.bus.readLast(stream, lease(placement.hostId));
    return stored?.string().includes(`"ttlMs":${LEASE_TTL_MS_MAX}`) === true;
  }

  async #connect(options: Partial<BusOptions> & { name: string }): Promise<Bus> {
    const bus = await Bus.connect({ url: this.url, ...options });
    bus.layout = this.bus.layout;
    return bus;
  }

  get #clock(): Clock {
    return this.#options.clock ?? systemClock;
  }

  /** Returns the number of messages in a stream. With `subject`, counts only the messages of that subject. */
  async count(stream: string, subject?: string): Promise<number> {
    const { state } = await this.#info(
      stream,
      subject === undefined ? {} : { subjects_filter: subject },
    );
    if (subject === undefined) return state.messages;
    return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
  }

  /** Returns the last sequence number of the state stream, which grows with every write. */
  async written(): Promise<number> {
    return (await this.#info(this.subjects.stream)).state.last_seq;
  }

  /**
   * Requests the stream's information, and repeats the request when the server has ended: a request in flight then
   * gets no response.
   */
  #info(stream: string, options: Partial<StreamInfoRequestOptions> = {}) {
    return until(`the information of ${stream}`, async () => {
      const ask = () => this.bus.jetstream.streams.info(stream, options);
      try {
        return await this.bus.whileConnected(ask);
      } catch (error) {
        if (error instanceof BusLost || error instanceof TimeoutError) return undefined;
        throw error;
      }
    });
  }

  mailWaiting(): Promise<number> {
    return Promise.all(
      allMail(this.bus.layout).map(({ stream, all }) => this.count(stream, all)),
    ).then((counts) => counts.reduce((sum, count) => sum + count, 0));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const close of this.#closing.reverse()) await close();
    await this.bus.close();
    await this.nats?.stop();
  }
}
