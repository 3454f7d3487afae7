/** The scene of a fault test: a private nats-server, hosts in separate processes, and a load of clients. */

import { Bus } from "../../actors/runtime/bus/bus.ts";
import { declareStreams } from "../../deploy/streams.ts";
import { FIRST_LAYOUT } from "../../schemas/data-layout.ts";
import { ActorProcess } from "./actor-process.ts";
import { findProblems } from "./fault-check.ts";
import { FaultLoad } from "./fault-load.ts";
import { startNats, type TestNatsServer } from "./nats-server.ts";
import { SeededRandom } from "./seeded-random.ts";
import { TcpProxy } from "./tcp-proxy.ts";

/** Number of connections of the load's clients. The last connection goes through a proxy that tests can cut. */
const CONNECTIONS = 3;

export interface FaultSceneOptions {
  seed: number;
  hosts: number;
  buckets?: number;
  mailStreams?: number;
  /** Number of clients of the load. */
  clients?: number;
}

export class FaultScene {
  readonly seed: number;
  readonly random: SeededRandom;
  readonly nats: TestNatsServer;
  readonly bus: Bus;
  readonly load: FaultLoad;
  readonly clientProxy: TcpProxy;
  readonly hosts: ActorProcess[] = [];
  readonly #buckets: number;
  readonly #proxies: TcpProxy[] = [];
  #started = 0;

  /** Starts the hosts, waits until each is ready, and starts the load. `await using` or stop() ends the scene. */
  static async start(options: FaultSceneOptions): Promise<FaultScene> {
    const { seed, hosts, buckets = 1, mailStreams = 1, clients } = options;
    const nats = await startNats();
    const bus = await Bus.connect({ url: nats.url, name: "scene" });
    bus.layout = { ...FIRST_LAYOUT, stateStreams: buckets, mailStreams };
    await declareStreams(bus.jetstream, { replicas: 1, layout: bus.layout, tasks: [] });
    const random = new SeededRandom(seed);
    const clientProxy = await TcpProxy.start(nats.port);
    const urls = Array.from({ length: CONNECTIONS }, (_, index) =>
      index === CONNECTIONS - 1 ? through(clientProxy, nats.url) : nats.url,
    );
    const load = await FaultLoad.connect({
      ...{ urls, random: random.fork(), layout: bus.layout },
      ...(clients !== undefined && { clients }),
    });
    const scene = new FaultScene({ seed, random, nats, bus, load, clientProxy, buckets });
    try {
      await Promise.all(Array.from({ length: hosts }, () => scene.addHost().ready));
    } catch (error) {
      await scene.stop();
      throw error;
    }
    load.start();
    return scene;
  }

  constructor(
    parts: Pick<FaultScene, "seed" | "random" | "nats" | "bus" | "load" | "clientProxy"> & {
      buckets: number;
    },
  ) {
    this.seed = parts.seed;
    this.random = parts.random;
    this.nats = parts.nats;
    this.bus = parts.bus;
    this.load = parts.load;
    this.clientProxy = parts.clientProxy;
    this.#proxies.push(parts.clientProxy);
    this.#buckets = parts.buckets;
  }

  /** Starts one more host. */
  addHost(url = this.nats.url): ActorProcess {
    this.#started += 1;
    const name = `host-${this.#started}`;
    const host = new ActorProcess({
      url,
      name,
      buckets: this.#buckets,
      mailStreams: this.bus.layout.mailStreams,
    });
    this.hosts.push(host);
    return host;
  }

  /** Starts another host whose connection to the bus goes through a new proxy. */
  async addProxiedHost(): Promise<TcpProxy> {
    const proxy = await TcpProxy.start(this.nats.port);
    this.#proxies.push(proxy);
    await this.addHost(through(proxy, this.nats.url)).ready;
    return proxy;
  }

  /** Chooses a random host and removes it from the list of live hosts. */
  takeHost(): ActorProcess {
    const host = this.random.pick(this.hosts);
    this.hosts.splice(this.hosts.indexOf(host), 1);
    return host;
  }

  /** Stops the load and returns descriptions of the violated invariants. */
  findProblems(): Promise<string[]> {
    return findProblems(this.load, this.bus, this.#buckets);
  }

  async stop(): Promise<void> {
    this.load.giveUp();
    await Promise.all(this.hosts.map((host) => host.kill()));
    await this.load.stop();
    await this.load.close();
    await this.bus.close();
    await Promise.all(this.#proxies.map((proxy) => proxy.stop()));
    await this.nats.stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

/** Returns the address with the proxy's port. */
function through(proxy: TcpProxy, address: string): string {
  const url = new URL(address);
  url.port = String(proxy.port);
  return url.href;
}
