/** Creates and revokes API tokens over HTTP continuously, and checks afterwards which tokens exist. */
import type { Credentials } from "./role-process.ts";
import { until } from "./until.ts";

/** Number of tokens that each client keeps. The tokens of all clients together stay below an account's limit. */
const KEPT_MAX = 4;
/** Bounds a wait for changes. On a busy machine, an election and the next changes take minutes. */
const MORE_MS_MAX = 300_000;

interface Token {
  id: string;
  value: string;
}

export class TokenLoad {
  readonly #credentials: Credentials;
  readonly #stopped = new AbortController();
  readonly #clients: Promise<void>[];
  readonly #live = new Map<string, Token>();
  readonly #revoked: Token[] = [];
  #lastAt = performance.now();
  #gapMs = 0;
  #acknowledged = 0;
  readonly #failures: string[] = [];

  constructor(credentials: Credentials, clients: number) {
    this.#credentials = credentials;
    this.#clients = Array.from({ length: clients }, () => this.#run());
    for (const client of this.#clients) client.catch(() => {}); // It rejects where it is awaited.
  }

  get acknowledged(): number {
    return this.#acknowledged;
  }

  /**
   * Descriptions of the failed requests. The effect of a failed request is unknown, because it was not acknowledged.
   */
  get failures(): readonly string[] {
    return this.#failures;
  }

  /** Returns the longest time in ms without an acknowledged change since the previous call of this method. */
  takeGapMs(): number {
    const gap = Math.max(this.#gapMs, performance.now() - this.#lastAt);
    this.#gapMs = 0;
    return Math.round(gap);
  }

  /** Resolves when `count` more changes have been acknowledged. */
  async more(count: number): Promise<void> {
    const goal = this.#acknowledged + count;
    await until(`${count} more changes`, () => this.#acknowledged >= goal, MORE_MS_MAX);
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await Promise.allSettled(this.#clients);
  }

  /** Stops the load and returns descriptions of all acknowledged changes that were lost. */
  async findLost(): Promise<string[]> {
    this.#stopped.abort();
    await Promise.all(this.#clients);
    const lost: string[] = [];
    const check = async ({ id, value }: Token, expected: number) => {
      const { status } = await this.#fetch("GET", "/user/tokens/verify", { token: value });
      if (status !== expected) lost.push(`token ${id}: expected ${expected}, found ${status}`);
    };
    for (const token of this.#live.values()) await check(token, 200);
    // Tests only the last 50 revoked tokens. With more unknown tokens, the platform would respond 429 to this
    // address.
    for (const token of this.#revoked.slice(-50)) await check(token, 401);
    const listed = await this.#fetch("GET", `${this.#tokens}?per_page=100`);
    const { result } = (await listed.json()) as { result: Token[] };
    const ids = new Set(result.map(({ id }) => id));
    for (const id of this.#live.keys()) if (!ids.has(id)) lost.push(`token ${id} is not listed`);
    for (const { id } of this.#revoked) if (ids.has(id)) lost.push(`token ${id} is listed again`);
    return lost;
  }

  get #tokens(): string {
    return `/accounts/${this.#credentials.account_id}/tokens`;
  }

  async #run(): Promise<void> {
    const own: Token[] = [];
    while (!this.#stopped.signal.aborted) {
      const oldest = own.length >= KEPT_MAX ? own.shift() : undefined;
      if (oldest) await this.#revoke(oldest);
      else {
        const token = await this.#create();
        if (token) own.push(token);
      }
    }
  }

  async #create(): Promise<Token | undefined> {
    const group = { id: "account.read" };
    const policies = [{ effect: "allow", permission_groups: [group] }];
    const response = await this.#fetch("POST", this.#tokens, { json: { name: "load", policies } });
    if (!response.ok) return this.#fail(response);
    const { result } = (await response.json()) as { result: Token };
    this.#live.set(result.id, result);
    this.#acknowledge();
    return result;
  }

  async #revoke(token: Token): Promise<void> {
    this.#live.delete(token.id);
    const response = await this.#fetch("DELETE", `${this.#tokens}/${token.id}`);
    if (!response.ok) return this.#fail(response);
    await response.text();
    this.#revoked.push(token);
    this.#acknowledge();
  }

  #acknowledge(): void {
    const now = performance.now();
    this.#gapMs = Math.max(this.#gapMs, now - this.#lastAt);
    this.#lastAt = now;
    this.#acknowledged += 1;
  }

  async #fail(response: Response): Promise<undefined> {
    this.#failures.push(`${response.status} ${(await response.text()).slice(0, 300)}`);
  }

  #fetch(
    method: string,
    path: string,
    { token = this.#credentials.api_token, json }: { token?: string; json?: unknown } = {},
  ): Promise<Response> {
    return fetch(`${this.#credentials.base_url}${path}`, {
      method,
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      ...(json !== undefined && { body: JSON.stringify(json) }),
    });
  }
}
