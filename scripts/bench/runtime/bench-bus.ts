/** A private nats-server with the repository's configuration, its streams, and those the references use. */

import { StorageType } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { Bus } from "../../../actors/runtime/bus/bus.ts";
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import { declareStreams } from "../../../deploy/streams.ts";
import { startNats } from "../../testing/nats-server.ts";
import { Child } from "../child.ts";
import type { HostFacts } from "./host-process.ts";
import { MAIL_STREAM } from "./workloads.ts";

const PLACEMENT_POLL_MS = 10;

export class BenchBus implements AsyncDisposable {
  readonly url: string;
  readonly #ends = new AsyncDisposableStack();

  static async start(): Promise<BenchBus> {
    const server = await startNats();
    const bus = await Bus.connect({ url: server.url, name: "bench" });
    await declareStreams(bus.jetstream, { replicas: 1, buckets: 1, tasks: [] });
    await new Kvm(bus.connection).create("bench", { storage: StorageType.File });
    await bus.jetstream.streams.add({ name: MAIL_STREAM, subjects: ["bench.mail"] });
    await bus.close();
    const started = new BenchBus(server.url);
    started.#ends.use(server);
    return started;
  }

  constructor(url: string) {
    this.url = url;
  }

  /** Resolves when the host has the shards that fall to it. */
  async startHost(name = "host"): Promise<Child> {
    const host = this.#ends.use(await Child.start("runtime/host-process", this.url, name));
    while (!(await host.ask<HostFacts>("facts")).isComplete) await clock.wait(PLACEMENT_POLL_MS);
    return host;
  }

  async startLoad(): Promise<Child> {
    return this.#ends.use(await Child.start("runtime/load-process", this.url));
  }

  /** Ends the processes in the reverse order, nats-server last. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#ends.disposeAsync();
  }
}
