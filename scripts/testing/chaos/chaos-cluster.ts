/**
 * A whole cluster on this machine: three servers of the bus, and two processes each for gateways, hosts of actors and
 * browsers. Each process connects to each server through its own proxy.
 */
import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newSecretKey } from "../../../actors/apps/lib/app-secrets/secret-box.ts";
import { Bus } from "../../../actors/runtime/bus/bus.ts";
import { freePort } from "../../free-port.ts";
import { startCluster, type TestNatsCluster, type TestNatsServer } from "../nats-server.ts";
import { type Credentials, RoleProcess } from "../role-process.ts";
import { TcpProxy } from "../tcp-proxy.ts";
import { until } from "../until.ts";

export const ROLES = ["gateway", "actors", "browser"] as const;
export type ChaosRole = (typeof ROLES)[number];

const SERVERS = 3;
const OF_EACH_ROLE = 2;
/**
 * Maximum time until a process has started. A process that cannot reach the bus exits and is started again within
 * this time, as a supervisor would do.
 */
const STARTS_MS_MAX = 180_000;
const AGAIN_MS = 250;
/** Number of log lines that are shown of a start that failed. */
const FAILED_LINES = 30;

/** A process that keeps its port and its data when it is started again. */
export interface ChaosPlace {
  name: string;
  role: ChaosRole;
  url: string;
  /** The proxies between this process and each server. */
  proxies: readonly TcpProxy[];
  /** Undefined while it is down. */
  instance: RoleProcess | undefined;
  /** True while the process is ready. */
  isReady: boolean;
}

export class ChaosCluster implements AsyncDisposable {
  readonly nats: TestNatsCluster;
  readonly places: readonly ChaosPlace[];
  readonly folder: string;
  readonly bus: Bus;
  readonly #settings: NodeJS.ProcessEnv;
  #credentials: Credentials | undefined;
  #isOver = false;

  static async start(): Promise<ChaosCluster> {
    const folder = await mkdtemp(join(tmpdir(), "trunkline-chaos-"));
    // If we are root, browsers and the code of apps run as other users, which must be able to enter this folder.
    await chmod(folder, 0o755);
    await mkdir(join(folder, "tmp"), { mode: 0o777 });
    // Turns advertising off. Otherwise clients would learn the servers' real addresses and bypass the proxies.
    const nats = await startCluster(SERVERS, "", undefined, undefined, ["--no_advertise=true"]);
    const bus = await Bus.connect({ url: nats.urls.join(","), name: "chaos" });
    const roles = ROLES.flatMap((role) => Array.from({ length: OF_EACH_ROLE }, () => role));
    const places = await Promise.all(roles.map((role, index) => placeOf(role, index, nats)));
    const cluster = new ChaosCluster({ folder, nats, bus, places });
    try {
      await Promise.all(places.map((place) => cluster.startProcess(place)));
      await cluster.#findCredentials();
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  constructor(parts: Pick<ChaosCluster, "folder" | "nats" | "bus" | "places">) {
    this.folder = parts.folder;
    this.nats = parts.nats;
    this.bus = parts.bus;
    this.places = parts.places;
    const port = new URL(parts.places[0]?.url ?? "").port;
    this.#settings = {
      TRUNKLINE_REPLICAS: String(SERVERS),
      TRUNKLINE_PUBLIC_URL: `http://127.0.0.1:${port}`,
      TRUNKLINE_APPS_DOMAIN: `apps.localhost:${port}`,
      TRUNKLINE_SECRETS_KEY: newSecretKey(),
      TRUNKLINE_REQUESTS_PER_5_MINUTES: "0",
      TRUNKLINE_BROWSER_SECONDS_PER_DAY: "0",
      TRUNKLINE_EGRESS_ALLOW: "127.0.0.0/8",
    };
  }

  get servers(): readonly TestNatsServer[] {
    return this.nats.servers;
  }

  get credentials(): Credentials {
    if (!this.#credentials) throw new Error("Cannot name the account: there is none yet");
    return this.#credentials;
  }

  placesOf(role: ChaosRole): ChaosPlace[] {
    return this.places.filter((place) => place.role === role);
  }

  /** The gateways that a load balancer would try. */
  get livingGateways(): ChaosPlace[] {
    return this.placesOf("gateway").filter(({ isReady }) => isReady);
  }

  /** The pids of our running processes and of the servers, by name. */
  get pids(): Map<string, number> {
    const ours = this.places.flatMap(({ name, instance }) =>
      instance ? [[name, instance.pid] as const] : [],
    );
    const servers = this.servers.flatMap((server, index) => {
      try {
        return [[`nats-server-${index}`, server.pid] as const];
      } catch {
        return []; // It is down.
      }
    });
    return new Map([...ours, ...servers]);
  }

  /**
   * Starts the process. Resolves when it is ready. If it exits before, it is started again. Rejects with the last log
   * lines of each start if none succeeds.
   */
  async startProcess(place: ChaosPlace): Promise<void> {
    const failures: string[] = [];
    const isStarted = async () => {
      if (this.#isOver) return true;
      const instance = this.#newProcess(place);
      place.instance = instance;
      try {
        await instance.ready();
        place.isReady = true;
        return true;
      } catch (error) {
        failures.push(String(error).slice(0, 200), ...instance.lines.slice(-FAILED_LINES));
        await instance[Symbol.asyncDispose]();
        place.instance = undefined;
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
        return false;
      }
    };
    await until(`${place.name} starts`, isStarted, STARTS_MS_MAX).catch((error: Error) => {
      throw new Error([error.message, ...failures].join("\n"));
    });
  }

  /** Ends the process with this signal. Resolves to its exit code. */
  async endProcess(place: ChaosPlace, signal: "SIGKILL" | "SIGTERM"): Promise<number | null> {
    const { instance } = place;
    place.isReady = false;
    if (!instance) return null;
    instance.signal(signal);
    const code = await instance.exit();
    await instance[Symbol.asyncDispose]();
    place.instance = undefined;
    return code;
  }

  /** Log lines of warnings and faults of the processes that run now. */
  get errorLines(): string[] {
    return this.places.flatMap(({ name, instance }) =>
      (instance?.lines ?? [])
        .filter((line) => /^\{"level":[456]0/.test(line))
        .map((line) => `${name}: ${line.slice(0, 500)}`),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.places.map(({ instance }) => instance?.[Symbol.asyncDispose]()));
    await Promise.all(this.places.flatMap(({ proxies }) => proxies.map((proxy) => proxy.stop())));
    await this.bus.close();
    await this.nats.stop();
    await rm(this.folder, { recursive: true, force: true, maxRetries: 10 });
  }

  #newProcess({ name, role, url, proxies }: ChaosPlace): RoleProcess {
    const urls = this.servers.map((server, index) => server.urlAt(proxies[index]?.port ?? 0));
    const port = Number(new URL(url).port);
    return new RoleProcess(join(this.folder, name), join(this.folder, "tmp"), port, {
      ...this.#settings,
      TRUNKLINE_ROLES: role,
      TRUNKLINE_NATS_URL: urls.join(","),
    });
  }

  /** Finds the credentials of the first account, which one of the gateways created. */
  async #findCredentials(): Promise<void> {
    for (const { instance } of this.placesOf("gateway")) {
      this.#credentials ??= await instance?.credentials().catch(() => undefined);
    }
  }
}

async function placeOf(
  role: ChaosRole,
  index: number,
  { servers }: TestNatsCluster,
): Promise<ChaosPlace> {
  const proxies = await Promise.all(servers.map(({ port }) => TcpProxy.start(port)));
  const name = `${role}-${index % OF_EACH_ROLE}`;
  const url = `http://127.0.0.1:${await freePort()}`;
  return { name, role, url, proxies, instance: undefined, isReady: false };
}
