/**
 * The OAuth flow of one user with one client, from authorization to revocation, while a test kills the nodes that
 * serve it.
 */
import { expect } from "chai";
import { systemClock as clock } from "../../actors/runtime/lib/clock.ts";
import { Person, REDIRECT_URI, type TestClient } from "../../gateway/oauth/testing/oauth-world.ts";
import type { OAuthNodes } from "./oauth-nodes.ts";
import { until } from "./until.ts";

/** Maximum duration of a step: the end of a lease and the start of a node, on a busy machine. */
const STEP_MS_MAX = 120_000;
const AGAIN_MS = 50;

export const FLOW_STEPS = [
  "authorize",
  "signIn",
  "consent",
  "redeem",
  "refresh",
  "revoke",
] as const;

interface Tokens {
  access_token: string;
  refresh_token: string;
}

/** A user and a client that repeat an unanswered request at the other node until they get a response. */
export class OAuthFlow {
  again = 0;
  restarts = 0;
  readonly #nodes: OAuthNodes;
  readonly #client: TestClient;
  readonly #email: string;
  readonly #person: Person;
  readonly #usedCodes: string[] = [];
  /** Index of the node that the flow sends requests to. Different flows begin with different nodes. */
  #node: number;
  #tokens: Tokens | undefined;
  /** Every access token that the client received and that is not revoked. */
  readonly #live: string[] = [];
  readonly #dead: Tokens[] = [];

  /** Invites a user, who signs up and is then signed out. */
  static async begin(nodes: OAuthNodes, client: TestClient, number: number): Promise<OAuthFlow> {
    const email = `p${number}@example.com`;
    const { invitation_url = "" } = await nodes.api("members", { email, roles: ["Member"] });
    const person = new Person(nodes.urls[0] ?? "");
    await person.open(invitation_url);
    await person.signUp({ password: "correct horse" });
    // Waits until mail has informed the user actor of the membership. Before that, the user cannot choose the
    // account.
    await until(`${email} sees the account`, async () => {
      await person.open(authorizationOf(client));
      return person.seen.text.includes('name="account"');
    });
    person.cookies.clear();
    return new OAuthFlow({ nodes, client, email, person, node: number % 2 });
  }

  constructor(parts: {
    nodes: OAuthNodes;
    client: TestClient;
    email: string;
    person: Person;
    node: number;
  }) {
    this.#nodes = parts.nodes;
    this.#client = parts.client;
    this.#email = parts.email;
    this.#person = parts.person;
    this.#node = parts.node;
  }

  async go(steps: readonly (typeof FLOW_STEPS)[number][]): Promise<void> {
    for (const step of steps) await this[step]();
  }

  async authorize(): Promise<void> {
    await this.#visit(() => this.#person.open(authorizationOf(this.#client)));
    const { url, status, text } = this.#person.seen;
    expect(url, `${status} ${text}`).to.match(/\/login\?|\/oauth2\/consent\?|\/callback\?code=/);
  }

  async signIn(): Promise<void> {
    const person = { email: this.#email, password: "correct horse" };
    while (this.#isAt("/login") && !this.#isOver())
      await this.#visit(() => this.#person.signIn(person));
    if (this.#isOver()) await this.#beginAnew();
  }

  async consent(): Promise<void> {
    while (this.#isAt("/consent") && !this.#isOver()) {
      await this.#visit(() => this.#person.submit({ decision: "allow" }));
    }
    if (this.#isOver()) await this.#beginAnew();
    expect(this.#person.seen.url).to.contain("/callback?code=");
  }

  async redeem(): Promise<void> {
    while (!this.#tokens) {
      const code = new URL(this.#person.seen.url).searchParams.get("code") ?? "";
      const before = this.again;
      const fields = { grant_type: "authorization_code", redirect_uri: REDIRECT_URI, code };
      const { status, body } = await this.#ask("/oauth2/token", fields);
      this.#usedCodes.push(code);
      if (status === 200) this.#take(body);
      else {
        // A response was lost. The lost request had already redeemed the code, and its repetition revoked the tokens
        // of that code. So start a new flow.
        expect([status, body.error, this.again > before]).to.deep.equal([
          400,
          "invalid_grant",
          true,
        ]);
        await this.#beginAnew();
      }
    }
  }

  async refresh(): Promise<void> {
    const refresh_token = this.#tokens?.refresh_token ?? "";
    const { status, body } = await this.#ask("/oauth2/token", {
      grant_type: "refresh_token",
      refresh_token,
    });
    expect([status, body.error]).to.deep.equal([200, undefined]);
    this.#take(body);
  }

  async revoke(): Promise<void> {
    const { refresh_token: token, access_token } = this.#tokens ?? {};
    if (token === undefined || access_token === undefined) throw new Error("No tokens");
    const { status } = await this.#ask("/oauth2/revoke", { token });
    expect(status).to.equal(200);
    this.#live.length = 0;
    this.#dead.push({ refresh_token: token, access_token });
  }

  /**
   * Checks at both nodes, after their restart, that live tokens are accepted and revoked tokens are rejected. The
   * first response below 500 counts: no node may still accept a revoked token.
   */
  async check(): Promise<void> {
    for (const [tokens, expected] of [
      [this.#live, 200],
      [this.#dead.map(({ access_token }) => access_token), 401],
    ] as const) {
      for (const token of tokens) {
        for (const url of this.#nodes.urls) {
          const answered = async () => {
            const status = await statusOf(url, token);
            return status < 500 && status;
          };
          expect(await until("a token is answered", answered, STEP_MS_MAX)).to.equal(expected);
        }
      }
    }
  }

  /** Checks that used codes and revoked refresh tokens give no new tokens. */
  async checkReplays(): Promise<void> {
    for (const code of this.#usedCodes) {
      const fields = { grant_type: "authorization_code", redirect_uri: REDIRECT_URI, code };
      expect((await this.#ask("/oauth2/token", fields)).body.error).to.equal("invalid_grant");
    }
    for (const { refresh_token } of this.#dead) {
      const fields = { grant_type: "refresh_token", refresh_token };
      expect((await this.#ask("/oauth2/token", fields)).body.error).to.equal("invalid_grant");
    }
  }

  #take(tokens: Tokens): void {
    this.#tokens = tokens;
    this.#live.push(tokens.access_token);
  }

  #isAt(path: string): boolean {
    return new URL(this.#person.seen.url).pathname.endsWith(path);
  }

  #isOver(): boolean {
    const { status, text } = this.#person.seen;
    return status === 400 && text.includes("start again");
  }

  /**
   * Starts the flow again at the client, as the error page advises. The platform still has the user's earlier
   * decisions.
   */
  async #beginAnew(): Promise<void> {
    this.restarts += 1;
    await this.authorize();
    await this.signIn();
    await this.consent();
  }

  /** Visits a page. If there is no response, visits it again from the page where the user was before. */
  async #visit(go: () => Promise<unknown>): Promise<void> {
    const before = this.#person.seen;
    await this.#until(async () => {
      this.#person.seen = before;
      this.#person.through = this.#nodes.urls[this.#node];
      await go();
      return this.#person.seen.status < 500;
    });
  }

  async #ask(path: string, fields: Record<string, string>) {
    const { client_id, client_secret } = this.#client;
    const basic = Buffer.from(`${client_id}:${client_secret}`).toString("base64");
    return await this.#until(async () => {
      const response = await fetch(`${this.#nodes.urls[this.#node]}${path}`, {
        method: "POST",
        headers: { Authorization: `Basic ${basic}` },
        body: new URLSearchParams(fields),
      });
      const text = await response.text();
      const body = text === "" ? {} : JSON.parse(text);
      return response.status < 500 && { status: response.status, body };
    });
  }

  #until<T>(ask: () => Promise<T | false>): Promise<T> {
    return until(
      `${this.#email} goes on`,
      async () => {
        try {
          const answer = await ask();
          if (answer !== false) return answer;
        } catch (error) {
          // The node died, or does not listen yet.
          if (!(error instanceof TypeError)) throw error;
        }
        this.again += 1;
        this.#node = 1 - this.#node;
        await clock.wait(AGAIN_MS);
        return false;
      },
      STEP_MS_MAX,
    );
  }
}

function authorizationOf({ client_id }: TestClient): string {
  const fields = { client_id, response_type: "code", redirect_uri: REDIRECT_URI, state: "s" };
  return `/oauth2/auth?${new URLSearchParams(fields)}`;
}

async function statusOf(url: string, token: string): Promise<number> {
  const response = await fetch(`${url}/v4/accounts`, {
    headers: { Authorization: `Bearer ${token}` },
  });
  await response.text();
  return response.status;
}
