/** Runs the whole program as real processes, with a bus and a client, for tests of crawls. */
import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newSecretKey } from "../../actors/apps/lib/app-secrets/secret-box.ts";
import { systemClock as clock } from "../../actors/runtime/lib/clock.ts";
import type { WireCrawlSummary, WireRecord } from "../../schemas/crawl/http/crawl-answers.ts";
import { freePort } from "../free-port.ts";
import { startNats, type TestNatsServer } from "./nats-server.ts";
import { type Credentials, RoleProcess } from "./role-process.ts";
import { SeededRandom } from "./seeded-random.ts";
import { TcpProxy } from "./tcp-proxy.ts";
import { until } from "./until.ts";

export type SceneRole = "gateway" | "actors" | "browser";
export type WireCrawl = WireCrawlSummary & { records: WireRecord[]; cursor?: string };

export interface CrawlSceneOptions {
  seed?: number;
  /** Number of processes with the role `actors`, and below with the role `browser`. Default: one. */
  actors?: number;
  browsers?: number;
  environment?: NodeJS.ProcessEnv;
  /**
   * If true, processes connect to the bus without a proxy. Connections are faster then, but tests cannot cut them.
   */
  direct?: boolean;
}

/** A process that can be killed and restarted with the same data at the same port. */
interface Place {
  name: string;
  role: SceneRole;
  port: number;
  /** The process's proxy to the bus. */
  proxy: TcpProxy;
  instance: RoleProcess | undefined;
}

/** Time for which a request is retried, because requests fail while their server is dead. */
const ANSWER_MS_MAX = 60_000;
const AGAIN_MS = 100;

export class CrawlScene implements AsyncDisposable {
  random: SeededRandom;
  readonly nats: TestNatsServer;
  readonly places: readonly Place[];
  /** Begin and end of each fault, by the machine's clock. */
  readonly faults: { what: string; at: number; until: number }[] = [];
  readonly #folder: string;
  readonly #environment: NodeJS.ProcessEnv;
  readonly #direct: boolean;
  /** Seals the requests of crawls: one key for all processes, as in every cluster. */
  readonly #secretsKey = newSecretKey();
  #credentials: Credentials | undefined;

  static async start(options: CrawlSceneOptions = {}): Promise<CrawlScene> {
    const { seed = SeededRandom.newSeed(), actors = 1, browsers = 1 } = options;
    const { environment, direct = false } = options;
    const folder = await mkdtemp(join(tmpdir(), "trunkline-crawl-"));
    // If we are root, browsers run as another user and keep their profiles in this folder.
    await chmod(folder, 0o755);
    const nats = await startNats();
    const roles: SceneRole[] = ["gateway"];
    roles.push(...Array.from({ length: actors }, () => "actors" as const));
    roles.push(...Array.from({ length: browsers }, () => "browser" as const));
    const places = await Promise.all(
      roles.map(async (role, index) => {
        const [port, proxy] = [await freePort(), await TcpProxy.start(nats.port)];
        return { name: `${role}-${index}`, role, port, proxy, instance: undefined };
      }),
    );
    const scene = new CrawlScene({ seed, folder, nats, places, environment, direct });
    try {
      await scene.startAll();
      return scene;
    } catch (error) {
      await scene[Symbol.asyncDispose]();
      throw error;
    }
  }

  constructor(parts: {
    seed: number;
    folder: string;
    nats: TestNatsServer;
    places: readonly Place[];
    environment: NodeJS.ProcessEnv | undefined;
    direct: boolean;
  }) {
    this.random = new SeededRandom(parts.seed);
    this.nats = parts.nats;
    this.places = parts.places;
    this.#folder = parts.folder;
    this.#environment = parts.environment ?? {};
    this.#direct = parts.direct;
  }

  /** Starts every process that does not run, and waits until it is ready. */
  async startAll(): Promise<void> {
    await Promise.all(this.places.map((place) => this.#start(place)));
    await Promise.all(this.places.map(({ instance }) => instance?.ready()));
    const [gateway] = this.places;
    this.#credentials ??= await gateway?.instance?.credentials();
  }

  /**
   * Prepares the next test of a file: its choices depend on the seed alone, and everything runs that an earlier test
   * left down when it failed.
   */
  async prepare(seed: number): Promise<void> {
    this.random = new SeededRandom(seed);
    for (const { proxy } of this.places) proxy.open();
    if (!this.nats.isRunning) await this.nats.start();
    await this.startAll();
  }

  pidsOf(role: SceneRole): number[] {
    return this.places.flatMap((place) =>
      place.role === role && place.instance ? [place.instance.pid] : [],
    );
  }

  /** Error lines of the processes' logs, to print with a failed test. */
  get errorLines(): string[] {
    return this.places.flatMap(({ name, instance }) =>
      (instance?.lines ?? [])
        .filter((line) => /"level":"?(error|fatal|50|60)/.test(line) || !line.startsWith("{"))
        .map((line) => `${name}: ${line.slice(0, 600)}`),
    );
  }

  /** Kills a random process of the role with SIGKILL, and restarts it. */
  async killOne(role: SceneRole): Promise<void> {
    const place = this.random.pick(this.places.filter((one) => one.role === role));
    await this.#during(`${place.name} killed`, async () => {
      await this.#kill(place);
      await this.#start(place);
      await place.instance?.ready();
    });
  }

  /** Kills all processes and the bus at the same time. */
  async killAll(): Promise<void> {
    await this.#during("all killed", async () => {
      await Promise.all([...this.places.map((place) => this.#kill(place)), this.nats.kill()]);
      await this.nats.start();
      await this.startAll();
    });
  }

  async killBus(downMs: number): Promise<void> {
    await this.#during(`bus killed for ${downMs} ms`, async () => {
      await this.nats.kill();
      await clock.wait(downMs);
      await this.nats.start();
    });
  }

  async cutOff(role: SceneRole, forMs: number, how: "cut" | "stall"): Promise<void> {
    const { name, proxy } = this.random.pick(this.places.filter((one) => one.role === role));
    await this.#during(`${name}: ${how} for ${forMs} ms`, async () => {
      proxy[how]();
      await clock.wait(forMs);
      proxy.open();
    });
  }

  async startCrawl(request: object): Promise<string> {
    const { status, json } = await this.ask("", "POST", request);
    if (status !== 200) throw new Error(`Cannot start crawl: ${status} ${JSON.stringify(json)}`);
    return (json as { result: string }).result;
  }

  async summary(id: string): Promise<WireCrawlSummary> {
    return (await this.#read(id, "?limit=1")) as WireCrawlSummary;
  }

  /** Returns all records of a crawl, page by page with the cursor. */
  async records(id: string, query = ""): Promise<WireRecord[]> {
    const records: WireRecord[] = [];
    for (let cursor = ""; ; ) {
      const read = (await this.#read(id, `?${query}${cursor}`)) as WireCrawl;
      records.push(...read.records);
      if (read.cursor === undefined) return records;
      cursor = `&cursor=${read.cursor}`;
    }
  }

  ended(id: string, withinMs: number): Promise<WireCrawlSummary> {
    const look = async () => {
      await clock.wait(AGAIN_MS);
      const summary = await this.summary(id);
      return summary.status !== "running" && summary;
    };
    return until(`crawl ${id} has ended`, look, withinMs);
  }

  /** Sends one request, and returns its response whatever the status is. */
  async ask(path: string, method = "GET", body?: object) {
    const response = await fetch(this.crawlsUrl + path, {
      method,
      headers: { ...this.authorization, "Content-Type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: response.status, json: (await response.json()) as unknown };
  }

  get accountId(): string {
    return this.#known().account_id;
  }

  get crawlsUrl(): string {
    const { base_url, account_id } = this.#known();
    return `${base_url}/accounts/${account_id}/browser-rendering/crawl`;
  }

  get authorization(): { Authorization: string } {
    return { Authorization: `Bearer ${this.#known().api_token}` };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.places.map(({ instance }) => instance?.[Symbol.asyncDispose]()));
    await Promise.all(this.places.map(({ proxy }) => proxy.stop()));
    await this.nats.stop();
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 10 });
  }

  #known(): Credentials {
    if (this.#credentials === undefined) throw new Error("Cannot ask: there is no account yet");
    return this.#credentials;
  }

  /** Repeats a read of the crawl until there is a response. */
  #read(id: string, query: string): Promise<unknown> {
    const look = async () => {
      const answer = await this.ask(`/${id}${query}`).catch(() => undefined);
      if (answer?.status === 200) return (answer.json as { result: unknown }).result;
      if (answer !== undefined && answer.status < 500) {
        throw new Error(`Cannot read crawl: ${answer.status} ${JSON.stringify(answer.json)}`);
      }
      await clock.wait(AGAIN_MS);
      return undefined;
    };
    return until(`crawl ${id} can be read`, look, ANSWER_MS_MAX);
  }

  async #during(what: string, action: () => Promise<void>): Promise<void> {
    const fault = { what, at: Date.now(), until: Number.POSITIVE_INFINITY };
    this.faults.push(fault);
    await action();
    fault.until = Date.now();
    console.log(`      ${what}; it took ${fault.until - fault.at} ms`);
  }

  async #start(place: Place): Promise<void> {
    if (place.instance) return;
    const temporary = join(this.#folder, "tmp");
    await mkdir(temporary, { recursive: true });
    const dataDir = join(this.#folder, place.name);
    place.instance = new RoleProcess(dataDir, temporary, place.port, {
      TRUNKLINE_ROLES: place.role,
      TRUNKLINE_NATS_URL: this.#direct ? this.nats.url : this.nats.urlAt(place.proxy.port),
      TRUNKLINE_EGRESS_ALLOW: "127.0.0.0/8",
      TRUNKLINE_REQUESTS_PER_5_MINUTES: "0",
      TRUNKLINE_BROWSER_SECONDS_PER_DAY: "0",
      ...(place.role !== "browser" && { TRUNKLINE_SECRETS_KEY: this.#secretsKey }),
      ...this.#environment,
    });
  }

  async #kill(place: Place): Promise<void> {
    const { instance } = place;
    if (!instance) return;
    instance.signal("SIGKILL");
    await instance.exit();
    place.instance = undefined;
  }
}
