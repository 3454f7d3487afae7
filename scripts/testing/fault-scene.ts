/** A private nats-server, hosts in processes of their own and a load of clients: where a fault test takes place. */
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { declareStreams } from "../../deploy/streams.ts";
import { ActorProcess } from "./actor-process.ts";
import { findProblems } from "./fault-check.ts";
import { FaultLoad } from "./fault-load.ts";
import { startNats, type TestNatsServer } from "./nats-server.ts";
import { SeededRandom } from "./seeded-random.ts";
import { TcpProxy } from "./tcp-proxy.ts";

/** Connections of the clients; the last runs through a proxy that tests cut. */
const CONNECTIONS = 3;

export interface FaultSceneOptions {
  seed: number;
  hosts: number;
  buckets?: number;
  /** Of the load. */
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

  /** Everything runs and every shard has an owner. `await using` or stop() ends it. */
  static async start(options: FaultSceneOptions): Promise<FaultScene> {
    const { seed, hosts, buckets = 1, clients } = options;
    const nats = await startNats();
    const bus = await Bus.connect({ url: nats.url, name: "scene" });
    await declareStreams(bus.jetstream, { replicas: 1, buckets, tasks: [] });
    const random = new SeededRandom(seed);
    const clientProxy = await TcpProxy.start(nats.port);
    const urls = Array.from({ length: CONNECTIONS }, (_, index) =>
      index === CONNECTIONS - 1 ? through(clientProxy, nats.url) : nats.url,
    );
    const load = await FaultLoad.connect({
      ...{ urls, random: random.fork() },
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
    const host = new ActorProcess({ url, name, buckets: this.#buckets });
    this.hosts.push(host);
    return host;
  }

  /** Starts one more host whose connection runs through a proxy. */
  async addProxiedHost(): Promise<TcpProxy> {
    const proxy = await TcpProxy.start(this.nats.port);
    this.#proxies.push(proxy);
    await this.addHost(through(proxy, this.nats.url)).ready;
    return proxy;
  }

  /** Takes any host out of the list of those that live. */
  takeHost(): ActorProcess {
    const host = this.random.pick(this.hosts);
    this.hosts.splice(this.hosts.indexOf(host), 1);
    return host;
  }

  /** Ends the load and returns what is wrong, in words. */
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

/** The same address, but for the port. */
function through(proxy: TcpProxy, address: string): string {
  const url = new URL(address);
  url.port = String(proxy.port);
  return url.href;
}
