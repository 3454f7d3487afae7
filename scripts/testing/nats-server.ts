/** Gives a test a private nats-server, or a cluster of them, with the repository's own configuration. */
import { rmSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { readBusAddress } from "../../actors/runtime/bus/bus-address.ts";
import { freePort } from "../free-port.ts";
import { NatsServer, type NatsServerOptions, newNatsPassword } from "../nats-server.ts";
import { REPOSITORY } from "../tools.ts";

/**
 * Maximum time to elect a leader. An election takes a second, or several seconds if two servers stand for election at
 * the same time, and minutes on a busy machine.
 */
const CLUSTER_MS_MAX = 300_000;
/**
 * Timeouts of the first requests to the cluster, and of later ones. Without a leader, the cluster does not respond, so
 * the first are short. A slow machine needs more time to create a stream.
 */
const CLUSTER_ANSWER_MS = 1_000;
const CLUSTER_SLOW_ANSWER_MS = 10_000;
const CLUSTER_QUICK_TRIES = 10;
const CLUSTER_POLL_MS = 20;

export interface TestNatsOptions {
  /**
   * The folder of the store, which stop() then keeps. If it is absent, the server uses a new folder, which stop()
   * deletes.
   */
  storeDir?: string;
  port?: number;
  /** nats-server configuration that is appended to the repository's nats.conf and overrides it. */
  config?: string;
  /** Called with every line of the server's log. */
  onLine?: (line: string) => void;
}

/**
 * Starts a private nats-server on loopback; its `url` holds user and password. `await using` or stop() ends it and
 * deletes its store.
 */
export async function startNats(options: TestNatsOptions = {}): Promise<TestNatsServer> {
  const folder = await mkdtemp(join(tmpdir(), "trunkline-nats-"));
  const server = new TestNatsServer(folder, {
    config: await configFile(folder, "nats.conf", options.config),
    name: "test",
    storeDir: options.storeDir ?? join(folder, "store"),
    port: options.port ?? (await freePort()),
    passwords: newPasswords(),
    ...(options.onLine && { onLine: options.onLine }),
  });
  return await started(server);
}

/** The configuration of a cluster with TLS and its own users. The servers' certificates are for `localhost`. */
export interface SecureCluster {
  /** Path of the configuration. */
  config: string;
  environment: Record<string, string>;
}

/**
 * Starts a cluster of `size` servers with the configuration in deploy/. Resolves when the cluster has a leader that
 * knows every server, so that a stream can have a replica on each server. This takes a second or more. With `secure`
 * it does not wait for the leader.
 */
export async function startCluster(
  size: number,
  config = "",
  onLine?: (line: string) => void,
  secure?: SecureCluster,
  parameters: string[] = [],
): Promise<TestNatsCluster> {
  const host = secure ? "localhost" : "127.0.0.1";
  const routePorts = await Promise.all(Array.from({ length: size }, () => freePort()));
  const passwords = newPasswords();
  const routes = routePorts.map((port) => `nats://${host}:${port}`);
  const peers = routePorts.map((port) => `nats://route:${passwords.system}@${host}:${port}`);
  const servers = await Promise.all(
    routePorts.map(async (routePort, index) => {
      const folder = await mkdtemp(join(tmpdir(), "trunkline-nats-"));
      return new TestNatsServer(folder, {
        config: secure?.config ?? (await configFile(folder, "deploy/nats-cluster.conf", config)),
        name: `test-${index}`,
        storeDir: join(folder, "store"),
        port: await freePort(),
        passwords,
        parameters,
        ...(onLine && { onLine }),
        environment: {
          TRUNKLINE_NATS_CLUSTER_LISTEN: `127.0.0.1:${routePort}`,
          TRUNKLINE_NATS_ROUTES: `[${peers.join(", ")}]`,
          TRUNKLINE_NATS_MONITOR_LISTEN: "127.0.0.1:-1",
          ...secure?.environment,
        },
      });
    }),
  );
  const cluster = new TestNatsCluster(servers, routes);
  const starts = await Promise.allSettled(servers.map((server) => server.start()));
  try {
    await Promise.all(
      starts.map((start) => start.status === "rejected" && Promise.reject(start.reason)),
    );
    if (!secure) await placesStreams(cluster);
    return cluster;
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

/** Resolves when a stream with a replica on every server could be made (it is deleted again). */
async function placesStreams({ urls }: TestNatsCluster): Promise<void> {
  const bus = await connect(readBusAddress(urls.join(",")));
  try {
    const managerOf = (timeout: number) => jetstreamManager(bus, { checkAPI: false, timeout });
    const quick = await managerOf(CLUSTER_ANSWER_MS);
    const slow = await managerOf(CLUSTER_SLOW_ANSWER_MS);
    const probe = { name: "PROBE", subjects: ["probe"], num_replicas: urls.length };
    const deadline = AbortSignal.timeout(CLUSTER_MS_MAX);
    for (let tries = 1; ; tries++) {
      const { streams } = tries > CLUSTER_QUICK_TRIES ? slow : quick;
      try {
        await streams.add(probe);
        await streams.delete(probe.name);
        return;
      } catch (error) {
        // The cluster has no leader yet, or the leader does not know all servers yet.
        if (deadline.aborted) throw error;
        await wait(CLUSTER_POLL_MS);
      }
    }
  } finally {
    await bus.close();
  }
}

export class TestNatsServer extends NatsServer {
  readonly #folder: string;
  // Kills the server if the test run exits without calling stop().
  readonly #abandon = () => {
    void this.kill(); // The signal is sent at once; there is no time left to wait.
    rmSync(this.#folder, { recursive: true, force: true });
  };

  constructor(folder: string, options: NatsServerOptions) {
    super(options);
    this.#folder = folder;
  }

  override async start(options: { signal?: AbortSignal } = {}): Promise<void> {
    process.removeListener("exit", this.#abandon);
    process.once("exit", this.#abandon);
    await super.start(options);
  }

  /** Returns the server's URL with another port, the port of a proxy. */
  urlAt(port: number): string {
    return this.url.replace(/:\d+$/, `:${port}`);
  }

  /** Stops the server and deletes its folder, so that it cannot start again. */
  override async stop(): Promise<void> {
    await super.stop();
    process.removeListener("exit", this.#abandon);
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** Stops the server gracefully, then starts it on the same port and store. Unlike `stop`, keeps the folder. */
  override async restart(): Promise<void> {
    await super.stop();
    await this.start();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

export class TestNatsCluster {
  readonly servers: readonly TestNatsServer[];
  /** The addresses of the servers' routes, without the password. */
  readonly routes: readonly string[];

  constructor(servers: readonly TestNatsServer[], routes: readonly string[]) {
    this.servers = servers;
    this.routes = routes;
  }

  get urls(): string[] {
    return this.servers.map((server) => server.url);
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

const newPasswords = () => ({ trunkline: newNatsPassword(), system: newNatsPassword() });

async function started(server: TestNatsServer): Promise<TestNatsServer> {
  try {
    await server.start();
    return server;
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/**
 * Returns the path of the configuration `name`. If there is a `text`, returns the path of a new file that includes
 * the configuration and appends the text.
 */
async function configFile(folder: string, name: string, text = ""): Promise<string> {
  const path = join(REPOSITORY, name);
  if (text === "") return path;
  const own = join(folder, "nats.conf");
  // nats-server resolves an included path relative to the including file.
  await writeFile(own, `include "${relative(folder, path)}"\n${text}\n`);
  return own;
}
