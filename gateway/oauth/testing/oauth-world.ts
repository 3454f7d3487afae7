/** Gateways on one bus with everything OAuth needs, and a person with a browser that has no JavaScript. */
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { accountActor } from "../../../actors/account/account/account.ts";
import { apiTokenActor } from "../../../actors/account/api-token/api-token.ts";
import { installationActor } from "../../../actors/account/installation/installation.ts";
import { loginGuardActor } from "../../../actors/account/login-guard/login-guard.ts";
import { requestLimitActor } from "../../../actors/account/request-limit/request-limit.ts";
import { sessionActor } from "../../../actors/account/session/session.ts";
import { userActor } from "../../../actors/account/user/user.ts";
import { clientLogoActor } from "../../../actors/oauth/client-logo/client-logo.ts";
import { grantListActor } from "../../../actors/oauth/grant-list/grant-list.ts";
import { interactionActor } from "../../../actors/oauth/interaction/interaction.ts";
import { oauthClientActor } from "../../../actors/oauth/oauth-client/oauth-client.ts";
import { oauthClientListActor } from "../../../actors/oauth/oauth-client-list/oauth-client-list.ts";
import { oauthGrantActor } from "../../../actors/oauth/oauth-grant/oauth-grant.ts";
import { oauthKeysActor } from "../../../actors/oauth/oauth-keys/oauth-keys.ts";
import { Bus } from "../../../actors/runtime/bus/bus.ts";
import { BusLiveUpdates, type LiveUpdates } from "../../../actors/runtime/bus/live.ts";
import { type ActorClient, BusActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { systemClock } from "../../../actors/runtime/lib/clock.ts";
import { freePort } from "../../../scripts/free-port.ts";
import { type BusActors, busActors } from "../../../scripts/testing/bus-actors.ts";
import type { GatewayConfig } from "../../gateway-config.ts";
import { type RunningGateway, startGateway } from "../../main.ts";
import { testCrawls } from "../../testing/test-crawls.ts";
import { testConfig } from "../../testing/test-gateway.ts";

export const OAUTH_ACTORS = [
  accountActor,
  apiTokenActor,
  clientLogoActor,
  grantListActor,
  installationActor,
  interactionActor,
  loginGuardActor,
  oauthClientActor,
  oauthClientListActor,
  oauthGrantActor,
  oauthKeysActor,
  requestLimitActor,
  sessionActor,
  userActor,
];

export interface OAuthWorld {
  bus: BusActors;
  /** The addresses of the gateways. All gateways name the first address as issuer. */
  urls: string[];
  accountId: string;
  token: string;
  /** The account's creator. */
  owner: { email: string; password: string };
  logs: string[];
  /** Sends a request to the REST API with the first account's token or with another token. */
  api(
    path: string,
    asked?: { method?: string; json?: unknown; token?: string; gateway?: number },
  ): Promise<{ status: number; body: Wire }>;
  makeClient(changes?: Record<string, unknown>): Promise<TestClient>;
  stop(): Promise<void>;
}

// biome-ignore lint/suspicious/noExplicitAny: a test looks into answers of every kind.
export type Wire = any;

export interface TestClient {
  client_id: string;
  client_secret: string;
}

export const REDIRECT_URI = "http://127.0.0.1:1/callback";

export async function oauthWorld({
  gateways = 1,
  config = {},
  hear = (live) => live,
  meddle = (actors) => actors,
  nowOf = () => Date.now,
}: {
  gateways?: number;
  config?: Partial<GatewayConfig>;
  /** Wraps the live updates of a gateway, so that a test can drop some of them. */
  hear?: (live: LiveUpdates, gateway: number) => LiveUpdates;
  /** Wraps the actors as the gateways see them, so that a test can act between two calls of a request. */
  meddle?: (actors: ActorClient) => ActorClient;
  /** Returns the clock of a gateway. */
  nowOf?: (gateway: number) => () => number;
} = {}): Promise<OAuthWorld> {
  const bus = await busActors({ actors: OAUTH_ACTORS });
  const dataDir = await mkdtemp(join(tmpdir(), "oauth-"));
  const logs: string[] = [];
  const logger = pino({ level: "debug" }, { write: (line: string) => logs.push(line) });
  const running: RunningGateway[] = [];
  const urls: string[] = [];
  const buses: Bus[] = [];
  let publicUrl: string | undefined;
  for (let index = 0; index < gateways; index++) {
    const port = await freePort();
    publicUrl ??= `http://127.0.0.1:${port}`;
    const own = await Bus.connect({
      url: bus.url,
      name: `gateway ${index}`,
    });
    buses.push(own);
    const { blobs, secrets } = testCrawls();
    running.push(
      await startGateway({
        actors: meddle(new BusActorClient(own, systemClock)),
        blobs,
        secrets,
        live: hear(new BusLiveUpdates(own), index),
        config: { ...testConfig, dataDir, port, publicUrl, ...config },
        logger,
        now: nowOf(index),
      }),
    );
    urls.push(`http://127.0.0.1:${port}`);
  }
  const credentials = JSON.parse(await readFile(join(dataDir, "credentials.json"), "utf8"));
  const { account_id: accountId, api_token: token, user: owner } = credentials;
  return {
    bus,
    urls,
    accountId,
    token,
    owner,
    logs,
    api,
    async makeClient(changes = {}) {
      const { status, body } = await api(`/accounts/${accountId}/oauth_clients`, {
        method: "POST",
        json: {
          client_name: "Build Bot",
          grant_types: ["authorization_code", "refresh_token"],
          response_types: ["code"],
          redirect_uris: [REDIRECT_URI],
          scopes: ["openid", "email", "account.read", "artifacts.read", "artifacts.write"],
          optional_scopes: ["artifacts.write"],
          token_endpoint_auth_method: "client_secret_basic",
          ...changes,
        },
      });
      if (status !== 200 && status !== 201) throw new Error(JSON.stringify(body));
      return body.result;
    },
    async stop() {
      await Promise.all(running.map((gateway) => gateway.stop()));
      await Promise.all(buses.map((own) => own.close()));
      await bus.stop();
      await rm(dataDir, { recursive: true });
    },
  };

  async function api(
    path: string,
    { method = "GET", json, token: bearer = token, gateway = 0 }: Wire = {},
  ) {
    const response = await fetch(`${urls[gateway]}/v4${path}`, {
      method,
      headers: { Authorization: `Bearer ${bearer}`, "Content-Type": "application/json" },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    });
    return { status: response.status, body: (await response.json()) as Wire };
  }
}

/** Creates another user with an account of their own. */
export async function newPerson(world: OAuthWorld) {
  const person = new Person(world.urls[0] ?? "");
  const email = `p${randomBytes(4).toString("hex")}@example.com`;
  const password = "correct horse";
  await person.open("/signup");
  await person.signUp({ email, password });
  return { person, email, password };
}

/** A page as the test browser received it. */
export interface Seen {
  url: string;
  status: number;
  headers: Headers;
  text: string;
}

/**
 * A person with a browser: it follows redirects, keeps cookies and submits forms. It stops at an address that is not
 * a gateway's.
 */
export class Person {
  readonly #base: string;
  readonly cookies = new Map<string, { value: string; path: string }>();
  seen: Seen = { url: "", status: 0, headers: new Headers(), text: "" };
  /** All addresses that the browser has visited, redirects included, the latest last. */
  readonly trail: string[] = [];
  /** Called with every response, redirects included. */
  onAnswer: ((method: string, response: Response) => void) | undefined;
  /** The IP address of the browser, which gateways that trust a proxy read from the request. */
  from: string | undefined;
  /** The base URL of another gateway, which receives all further requests. */
  through: string | undefined;

  constructor(base: string) {
    this.#base = base;
  }

  async open(path: string): Promise<Seen> {
    return this.#go(new URL(path, this.#base), { method: "GET" });
  }

  /**
   * Submits a form of the page with its present values, except for `changes`. `action` is the address to which the
   * form is sent. Without it, the first form that does not sign out is submitted.
   */
  async submit(
    changes: Record<string, string | string[]>,
    { action }: { action?: string } = {},
  ): Promise<Seen> {
    const { target, fields } = this.#filled(changes, action);
    return this.#go(new URL(target, this.#base), { method: "POST", body: fields });
  }

  /** Returns the fields that `submit` would send. */
  fill(changes: Record<string, string | string[]>): URLSearchParams {
    return this.#filled(changes, undefined).fields;
  }

  /** Sends a form that no page of ours contains, as another site would. */
  async post(path: string, fields: Record<string, string>): Promise<Seen> {
    return this.#go(new URL(path, this.#base), {
      method: "POST",
      body: new URLSearchParams(fields),
    });
  }

  /** Fills in the sign-up form, then the sign-in form that follows it. */
  async signUp(given: { email?: string; password: string }): Promise<Seen> {
    await this.submit(given);
    return this.submit(given);
  }

  async signIn({ email, password }: { email: string; password: string }): Promise<Seen> {
    return this.submit({ email, password });
  }

  #filled(changes: Record<string, string | string[]>, action: string | undefined) {
    const { target, fields } = formOf(this.seen.text, action);
    for (const [name, value] of Object.entries(changes)) {
      fields.delete(name);
      for (const one of [value].flat()) fields.append(name, one);
    }
    return { target, fields };
  }

  async #go(start: URL, options: { method: string; body?: URLSearchParams }): Promise<Seen> {
    let url = start;
    let { method, body } = options;
    for (let hops = 0; hops < 10; hops++) {
      this.trail.push(url.href);
      if (url.origin !== new URL(this.#base).origin) {
        this.seen = { url: url.href, status: 0, headers: new Headers(), text: "" };
        return this.seen;
      }
      const asked =
        this.through === undefined ? url : new URL(url.pathname + url.search, this.through);
      const response = await fetch(asked, {
        method,
        redirect: "manual",
        headers: {
          Cookie: this.#cookieFor(url.pathname),
          Accept: "text/html",
          ...(this.from !== undefined && { "X-Forwarded-For": this.from }),
        },
        ...(body ? { body } : {}),
      });
      this.#keep(response);
      this.onAnswer?.(method, response);
      const text = await response.text();
      const location = response.headers.get("location");
      if (location === null) {
        this.seen = { url: url.href, status: response.status, headers: response.headers, text };
        return this.seen;
      }
      if (response.status !== 303 && response.status !== 302) throw new Error(`${response.status}`);
      url = new URL(location, url);
      method = "GET";
      body = undefined;
    }
    throw new Error(`Led in a circle: ${this.trail.slice(-10).join(" ")}`);
  }

  #cookieFor(path: string): string {
    const sent = [...this.cookies].filter(([, cookie]) => path.startsWith(cookie.path));
    return sent.map(([name, { value }]) => `${name.split(";")[0]}=${value}`).join("; ");
  }

  #keep(response: Response): void {
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      const path = /path=([^;]+)/i.exec(line)?.[1] ?? "/";
      const expired = /max-age=0/i.test(line) || /expires=thu, 01 jan 1970/i.test(line);
      if (expired || value === "") this.cookies.delete(`${name};${path}`);
      else this.cookies.set(`${name};${path}`, { value, path });
    }
  }
}

function formOf(page: string, action: string | undefined) {
  for (const [, head = "", inner = ""] of page.matchAll(/<form ([^>]*)>([\s\S]*?)<\/form>/g)) {
    const target = unescaped(/action="([^"]*)"/.exec(head)?.[1] ?? "");
    if (action === undefined ? target.endsWith("/signout") : target !== action) continue;
    const fields = new URLSearchParams();
    for (const [input] of inner.matchAll(/<input [^>]*>/g)) {
      const attribute = (name: string) => new RegExp(` ${name}="([^"]*)"`).exec(input)?.[1];
      const isBox = attribute("type") === "checkbox";
      if (isBox && (!/ checked[ >]/.test(input) || / disabled/.test(input))) continue;
      const name = attribute("name");
      if (name !== undefined) fields.append(name, unescaped(attribute("value") ?? ""));
    }
    return { target, fields };
  }
  throw new Error(`No form on: ${page}`);
}

const unescaped = (text: string) =>
  text
    .replaceAll("&quot;", '"')
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&");
