/** Runs the hosts of a crawl test, and checks that the requests kept the promised pace. */
import { join } from "node:path";
import { CRAWL_DELAY_MS, HOST_REQUESTS_IN_FLIGHT_MAX } from "../../schemas/crawl/limits.ts";
import { REPOSITORY } from "../tools.ts";
import { ChildProgram } from "./child-program.ts";
import type { CrawlHost, SiteRequest } from "./crawl-pages.ts";

/** Error of a server's own timestamps, in addition to the time for which the server was suspended. */
const MEASURE_MS = 1;

export class CrawlSite implements AsyncDisposable {
  readonly hosts: readonly CrawlHost[];
  readonly origins: readonly string[];
  readonly #program: ChildProgram;
  #read = 0;
  readonly #requests: SiteRequest[] = [];

  static async start(hosts: readonly CrawlHost[]): Promise<CrawlSite> {
    const main = join(REPOSITORY, "scripts/testing/crawl-site-main.ts");
    const program = new ChildProgram([process.execPath, main, JSON.stringify(hosts)], {});
    const { ports } = JSON.parse(await program.line("ports")) as { ports: number[] };
    const origins = hosts.map(({ address }, index) => `http://${address}:${ports[index]}`);
    return new CrawlSite(hosts, origins, program);
  }

  constructor(hosts: readonly CrawlHost[], origins: readonly string[], program: ChildProgram) {
    this.hosts = hosts;
    this.origins = origins;
    this.#program = program;
  }

  /** All requests so far, in the order of their arrival. */
  get requests(): readonly SiteRequest[] {
    const { lines } = this.#program;
    for (; this.#read < lines.length; this.#read++) {
      const line = lines[this.#read] ?? "";
      if (line.startsWith('{"host"')) this.#requests.push(JSON.parse(line));
      else if (!line.startsWith('{"ports"')) throw new Error(`The site said: ${line}`);
    }
    return this.#requests;
  }

  urlOf({ host, path }: Pick<SiteRequest, "host" | "path">): string {
    return `${this.origins[host]}${path}`;
  }

  /** Describes requests that were certainly too early, or that exceeded the allowed number of concurrent requests. */
  paceFaults(): string[] {
    return this.hosts.flatMap(({ crawlDelay }, host) => {
      const seen = this.requests.filter((request) => request.host === host);
      const delayMs = crawlDelay === undefined ? CRAWL_DELAY_MS : crawlDelay * 1_000;
      return seen.flatMap((request, index) => {
        if (delayMs === 0 && request.open > HOST_REQUESTS_IN_FLIGHT_MAX) {
          return [`${this.urlOf(request)} was one of ${request.open} at once`];
        }
        const before = seen[index - 1];
        if (before === undefined) return [];
        const gapMs = request.at - before.since;
        if (gapMs >= delayMs - MEASURE_MS) return [];
        return [
          `${this.urlOf(request)} came ${gapMs.toFixed(1)} ms after ${before.path}, not ${delayMs}`,
        ];
      });
    });
  }

  /** Returns by how much the gaps between a host's requests exceed its delay: the median, as a share of the delay. */
  medianSlowness(host: number): number {
    const { crawlDelay } = this.hosts[host] ?? {};
    const delayMs = crawlDelay === undefined ? CRAWL_DELAY_MS : crawlDelay * 1_000;
    const seen = this.requests.filter((request) => request.host === host);
    const gaps = seen.slice(1).map(({ at }, index) => at - (seen[index]?.at ?? at));
    const middle = gaps.toSorted((a, b) => a - b)[Math.floor(gaps.length / 2)] ?? delayMs;
    return middle / delayMs - 1;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#program[Symbol.asyncDispose]();
  }
}
