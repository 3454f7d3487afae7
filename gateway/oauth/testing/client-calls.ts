/**
 * Requests to the authorization server as a client's program sends them, through any gateway; and a public client.
 */
import { oauthClient } from "../../../schemas/oauth/oauth-client.ts";
import { until } from "../../../scripts/testing/until.ts";
import {
  type OAuthWorld,
  type Person,
  REDIRECT_URI,
  type TestClient,
  type Wire,
} from "./oauth-world.ts";

export interface Sent {
  by: TestClient;
  gateway?: number;
  /** Headers that replace the basic `Authorization` header. */
  headers?: Record<string, string>;
}

export interface ClientAnswer {
  status: number;
  headers: Headers;
  body: Wire;
}

export class ClientCalls {
  readonly #world: OAuthWorld;

  constructor(world: OAuthWorld) {
    this.#world = world;
  }

  async post(
    path: string,
    fields: Record<string, string>,
    { by, gateway = 0, headers = basicOf(by) }: Sent,
  ): Promise<ClientAnswer> {
    const answer = await fetch(`${this.#world.urls[gateway]}/oauth2/${path}`, {
      method: "POST",
      headers,
      body: new URLSearchParams(fields),
    });
    const text = await answer.text();
    const body = text === "" ? {} : JSON.parse(text);
    return { status: answer.status, headers: answer.headers, body };
  }

  redeem(code: string | null, sent: Sent, more: Record<string, string> = {}) {
    const fields = { grant_type: "authorization_code", redirect_uri: REDIRECT_URI };
    return this.post("token", { ...fields, code: code ?? "", ...more }, sent);
  }

  refresh(token: string, sent: Sent, more: Record<string, string> = {}) {
    return this.post("token", { grant_type: "refresh_token", refresh_token: token, ...more }, sent);
  }

  /** Returns the statuses of a REST request and a userinfo request with this token, at every gateway. */
  async opened(token: string): Promise<number[]> {
    const statuses = this.#world.urls.map(async (url, gateway) => {
      const headers = { Authorization: `Bearer ${token}` };
      const asked = await Promise.all([
        this.#world.api("/accounts", { token, gateway }),
        fetch(`${url}/oauth2/userinfo`, { headers }),
      ]);
      return asked.map(({ status }) => status);
    });
    return (await Promise.all(statuses)).flat();
  }
}

export const basicOf = ({ client_id, client_secret }: TestClient): Record<string, string> => ({
  Authorization: `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString("base64")}`,
});

export function authorizationPath(
  { client_id }: TestClient,
  changes: Record<string, string> = {},
): string {
  const all = { client_id, response_type: "code", redirect_uri: REDIRECT_URI, ...changes };
  return `/oauth2/auth?${new URLSearchParams(all)}`;
}

/** Returns the redirect parameters that a client receives when the person allows everything. */
export async function authorize(
  person: Person,
  client: TestClient,
  changes: Record<string, string> = {},
): Promise<URLSearchParams> {
  await person.open(authorizationPath(client, changes));
  if (person.seen.url.includes("/consent")) await person.submit({ decision: "allow" });
  return new URL(person.seen.url).searchParams;
}

/** Makes the client public: its domain is verified first. */
export async function makePublic(
  world: OAuthWorld,
  changes: Record<string, unknown> = {},
): Promise<TestClient> {
  const client = await world.makeClient({
    client_uri: "https://bot.example.com/",
    logo_uri: "https://bot.example.com/logo.png",
    ...changes,
  });
  const path = `/accounts/${world.accountId}/oauth_clients/${client.client_id}`;
  await until("the client is public", async () => {
    const found = { check: 1, outcome: "found" as const, answer: "it is there" };
    await world.bus.actors.send(oauthClient, client.client_id, "domainChecked", found);
    const asked = { method: "PATCH", json: { visibility: "public" } };
    return (await world.api(path, asked)).status === 200;
  });
  return client;
}

/** Returns the parameters of the error page's link back to the client. */
export function wayBack(page: string): URLSearchParams {
  const [, href = ""] = /<a href="([^"]*)">Go back to <strong>/.exec(page) ?? [];
  const { search, hash } = new URL(href.replaceAll("&amp;", "&"));
  // In the implicit flow, errors are in the fragment of the address instead of the query.
  return new URLSearchParams(search || hash.slice(1));
}
