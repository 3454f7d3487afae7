/**
 * Creates and revokes tokens continuously. An acknowledged token must be accepted, and a revoked token must never be
 * accepted again.
 */
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import type { SeededRandom } from "../seeded-random.ts";
import type { ChaosAnswer, ChaosClient } from "./chaos-client.ts";
import { type ChaosLoad, Clients, Tally } from "./chaos-load.ts";

const CLIENTS = 2;
const KEPT_MAX = 4;
const PAUSE_MS_MAX = 200;
const OPENS = [200];
/**
 * Statuses of a rejected token. git gets 403. 429 means that this address has tried too many unknown tokens, and
 * rejects the token too.
 */
const REFUSES = [401, 403, 429];
const TRIES_MAX = 100;
/** Maximum number of revoked tokens that are tested at the end. */
const TRIED_MAX = 40;

interface Token {
  id: string;
  value: string;
}

interface TokenSort {
  name: string;
  /** Path of the list of tokens. POST to it creates a token, and DELETE of a path below it revokes one. */
  path: string;
  /** Whether the list returns the names of the tokens. */
  hasNames: boolean;
  prepare?(): Promise<void>;
  body(name: string): object;
  tokenOf(answer: ChaosAnswer): Token;
  /** Makes a request that succeeds only with a valid token. */
  open(value: string): Promise<ChaosAnswer | undefined>;
}

export class TokenChurn implements ChaosLoad {
  readonly name: string;
  readonly tally = new Tally(["new tokens", "revocations"]);
  readonly #sort: TokenSort;
  readonly #client: ChaosClient;
  readonly #random: SeededRandom;
  readonly #clients = new Clients();
  readonly #live = new Map<string, Token>();
  readonly #revoked: Token[] = [];

  constructor(client: ChaosClient, random: SeededRandom, sort: TokenSort) {
    this.#client = client;
    this.#random = random;
    this.#sort = sort;
    this.name = sort.name;
  }

  async start(): Promise<void> {
    await this.#sort.prepare?.();
    for (let index = 0; index < CLIENTS; index++) {
      const random = this.#random.fork();
      const own: Token[] = [];
      this.#clients.add(async () => {
        await clock.wait(random.next() * PAUSE_MS_MAX);
        const oldest = own.length >= KEPT_MAX ? own.shift() : undefined;
        if (oldest) await this.#revoke(oldest);
        else {
          const token = await this.#mint(`churn-${index}`);
          if (token) own.push(token);
        }
      });
    }
  }

  stop(): Promise<void> {
    return this.#clients.stop();
  }

  async findProblems(): Promise<string[]> {
    const problems = [...this.tally.problems, ...this.#clients.problems];
    for (const token of this.#live.values()) await this.#expect(token, OPENS, problems);
    const revoked = this.#revoked.slice(-TRIED_MAX);
    for (const token of revoked) await this.#expect(token, REFUSES, problems);
    return problems;
  }

  async #mint(name: string): Promise<Token | undefined> {
    const { path, body, tokenOf } = this.#sort;
    const ask = () => this.#client.ask("POST", path, { json: body(name) });
    const answer = await this.tally.count(ask, { kind: "new tokens" });
    if (!answer) {
      if (this.#sort.hasNames) await this.#forgetUnknown(name);
      return undefined;
    }
    const token = tokenOf(answer);
    this.#live.set(token.id, token);
    return token;
  }

  /**
   * Revokes tokens that were created without an acknowledgement to this client, because an account's number of tokens
   * is limited. Ignores failures.
   */
  async #forgetUnknown(name: string): Promise<void> {
    const { path } = this.#sort;
    const listed = await this.#client.ask("GET", `${path}?per_page=100`);
    if (listed?.status !== 200) return;
    for (const token of listed.json.result as { id: string; name: string }[]) {
      const isUnknown = token.name === name && !this.#live.has(token.id);
      if (isUnknown) await this.#client.ask("DELETE", `${path}/${token.id}`);
    }
  }

  /**
   * Revokes the token. When the revocation is acknowledged, tries the token at some gateway, where it must be
   * rejected.
   */
  async #revoke(token: Token): Promise<void> {
    this.#live.delete(token.id);
    const path = `${this.#sort.path}/${token.id}`;
    const ask = () => this.#client.ask("DELETE", path);
    const answer = await this.tally.count(ask, { kind: "revocations" });
    if (!answer) return;
    this.#revoked.push(token);
    const tried = await this.#sort.open(token.value);
    if (tried && tried.status < 300) throw new Error(`${token.id} opens after its revocation`);
  }

  async #expect(
    { id, value }: Token,
    expected: readonly number[],
    problems: string[],
  ): Promise<void> {
    for (let time = 0; time < TRIES_MAX; time++) {
      const answer = await this.#sort.open(value);
      if (!answer || answer.status >= 500) continue;
      if (!expected.includes(answer.status)) {
        problems.push(`token ${id}: ${answer.status}, not ${expected.join(" or ")}`);
      }
      return;
    }
    problems.push(`token ${id} could not be tried`);
  }
}

/** Tokens of the account. */
export function apiTokens(client: ChaosClient): TokenSort {
  const path = client.accountPath("/tokens");
  return {
    name: "API tokens",
    path,
    hasNames: true,
    body: (name) => ({
      name,
      policies: [{ effect: "allow", permission_groups: [{ id: "account.read" }] }],
    }),
    tokenOf: ({ json }) => json.result,
    open: (token) => client.ask("GET", "/v4/user/tokens/verify", { token }),
  };
}

/** Tokens of one repository, tested with a request of git's protocol. */
export function repositoryTokens(client: ChaosClient): TokenSort {
  const space = client.accountPath("/artifacts/namespaces/tokens");
  let remote = "";
  return {
    name: "repository tokens",
    path: `${space}/tokens`,
    hasNames: false,
    async prepare() {
      await client.insist("POST", `${space}/repos`, { name: "locked" });
      const { json } = await client.read(`${space}/repos/locked`);
      remote = new URL(json.result.remote).pathname;
    },
    body: () => ({ repo: "locked", scope: "read", ttl: 3_600 }),
    tokenOf: ({ json }) => ({ id: json.result.id, value: json.result.plaintext }),
    open: (token) => {
      const Authorization = `Basic ${Buffer.from(`x:${token}`).toString("base64")}`;
      const path = `${remote}/info/refs?service=git-upload-pack`;
      return client.ask("GET", path, { headers: { Authorization } });
    },
  };
}
