/**
 * The load of a soak test: tokens, PDFs, commits, agents and crawls. Checks what must survive a jump of the time of
 * day.
 */
import { systemClock as clock } from "../../actors/runtime/lib/clock.ts";
import { CrawlSite } from "./crawl-site.ts";
import type { Credentials } from "./role-process.ts";
import { TokenLoad } from "./token-load.ts";
import { until } from "./until.ts";

const CLIENTS = 2;
const PAUSE_MS = 200;
const AGENTS = 5;
const ROWS_KEPT = 100;
const TIMER_SECONDS = 5;
const DONE_MS_MAX = 120_000;
const DAY_MS = 86_400_000;

const BUNDLE = `
import { Agent, routeAgentRequest } from "trunkline/agents";
export class Diary extends Agent {
  initialState = { rung: 0 };
  onStart() { this.sql\`CREATE TABLE IF NOT EXISTS lines (id INTEGER PRIMARY KEY, text TEXT)\`; }
  async onRequest(request) {
    const seconds = Number(new URL(request.url).searchParams.get("timer"));
    if (seconds > 0) await this.schedule(seconds, "ring", {});
    this.sql\`INSERT INTO lines (text) VALUES (\${"a line"})\`;
    this.sql\`DELETE FROM lines WHERE id <= (SELECT max(id) FROM lines) - ${ROWS_KEPT}\`;
    return Response.json(this.state);
  }
  ring() { this.setState({ rung: this.state.rung + 1 }); }
}
export default { fetch: async (request, env) => (await routeAgentRequest(request, env)) ?? new Response("no", { status: 404 }) };
`;

export class SoakWork implements AsyncDisposable {
  readonly counts: Record<string, number> = {
    commits: 0,
    pdfs: 0,
    agents: 0,
    crawls: 0,
    timers: 0,
  };
  readonly #credentials: Credentials;
  readonly #site: CrawlSite;
  readonly #tokens: TokenLoad;
  readonly #failures: string[] = [];
  readonly #running: Promise<void>[];
  #isStopping = false;
  /** Seconds by which the platform's time of day is ahead of the machine's time of day. */
  #offsetSeconds = 0;
  #lastCrawl = "";

  static async start(credentials: Credentials): Promise<SoakWork> {
    const site = await CrawlSite.start([
      { address: "127.0.23.1", pages: 20, sitemap: true, crawlDelay: 0 },
    ]);
    const work = new SoakWork(credentials, site);
    const agents = [{ binding: "Diary", class_name: "Diary" }];
    const config = { name: "soak", compatibility_date: "2026-11-20", agents };
    await work.#rest("PUT", "/apps/soak", { config, bundle: BUNDLE });
    await work.#rest("POST", "/artifacts/namespaces/default/repos", { name: "soak" });
    work.#begin();
    return work;
  }

  constructor(credentials: Credentials, site: CrawlSite) {
    this.#credentials = credentials;
    this.#site = site;
    this.#tokens = new TokenLoad(credentials, CLIENTS);
    this.#running = [];
  }

  /**
   * Changes the time of day by `jump`, and records what fails afterwards: tokens, waiting timers and new requests.
   */
  async atJump(jump: () => Promise<void>, seconds: number): Promise<void> {
    await this.#tryJump(jump, seconds).catch((error: Error) =>
      this.#failures.push(`${error.message}, ${seconds} s after the truth`),
    );
  }

  async #tryJump(jump: () => Promise<void>, seconds: number): Promise<void> {
    const before = await this.#rung();
    await this.#agent("timer", `?timer=${TIMER_SECONDS}`);
    const platformMs = Date.now() + this.#offsetSeconds * 1_000;
    const short = await this.#token(new Date(platformMs + DAY_MS / 2));
    const isExpired = seconds - this.#offsetSeconds > DAY_MS / 2_000;
    await jump();
    this.#offsetSeconds = seconds;
    await this.#tokens.more(10).catch((error: Error) => this.#failures.push(error.message));
    const status = await this.#verify(short);
    // A token that was valid for 12 hours must have expired after a jump of more than 12 hours ahead. Otherwise it
    // must still be valid.
    if (short !== undefined && (status === 401) !== isExpired) {
      this.#failures.push(`a token of 12 hours: ${status}, ${seconds} s after the truth`);
    }
    const rings = async () => (await this.#rung()) === before + 1;
    await until("the timer rings once", rings, DONE_MS_MAX).then(
      () => {
        this.counts.timers = (this.counts.timers ?? 0) + 1;
      },
      (error: Error) => this.#failures.push(`${error.message}, ${seconds} s after the truth`),
    );
  }

  /** Stops the load. Returns descriptions of everything that failed or was lost. */
  async finish(): Promise<string[]> {
    this.#isStopping = true;
    await Promise.all(this.#running);
    this.counts.tokens = this.#tokens.acknowledged;
    const lost = await this.#tokens.findLost();
    return [...new Set([...this.#failures, ...this.#tokens.failures, ...lost])];
  }

  /**
   * Changes the time of day by `jump` to one after which no crawl is kept. Returns what can still be read, whether it
   * was removed or not.
   */
  async findKeptCrawls(jump: () => Promise<void>): Promise<string[]> {
    const path = `/browser-rendering/crawl/${this.#lastCrawl}?limit=1`;
    const before = await this.#statusOf(path);
    await jump();
    const after = await until(
      "the crawl is refused",
      async () => (await this.#statusOf(path)) === 404,
      DONE_MS_MAX,
    ).then(
      () => 404,
      () => this.#statusOf(path),
    );
    if (before === 200 && after === 404) return [];
    return [`a crawl past its time: ${after}, and ${before} before`];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true;
    await this.#tokens.stop();
    await Promise.allSettled(this.#running);
    await this.#site[Symbol.asyncDispose]();
  }

  #begin(): void {
    const files = "/artifacts/namespaces/default/repos/soak/commits";
    this.#repeat("commits", (count) => {
      const changes = [{ path: `file-${count % 10}.txt`, content: `number ${count}\n` }];
      return this.#rest("POST", files, { message: `Commit ${count}`, changes });
    });
    this.#repeat("pdfs", () =>
      this.#rest("POST", "/browser-rendering/pdf?cacheTTL=0", { html: "<h1>Soak</h1>" }),
    );
    this.#repeat("agents", (count) => this.#agent(`agent-${count % AGENTS}`));
    this.#repeat("crawls", () => this.#crawl());
  }

  #repeat(name: string, work: (count: number) => Promise<unknown>): void {
    const run = async () => {
      for (let count = 0; !this.#isStopping; count++) {
        await work(count).then(
          () => {
            this.counts[name] = (this.counts[name] ?? 0) + 1;
          },
          (error: Error) => this.#failures.push(`${name}: ${error.message}`),
        );
        await clock.wait(PAUSE_MS);
      }
    };
    this.#running.push(run());
  }

  async #crawl(): Promise<void> {
    const url = `${this.#site.origins[0]}/`;
    const start = { url, render: false, limit: 20, maxAge: 0 };
    const id = await this.#rest("POST", "/browser-rendering/crawl", start);
    this.#lastCrawl = String(id);
    const path = `/browser-rendering/crawl/${id}`;
    await until(
      `crawl ${id} ends`,
      async () => {
        await clock.wait(PAUSE_MS);
        const { status } = (await this.#rest("GET", `${path}?limit=1`)) as { status: string };
        if (status !== "running" && status !== "completed") throw new Error(`crawl is ${status}`);
        return status === "completed";
      },
      DONE_MS_MAX,
    );
  }

  async #rung(): Promise<number> {
    const answer = await this.#agent("timer");
    return ((await answer.json()) as { rung: number }).rung;
  }

  async #token(expiresAt: Date): Promise<string | undefined> {
    const made = await this.#rest("POST", "/tokens", {
      name: "half a day",
      expires_on: expiresAt.toISOString().replace(/\.\d+Z$/, "Z"),
      policies: [{ effect: "allow", permission_groups: [{ id: "account.read" }] }],
    }).catch((error: Error) => void this.#failures.push(error.message));
    return (made as { value: string } | undefined)?.value;
  }

  async #verify(token: string | undefined): Promise<number> {
    const response = await fetch(`${this.#credentials.base_url}/user/tokens/verify`, {
      headers: { Authorization: `Bearer ${token}` },
    });
    await response.arrayBuffer();
    return response.status;
  }

  async #agent(name: string, query = ""): Promise<Response> {
    const { base_url, account_id } = this.#credentials;
    const url = base_url.replace(/\/v4$/, `/apps/${account_id}/soak/agents/diary/${name}${query}`);
    const response = await fetch(url);
    if (!response.ok)
      throw new Error(`${response.status} ${(await response.text()).slice(0, 200)}`);
    return new Response(await response.arrayBuffer());
  }

  async #statusOf(path: string): Promise<number> {
    const { base_url, account_id, api_token } = this.#credentials;
    const headers = { Authorization: `Bearer ${api_token}` };
    const response = await fetch(`${base_url}/accounts/${account_id}${path}`, { headers });
    await response.arrayBuffer();
    return response.status;
  }

  async #rest(method: string, path: string, body?: unknown): Promise<unknown> {
    const { base_url, account_id, api_token } = this.#credentials;
    const response = await fetch(`${base_url}/accounts/${account_id}${path}`, {
      method,
      headers: { Authorization: `Bearer ${api_token}`, "Content-Type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const bytes = Buffer.from(await response.arrayBuffer());
    if (!response.ok)
      throw new Error(`${method} ${path}: ${response.status} ${bytes.toString("utf8", 0, 300)}`);
    if (!response.headers.get("content-type")?.includes("json")) return bytes;
    return (JSON.parse(bytes.toString()) as { result: unknown }).result;
  }
}
