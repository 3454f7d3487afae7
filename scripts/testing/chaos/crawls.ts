/**
 * Runs crawls of three hosts, one crawl after another, and checks that each page was fetched once and each host at
 * its permitted pace.
 */
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import { crawlFaults, type JobToCheck, requestsMissing } from "../crawl-check.ts";
import { CrawlSite } from "../crawl-site.ts";
import { until } from "../until.ts";
import type { ChaosClient } from "./chaos-client.ts";
import { type ChaosLoad, Clients, Tally } from "./chaos-load.ts";

const HOSTS = [
  { address: "127.0.24.1", pages: 16, sitemap: true, crawlDelay: 0.4, answerMs: 20 },
  { address: "127.0.24.2", pages: 16, sitemap: false },
  { address: "127.0.24.3", pages: 60, sitemap: true, crawlDelay: 0, answerMs: 100 },
];
const LOOK_MS = 500;
/** Timeout of a crawl. Without faults, a crawl takes 10 s. */
const JOB_MS_MAX = 300_000;

export class CrawlLoad implements ChaosLoad {
  readonly name = "crawls";
  readonly tally = new Tally();
  readonly #client: ChaosClient;
  readonly #clients = new Clients();
  readonly #jobs: JobToCheck[] = [];
  #site: CrawlSite | undefined;
  #started = 0;

  constructor(client: ChaosClient) {
    this.#client = client;
  }

  async start(): Promise<void> {
    this.#site = await CrawlSite.start(HOSTS);
    this.#clients.add(() => this.#crawl());
  }

  stop(): Promise<void> {
    return this.#clients.stop();
  }

  async findProblems(): Promise<string[]> {
    const { site } = this;
    const problems = [...this.tally.problems, ...this.#clients.problems];
    for (const job of this.#jobs) {
      problems.push(...(await crawlFaults(this.#client, site, job)));
      problems.push(
        ...requestsMissing(site, job).map((url) => `${job.name}: ${url} was never asked for`),
      );
    }
    return [...problems, ...site.paceFaults()];
  }

  get site(): CrawlSite {
    if (!this.#site) throw new Error("Cannot name the site: it has not started");
    return this.#site;
  }

  async dispose(): Promise<void> {
    await this.#site?.[Symbol.asyncDispose]();
  }

  async #crawl(): Promise<void> {
    const name = `crawl-${++this.#started}`;
    const since = clock.monotonic();
    const json = {
      url: `${this.site.origins[0]}/`,
      render: false,
      limit: 1_000,
      maxAge: 0,
      options: { includeExternalLinks: true },
      setExtraHTTPHeaders: { "x-job": name },
    };
    const answer = await this.#client.ask("POST", this.#client.crawlPath, { json });
    if (answer?.status !== 200) {
      this.tally.countFailure(answer);
      await clock.wait(LOOK_MS);
      return;
    }
    const id = answer.json.result;
    const isEnded = async () => {
      await clock.wait(LOOK_MS);
      const summary = await this.#client.crawlSummary(id);
      return summary.status !== "running" && summary;
    };
    const { status, messages } = await until(`${name} has ended`, isEnded, JOB_MS_MAX);
    if (status !== "completed") throw new Error(`${name} is ${status}: ${messages.join("; ")}`);
    this.#jobs.push({ id, name, hosts: HOSTS.map((_, host) => host) });
    this.tally.acknowledge(clock.monotonic() - since);
  }
}
