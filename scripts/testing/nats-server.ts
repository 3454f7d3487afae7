/** Gives a test a private nats-server, or a cluster of them, with the repository's own configuration. */
import { rmSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { freePort } from "../free-port.ts";
import { NatsServer, type NatsServerOptions } from "../nats-server.ts";
import { REPOSITORY } from "../tools.ts";

export interface TestNatsOptions {
  /** Kept after stop(); without it a fresh folder is used, and deleted. */
  storeDir?: string;
  port?: number;
  /** nats-server configuration text that comes after the repository's nats.conf and wins over it. */
  config?: string;
}

/** Starts a private nats-server on loopback. `await using` or stop() ends it and deletes its store. */
export async function startNats(options: TestNatsOptions = {}): Promise<TestNatsServer> {
  const folder = await mkdtemp(join(tmpdir(), "trunkline-nats-"));
  const server = new TestNatsServer(folder, {
    config: await configFile(folder, "nats.conf", options.config),
    name: "test",
    storeDir: options.storeDir ?? join(folder, "store"),
    port: options.port ?? (await freePort()),
  });
  return await started(server);
}

/**
 * Starts a cluster of this size with the configuration that deploy/ ships. Resolves when every server takes
 * connections and knows the leader of JetStream, which takes some seconds.
 */
export async function startCluster(size: number, config = ""): Promise<TestNatsCluster> {
  const routePorts = await Promise.all(Array.from({ length: size }, () => freePort()));
  const routes = routePorts.map((port) => `nats://127.0.0.1:${port}`).join(", ");
  const elections: Promise<void>[] = [];
  const servers = await Promise.all(
    routePorts.map(async (routePort, index) => {
      const election = Promise.withResolvers<void>();
      elections.push(election.promise);
      const folder = await mkdtemp(join(tmpdir(), "trunkline-nats-"));
      return new TestNatsServer(folder, {
        config: await configFile(folder, "deploy/nats-cluster.conf", config),
        name: `test-${index}`,
        storeDir: join(folder, "store"),
        port: await freePort(),
        environment: {
          TRUNKLINE_NATS_CLUSTER_LISTEN: `127.0.0.1:${routePort}`,
          TRUNKLINE_NATS_ROUTES: `[${routes}]`,
        },
        onLine: (line) => {
          if (
            /new JetStream cluster metadata leader|JetStream cluster new metadata leader/.test(line)
          )
            election.resolve();
        },
      });
    }),
  );
  const cluster = new TestNatsCluster(servers);
  const results = await Promise.allSettled(servers.map((server) => server.start()));
  const failed = results.find((result) => result.status === "rejected");
  if (failed === undefined) {
    await Promise.all(elections);
    return cluster;
  }
  await cluster.stop();
  throw failed.reason;
}

export class TestNatsServer extends NatsServer {
  readonly #folder: string;
  // Where a test run breaks off, nobody calls stop() any more.
  readonly #abandon = () => {
    void this.kill(); // The signal is sent at once; there is no time left to wait.
    rmSync(this.#folder, { recursive: true, force: true });
  };

  constructor(folder: string, options: NatsServerOptions) {
    super(options);
    this.#folder = folder;
  }

  override async start(): Promise<void> {
    process.removeListener("exit", this.#abandon);
    process.once("exit", this.#abandon);
    await super.start();
  }

  /** Ends it for good: its folder is deleted. */
  override async stop(): Promise<void> {
    await super.stop();
    process.removeListener("exit", this.#abandon);
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** Ends it gracefully, then starts it on the same port and store. */
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

  constructor(servers: readonly TestNatsServer[]) {
    this.servers = servers;
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

async function started(server: TestNatsServer): Promise<TestNatsServer> {
  try {
    await server.start();
    return server;
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/** The path of this configuration, or of a copy in the folder that includes it and adds the text. */
async function configFile(folder: string, name: string, text = ""): Promise<string> {
  const path = join(REPOSITORY, name);
  if (text === "") return path;
  const own = join(folder, "nats.conf");
  // An included path is always taken relative to the file that includes it.
  await writeFile(own, `include "${relative(folder, path)}"\n${text}\n`);
  return own;
}
