/**
 * A crawl worker on a real bus with real sites. A stand-in replaces the jobs: it grants requests and records
 * messages.
 */
import { randomBytes } from "node:crypto";
import { pino } from "pino";
import { z } from "zod";
import { envelope } from "../../../../../schemas/contract.ts";
import { crawlJob, type PageOutcome } from "../../../../../schemas/crawl/crawl-job.ts";
import { crawlPage, type TurnRequest } from "../../../../../schemas/crawl/crawl-page.ts";
import { CrawlRequest } from "../../../../../schemas/crawl/http/crawl.ts";
import { MARKDOWN_QUEUE_MAX } from "../../../../../schemas/crawl/limits.ts";
import { site } from "../../../../../schemas/crawl/site.ts";
import { ActorError } from "../../../../../schemas/errors.ts";
import { STREAMS } from "../../../../../schemas/subjects.ts";
import { type BusActors, busActors } from "../../../../../scripts/testing/bus-actors.ts";
import { until } from "../../../../../scripts/testing/until.ts";
import { createAddressPolicy } from "../../../../egress/address-policy.ts";
import { createEgressGuard } from "../../../../egress/egress-guard.ts";
import { MarkdownPool } from "../../../../rendering/lib/extract/markdown-pool.ts";
import { RequestKeys } from "../../../../rendering/lib/request-keys/request-keys.ts";
import type { Bus } from "../../../../runtime/bus/bus.ts";
import { defineActor } from "../../../../runtime/kinds/define-actor.ts";
import { systemClock as clock } from "../../../../runtime/lib/clock.ts";
import { FairSemaphore } from "../../../../runtime/lib/fair-semaphore.ts";
import { Semaphore } from "../../../../runtime/lib/semaphore.ts";
import { BlobStore } from "../../../../runtime/store/blob-store.ts";
import { TtlStore } from "../../../../runtime/store/ttl-store.ts";
import { HttpPageLoader } from "../../../lib/load/http-page-loader.ts";
import { HeldJobs } from "../../../lib/records/held-jobs.ts";
import { CachedPage } from "../../../lib/records/page-cache.ts";
import { RecordWriter } from "../../../lib/records/record-writer.ts";
import { siteActor } from "../../../site/site.ts";
import { crawlPageWorker } from "../crawl-page.ts";
import { CACHED_COPIES_MAX, LARGE_BODIES_MAX } from "../open-crawl-worker.ts";
import type { TurnWalkParts } from "../walk-turn.ts";

const ID_BYTES = 16;
export const newId = () => randomBytes(ID_BYTES).toString("hex");

export type Fetched = Extract<PageOutcome, { kind: "fetched" }>;

interface Heard {
  job: string;
  message: string;
  // biome-ignore lint/suspicious/noExplicitAny: what any message of the contract has.
  input: any;
}

export interface WorldOptions {
  fetchMs?: number;
  pages?: number;
  slots?: number;
}

/**
 * Timeout of a fetch in tests. A response that hangs takes this long. Even on a busy machine a large response takes
 * less.
 */
const FETCH_MS = 12_000;
/** A page may take FETCH_MS, and everything else several times as long on a busy machine. */
const OUTCOMES_MS_MAX = 200_000;

export class CrawlWorld {
  readonly heard: Heard[] = [];
  /** Requests that each job has still to make, by host. */
  readonly #queues = new Map<string, TurnRequest[]>();
  /** Unreported requests of each turn. */
  readonly #unreported = new Map<string, TurnRequest[]>();
  readonly account = newId();
  readonly blobs: BlobStore;
  readonly #bus: BusActors;
  readonly #close: () => Promise<void>;

  static async start({ fetchMs = FETCH_MS, pages = 16, slots = 16 }: WorldOptions = {}) {
    const guard = createEgressGuard({
      policy: createAddressPolicy({ allow: ["127.0.0.0/8"] }),
    });
    const markdown = new MarkdownPool();
    let jobs: HeldJobs | undefined;
    let world: CrawlWorld | undefined;
    const recorder = standIn((job, message, input) => world?.hear(job, message, input) ?? []);
    const workers = (bus: Bus) => {
      const blobs = new BlobStore(bus, clock);
      jobs = new HeldJobs({
        ...{ blobs, requestKeys: new RequestKeys(bus), clock },
        open: async (_, request) => new HttpPageLoader({ guard, clock, request, fetchMs }),
      });
      const turns: TurnWalkParts = {
        jobs,
        cache: new TtlStore(bus, "page", CachedPage),
        sitemaps: { guard, clock, fetchMs },
        clock,
        logger: pino({ level: "fatal" }),
        places: new FairSemaphore({ places: pages }),
        largePlaces: new FairSemaphore({ places: LARGE_BODIES_MAX }),
        copyPlaces: new FairSemaphore({ places: CACHED_COPIES_MAX }),
        markdown,
        markdownPlaces: new Semaphore(MARKDOWN_QUEUE_MAX),
        records: new RecordWriter(blobs),
        blobs,
        unreported: new Map(),
      };
      const json = {
        blobs,
        extractor: { extract: () => Promise.reject(new Error("no model here")) },
        markdownPlaces: turns.markdownPlaces,
        largePlaces: turns.largePlaces,
        markdown,
        hold: () => Promise.reject(new Error("no model here")),
        clock,
      };
      const definition = crawlPageWorker({
        lanes: { fetch: lane(slots), robots: lane(4), purge: lane(1) },
        fetch: turns,
        browser: turns,
        robots: { guard, clock, fetchMs, places: new FairSemaphore({ places: pages }) },
        json,
        blobs,
      });
      return [definition];
    };
    const bus = await busActors({ actors: [siteActor, recorder], workers });
    world = new CrawlWorld(bus, async () => {
      await bus.stop();
      await jobs?.close();
      await markdown.close();
    });
    return world;
  }

  constructor(bus: BusActors, close: () => Promise<void>) {
    this.#bus = bus;
    this.#close = close;
    this.blobs = new BlobStore(bus.bus, clock);
  }

  get actors() {
    return this.#bus.actors;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
  }

  /** Starts a new job with these requests; each is made when its site allows it. Resolves with the job's id. */
  async crawl(
    request: object & { url: string },
    requests: readonly TurnRequest[],
    account = this.account,
  ): Promise<string> {
    const job = newId();
    const whole = CrawlRequest.parse({ render: false, maxAge: 0, ...request });
    await this.blobs.put(`crawl.${job}.request`, Buffer.from(JSON.stringify(whole)));
    const byHost = Map.groupBy(requests, ({ url }) => new URL(url).host);
    const intent = { purposes: whole.crawlPurposes };
    for (const [host, some] of byHost) {
      this.#queues.set(`${job} ${host}`, some);
      const tell = [{ scheme: "http" as const, intent }];
      await this.actors.send(site, host, "want", { account, job, wants: some.length, tell });
    }
    return job;
  }

  /** Resolves with this many outcomes of a job, in the order of their indexes. */
  async outcomes(job: string, count: number): Promise<PageOutcome[]> {
    return until(
      `${count} outcomes`,
      () => {
        // A task that a busy machine interrupts runs again, and tells its outcomes again.
        const all = new Map(this.#outcomesOf(job).map((one) => [one.index, one]));
        return all.size >= count && [...all.values()].toSorted((a, b) => a.index - b.index);
      },
      OUTCOMES_MS_MAX,
    );
  }

  /** Resolves when no task is waiting or running. */
  async idle(): Promise<void> {
    const { streams } = this.#bus.bus.jetstream;
    await until(
      "the tasks are over",
      async () => (await streams.info(STREAMS.tasks)).state.messages === 0,
    );
  }

  /** Resolves with the first message of this name to a job. */
  told(job: string, message: string): Promise<Heard["input"]> {
    return until(message, () => this.#of(job).find((one) => one.message === message)?.input);
  }

  messages(job: string): string[] {
    return this.#of(job).map(({ message }) => message);
  }

  async record(outcome: PageOutcome | undefined): Promise<Record<string, unknown>> {
    const [blob] = outcome !== undefined && "blobs" in outcome ? outcome.blobs : [];
    return blob === undefined ? {} : this.members(blob.name);
  }

  async members(name: string): Promise<Record<string, unknown>> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of this.blobs.get(name)) chunks.push(chunk);
    return JSON.parse(`{${Buffer.concat(chunks)}}`);
  }

  /** Removes a job's blobs by the message that a job sends when it expires. */
  purge(job: string): Promise<void> {
    return this.actors.send(crawlJob, job, "expire", {});
  }

  hear(job: string, message: string, input: Heard["input"]) {
    this.heard.push({ job, message, input });
    if (message === "expire") return [envelope(crawlPage, job, "purge", { job })];
    if (message === "turnReported" || message === "sitemapRead") this.#settle(input);
    if (message === "turnEnded") return this.#giveBack(job, input);
    if (message !== "turnGranted") return [];
    const { host, turn, requests: max } = input;
    const requests = this.#queues.get(`${job} ${host}`)?.splice(0, max) ?? [];
    if (requests.length === 0) return [envelope(site, host, "turnFinished", { turn })];
    this.#unreported.set(turn, requests);
    const task = { account: this.account, job, host, turn, requests };
    return [envelope(crawlPage, job, "fetchTurn", task)];
  }

  #settle({ turn, outcomes = [], url, end }: Heard["input"]): void {
    const indexes = new Set(outcomes.map(({ index }: PageOutcome) => index));
    const isSettled = (request: TurnRequest) =>
      request.type === "page" ? indexes.has(request.index) : end && request.url === url;
    const left = this.#unreported.get(turn)?.filter((request) => !isSettled(request));
    if (left) this.#unreported.set(turn, left);
  }

  /**
   * Requeues the unreported requests of an ended turn, as a real job does. Such requests exist, for example, if the
   * worker was suspended until it lost its task.
   */
  #giveBack(job: string, { host, turn }: Heard["input"]) {
    const left = this.#unreported.get(turn) ?? [];
    this.#unreported.delete(turn);
    if (left.length === 0) return [];
    const key = `${job} ${host}`;
    const queue = [...(this.#queues.get(key) ?? []), ...left];
    this.#queues.set(key, queue);
    const want = { account: this.account, job, wants: queue.length, tell: [] };
    return [envelope(site, host, "want", want)];
  }

  #of(job: string): Heard[] {
    return this.heard.filter((one) => one.job === job);
  }

  #outcomesOf(job: string): PageOutcome[] {
    return this.#of(job)
      .filter(({ message }) => message === "turnReported")
      .flatMap(({ input }) => input.outcomes);
  }
}

type Hear = (job: string, message: string, input: unknown) => ReturnType<CrawlWorld["hear"]>;

/** Returns a stand-in for the job actor. It refuses calls, and passes all other messages to `hear`. */
function standIn(hear: Hear) {
  const told =
    (message: string) =>
    (state: object, input: unknown, { key }: { key: string }) => ({
      state,
      send: hear(key, message, input),
    });
  const refuse = () => {
    throw new ActorError("not_found", "Cannot answer: this is a stand-in");
  };
  return defineActor(crawlJob, {
    state: z.object({}),
    initial: {},
    handlers: {
      start: refuse,
      get: refuse,
      list: refuse,
      cancel: refuse,
      ...(Object.fromEntries(
        Object.keys(crawlJob.messages)
          .filter((message) => !["start", "get", "list", "cancel"].includes(message))
          .map((message) => [message, told(message)]),
        // biome-ignore lint/suspicious/noExplicitAny: one handler for all that are left.
      ) as any),
    },
  });
}

/** Returns the limits of a lane in which one account may have all places. */
export const lane = (places: number) => ({
  places,
  computing: places,
  perKey: places,
  reserved: 0,
});
