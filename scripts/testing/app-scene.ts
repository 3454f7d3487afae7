/**
 * A cluster with one app. Each gateway, each host of actors and each server of the bus runs in its own process, which
 * a test can kill.
 */
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WebSocket } from "ws";
import { newSecretKey } from "../../actors/apps/lib/app-secrets/secret-box.ts";
import { freePort } from "../free-port.ts";
import { AppPlatform, Watcher } from "./app-platform.ts";
import {
  startCluster,
  startNats,
  type TestNatsCluster,
  type TestNatsServer,
} from "./nats-server.ts";
import { postOnce } from "./post-once.ts";
import { childrenOf, processMark } from "./process-children.ts";
import { RoleProcess } from "./role-process.ts";

const GATEWAYS = 2;
const HOSTS = 2;
/** Request timeout of the test's clients. Real senders of webhooks have a timeout too. */
const ASK_MS_MAX = 20_000;

export interface Gateway {
  name: string;
  url: string;
  instance: RoleProcess;
  isAlive: boolean;
}

interface SceneParts {
  folder: string;
  bus: TestNatsServer | TestNatsCluster;
  settings: NodeJS.ProcessEnv;
}

export class AppScene implements AsyncDisposable {
  /** The servers of the bus. */
  readonly servers: readonly TestNatsServer[];
  readonly gateways: Gateway[] = [];
  readonly hosts: RoleProcess[] = [];
  /** The pids of the processes that run or ran the app's code, each with its process mark. */
  readonly #appProcesses = new Map<number, string>();
  readonly #parts: SceneParts;
  #platform: AppPlatform | undefined;
  readonly #starting: Promise<unknown>[] = [];
  #started = 0;

  /** Starts the cluster. `servers` is 1, or the number of servers of a bus cluster. */
  static async start({ servers = 1 } = {}): Promise<AppScene> {
    const folder = await mkdtemp(join(tmpdir(), "trunkline-scene-"));
    // The code of apps may run as other users, which must be able to enter this folder.
    await chmod(folder, 0o755);
    const bus = servers === 1 ? await startNats() : await startCluster(servers);
    const urls = "urls" in bus ? bus.urls : [bus.url];
    const ports = await Promise.all(Array.from({ length: GATEWAYS }, () => freePort()));
    const settings = {
      TRUNKLINE_NATS_URL: urls.join(","),
      TRUNKLINE_REPLICAS: String(servers),
      TRUNKLINE_PUBLIC_URL: `http://127.0.0.1:${ports[0]}`,
      TRUNKLINE_APPS_DOMAIN: `apps.localhost:${ports[0]}`,
      TRUNKLINE_SECRETS_KEY: newSecretKey(),
      TRUNKLINE_REQUESTS_PER_5_MINUTES: "0",
      // Allows requests to receivers of the test on this machine.
      TRUNKLINE_EGRESS_ALLOW: "127.0.0.0/8",
    };
    const scene = new AppScene({ folder, bus, settings });
    try {
      for (const [index, port] of ports.entries()) scene.#addGateway(`gateway-${index}`, port);
      await Promise.all([
        ...scene.gateways.map(({ instance }) => instance.ready()),
        ...Array.from({ length: HOSTS }, () => scene.addHost()),
      ]);
      scene.#platform = await scene.#findPlatform();
      return scene;
    } catch (error) {
      await scene[Symbol.asyncDispose]();
      throw error;
    }
  }

  constructor(parts: SceneParts) {
    this.#parts = parts;
    this.servers = "servers" in parts.bus ? parts.bus.servers : [parts.bus];
  }

  /** The platform's client with the owner's credentials, for requests to the gateway that created the account. */
  get platform(): AppPlatform {
    if (!this.#platform) throw new Error("Cannot ask: the cluster has not started");
    return this.#platform;
  }

  get livingGateways(): Gateway[] {
    return this.gateways.filter(({ isAlive }) => isAlive);
  }

  async addHost(): Promise<void> {
    const host = this.#process(`host-${++this.#started}`, await freePort(), "actors");
    this.hosts.push(host);
    await host.ready();
  }

  /** Registers something that starts in the background, so that `settled` waits for it. */
  later(starting: Promise<unknown>): void {
    starting.catch(() => {}); // Whoever waits hears of it.
    this.#starting.push(starting);
  }

  async settled(): Promise<void> {
    await Promise.all(this.#starting);
  }

  /** Kills the host, and with it its app processes. */
  async killHost(host: RoleProcess): Promise<void> {
    this.#notePids();
    this.hosts.splice(this.hosts.indexOf(host), 1);
    await host[Symbol.asyncDispose]();
  }

  /** Starts a new host, and then stops this host with SIGTERM. */
  async rollHost(host: RoleProcess): Promise<void> {
    await this.addHost();
    this.#notePids();
    this.hosts.splice(this.hosts.indexOf(host), 1);
    host.signal("SIGTERM");
    await host.exit();
  }

  async killGateway(gateway: Gateway): Promise<void> {
    gateway.isAlive = false;
    await gateway.instance[Symbol.asyncDispose]();
  }

  async restartGateway(gateway: Gateway): Promise<void> {
    const port = Number(new URL(gateway.url).port);
    gateway.instance = this.#process(gateway.name, port, "gateway");
    await gateway.instance.ready();
    gateway.isAlive = true;
  }

  /** Returns the pids of the processes that run the app's code now. */
  async appProcesses(): Promise<number[]> {
    const below = this.hosts.flatMap((host) => childrenOf(host.pid));
    const pids = [];
    for (const pid of below) {
      const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
      if (command.includes("apps/process/")) pids.push(pid);
    }
    this.#note(pids);
    return pids;
  }

  /** The pids of the app's processes that still run. */
  get left(): number[] {
    const running = [...this.#appProcesses].filter(([pid, mark]) => processMark(pid) === mark);
    return running.map(([pid]) => pid);
  }

  /**
   * Posts to a path of the account's apps. Resolves to the status and the text, or to undefined if there was no
   * response.
   */
  post(
    gateway: Gateway,
    path: string,
    { headers, body }: { headers: Record<string, string>; body: string },
  ): Promise<{ status: number; text: string } | undefined> {
    const url = this.#urlOf(gateway.url, path);
    return postOnce(url, { headers, body, timeoutMs: ASK_MS_MAX });
  }

  async watch(gateway: Gateway, path: string): Promise<Watcher> {
    const url = this.#urlOf(gateway.url.replace("http", "ws"), path);
    const watcher = new Watcher(new WebSocket(url));
    await watcher.opened;
    return watcher;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.#starting);
    this.#notePids();
    const all = [...this.gateways.map(({ instance }) => instance), ...this.hosts];
    await Promise.all(all.map((one) => one[Symbol.asyncDispose]()));
    await this.#parts.bus.stop();
    await rm(this.#parts.folder, { recursive: true, force: true, maxRetries: 10 });
  }

  #urlOf(base: string, path: string): string {
    return `${base}/apps/${this.platform.accountId}${path}`;
  }

  #addGateway(name: string, port: number): void {
    const instance = this.#process(name, port, "gateway");
    this.gateways.push({ name, url: `http://127.0.0.1:${port}`, instance, isAlive: true });
  }

  #process(name: string, port: number, role: string): RoleProcess {
    const { folder, settings } = this.#parts;
    return new RoleProcess(join(folder, name), tmpdir(), port, {
      ...settings,
      TRUNKLINE_ROLES: role,
    });
  }

  /** One of the gateways created the first account and stored its credentials. */
  async #findPlatform(): Promise<AppPlatform> {
    for (const { instance } of this.gateways) {
      const found = await instance.credentials().catch(() => undefined);
      if (found) return new AppPlatform(instance, this.#parts.folder, found);
    }
    throw new Error("Cannot ask: no gateway has made an account");
  }

  #notePids(): void {
    for (const host of this.hosts) {
      this.#note(childrenOf(host.pid));
    }
  }

  #note(pids: readonly number[]): void {
    for (const pid of pids) {
      const mark = processMark(pid);
      if (mark !== undefined) this.#appProcesses.set(pid, mark);
    }
  }
}
