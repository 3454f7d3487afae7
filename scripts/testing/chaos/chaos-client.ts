/**
 * The client of a chaos run. It sends requests to any gateway that seems to be alive, and never throws when a
 * response is lost.
 */
import { WebSocket } from "ws";
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import type { WireCrawlSummary, WireRecord } from "../../../schemas/crawl/http/crawl-answers.ts";
import { Watcher } from "../app-platform.ts";
import type { StormGateway, StormScene } from "../app-storm.ts";
import type { CheckedScene } from "../crawl-check.ts";
import { postOnce } from "../post-once.ts";
import type { SeededRandom } from "../seeded-random.ts";
import { until } from "../until.ts";
import type { ChaosCluster } from "./chaos-cluster.ts";
import type { Fault } from "./fault-schedule.ts";

/** Request timeout of a client. It is longer than the deadline of a call. */
const REQUEST_MS_MAX = 30_000;
const AGAIN_MS = 100;
const CALM_MS_MAX = 90_000;
/** Deadline of the requests that prepare a load, before the first fault. */
const MADE_MS_MAX = 300_000;

export interface ChaosAnswer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: each load knows the shape of its own answers.
  json: any;
  body: Buffer;
}

interface ChaosRequest {
  json?: unknown;
  /** The account's own token by default. */
  token?: string;
  headers?: Record<string, string>;
}

/** The part of a cluster that its clients use. */
type KnownCluster = Pick<ChaosCluster, "credentials"> & {
  readonly livingGateways: readonly StormGateway[];
};

export class ChaosClient implements StormScene, CheckedScene {
  readonly #cluster: KnownCluster;
  readonly faults: readonly Fault[];
  readonly #random: SeededRandom;

  constructor(cluster: KnownCluster, faults: readonly Fault[], random: SeededRandom) {
    this.#cluster = cluster;
    this.faults = faults;
    this.#random = random;
  }

  get livingGateways(): readonly StormGateway[] {
    return this.#cluster.livingGateways;
  }

  get platform(): { accountId: string } {
    return { accountId: this.#cluster.credentials.account_id };
  }

  /** Returns the path of a route of the cluster's first account. */
  accountPath(path: string): string {
    return `/v4/accounts/${this.platform.accountId}${path}`;
  }

  /** Waits until a gateway lives, and returns it. */
  gateway(): Promise<StormGateway> {
    const look = async () => {
      const [...living] = this.livingGateways;
      if (living.length > 0) return this.#random.pick(living);
      await clock.wait(AGAIN_MS);
      return undefined;
    };
    return until("a gateway lives", look, CALM_MS_MAX);
  }

  /**
   * Sends one request. Returns undefined if there was no response, or only a part of one. Then the effect of the
   * request is unknown.
   */
  async ask(
    method: string,
    path: string,
    { json, token, headers = {} }: ChaosRequest = {},
  ): Promise<ChaosAnswer | undefined> {
    const { url } = await this.gateway();
    try {
      const response = await fetch(url + path, {
        method,
        headers: {
          Authorization: `Bearer ${token ?? this.#cluster.credentials.api_token}`,
          "Content-Type": "application/json",
          ...headers,
        },
        signal: AbortSignal.timeout(REQUEST_MS_MAX),
        ...(json !== undefined && { body: JSON.stringify(json) }),
      });
      const body = Buffer.from(await response.arrayBuffer());
      const isJson = response.headers.get("content-type")?.includes("json") === true;
      return { status: response.status, body, json: isJson && JSON.parse(body.toString()) };
    } catch {
      return undefined;
    }
  }

  /**
   * Sends a request that changes nothing, and repeats it until it succeeds. Rejects if the platform refuses the
   * request.
   */
  async read(path: string): Promise<ChaosAnswer> {
    let seen = "nothing";
    const look = async () => {
      const answer = await this.ask("GET", path);
      if (answer?.status === 200) return answer;
      seen = answer ? `${answer.status} ${answer.body.toString().slice(0, 300)}` : "no answer";
      if (answer && answer.status < 500) throw new Error(`Cannot read ${path}: ${seen}`);
      await clock.wait(AGAIN_MS);
      return undefined;
    };
    return await until(`${path} can be read`, look, CALM_MS_MAX).catch(({ message }) => {
      throw new Error(`${message}: ${seen}`);
    });
  }

  /** Sends a request that is safe to repeat, and repeats it until it succeeds. */
  async insist(method: string, path: string, json?: unknown): Promise<ChaosAnswer> {
    let seen = "nothing";
    const look = async () => {
      const answer = await this.ask(method, path, { json });
      if (answer && answer.status < 300) return answer;
      seen = answer ? `${answer.status} ${answer.body.toString().slice(0, 300)}` : "no answer";
      await clock.wait(AGAIN_MS);
      return undefined;
    };
    return await until(`${method} ${path} succeeds`, look, MADE_MS_MAX).catch(({ message }) => {
      throw new Error(`${message}: ${seen}`);
    });
  }

  /** Returns all records of a crawl, page by page with the cursor. */
  async records(id: string): Promise<WireRecord[]> {
    const records: WireRecord[] = [];
    for (let cursor = ""; ; ) {
      const path = `${this.crawlPath}/${id}?${cursor}`;
      const { result } = (await this.read(path)).json;
      records.push(...result.records);
      if (result.cursor === undefined) return records;
      cursor = `cursor=${result.cursor}`;
    }
  }

  async crawlSummary(id: string): Promise<WireCrawlSummary> {
    return (await this.read(`${this.crawlPath}/${id}?limit=1`)).json.result;
  }

  get crawlPath(): string {
    return this.accountPath("/browser-rendering/crawl");
  }

  post(
    gateway: StormGateway,
    path: string,
    { headers, body }: { headers: Record<string, string>; body: string },
  ): Promise<{ status: number; text: string } | undefined> {
    const url = this.#appUrl(gateway.url, path);
    return postOnce(url, { headers, body, timeoutMs: REQUEST_MS_MAX });
  }

  async watch(gateway: StormGateway, path: string): Promise<Watcher> {
    const url = this.#appUrl(gateway.url.replace("http", "ws"), path);
    const watcher = new Watcher(new WebSocket(url, { handshakeTimeout: REQUEST_MS_MAX }));
    await watcher.opened;
    return watcher;
  }

  #appUrl(base: string, path: string): string {
    return `${base}/apps/${this.platform.accountId}${path}`;
  }
}
