/**
 * Starts separate nats-servers with the repository's configuration, its streams, and the streams of the references.
 */

import { StorageType } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { Bus } from "../../../actors/runtime/bus/bus.ts";
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import { declareStreams } from "../../../deploy/streams.ts";
import { FIRST_LAYOUT } from "../../../schemas/data-layout.ts";
import { startCluster, startNats } from "../../testing/nats-server.ts";
import { childrenOf } from "../../testing/process-children.ts";
import { processStat } from "../../testing/process-stat.ts";
import { Child } from "../child.ts";
import type { HostFacts } from "./host-process.ts";
import { MAIL_STREAM } from "./workloads.ts";

const PLACEMENT_POLL_MS = 10;

/** Returns the number of nats-servers, which `--servers` sets. */
const serverCount = () => Number(process.env.TRUNKLINE_BENCH_SERVERS ?? 1);

/** Returns the target that applies to the present number of servers. */
export const byServers = <T>(targets: { one: T; several: T }): T =>
  serverCount() === 1 ? targets.one : targets.several;

export class BenchBus implements AsyncDisposable {
  readonly url: string;
  readonly #ends = new AsyncDisposableStack();

  /** Starts one server, or the number that `--servers` sets. Each server has a replica of every stream. */
  static async start(): Promise<BenchBus> {
    const size = serverCount();
    const servers = size === 1 ? await startNats() : await startCluster(size);
    const url = "urls" in servers ? servers.urls.join(",") : servers.url;
    const bus = await Bus.connect({ url, name: "bench" });
    await declareStreams(bus.jetstream, { replicas: size, layout: FIRST_LAYOUT, tasks: [] });
    const kvm = new Kvm(bus.connection);
    await kvm.create("bench", { storage: StorageType.File, replicas: size });
    const mail = { name: MAIL_STREAM, subjects: ["bench.mail"], num_replicas: size };
    await bus.jetstream.streams.add(mail);
    await bus.close();
    const started = new BenchBus(url);
    started.#ends.use(servers);
    return started;
  }

  /**
   * Processor time of the servers until now. The servers are child processes of this process. 0 if the system does
   * not report it.
   */
  get serversMs(): number {
    const servers = childrenOf(process.pid)
      .map((pid) => processStat(pid))
      .filter((stat) => stat?.name.startsWith("nats-server"));
    return servers.reduce((sum, stat) => sum + (stat?.processorMs ?? 0), 0);
  }

  constructor(url: string) {
    this.url = url;
  }

  /** Starts a host. Resolves when the host has all shards that placement assigns to it. */
  async startHost(name = "host"): Promise<Child> {
    const host = this.#ends.use(await Child.startOurs("runtime/host-process", this.url, name));
    while (!(await host.ask<HostFacts>("facts")).isComplete) await clock.wait(PLACEMENT_POLL_MS);
    return host;
  }

  async startLoad(): Promise<Child> {
    return this.#ends.use(await Child.start("runtime/load-process", this.url));
  }

  /** Ends the processes in the reverse order of their start, nats-server last. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#ends.disposeAsync();
  }
}
