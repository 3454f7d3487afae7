/**
 * A whole instance with one account, for tests of apps: it deploys bundles, sends requests to apps, and opens sockets
 * to agents.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { request as ask } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ClientOptions, WebSocket } from "ws";
import type { z } from "zod";
import type { AppConfig } from "../../schemas/apps/app-config.ts";
import { type Credentials, RoleProcess } from "./role-process.ts";
import { until } from "./until.ts";

export interface AppResponse {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

interface Asking {
  method?: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
}

export class AppPlatform implements AsyncDisposable {
  readonly instance: RoleProcess;
  readonly #folder: string;
  readonly credentials: Credentials;

  static async start(environment: NodeJS.ProcessEnv = {}): Promise<AppPlatform> {
    const folder = await mkdtemp(join(tmpdir(), "trunkline-apps-"));
    // Browsers and app code may run as other users, which must be able to enter this folder.
    await chmod(folder, 0o755);
    const instance = await RoleProcess.start("data", folder, environment);
    await instance.ready();
    return new AppPlatform(instance, folder, await instance.credentials());
  }

  constructor(instance: RoleProcess, folder: string, credentials: Credentials) {
    this.instance = instance;
    this.#folder = folder;
    this.credentials = credentials;
  }

  get accountId(): string {
    return this.credentials.account_id;
  }

  /** Without a slash at its end. */
  get url(): string {
    return this.credentials.base_url.replace(/\/v4$/, "");
  }

  /** Sends a request to a route of the account with the owner's token. */
  // biome-ignore lint/suspicious/noExplicitAny: a test looks at the result of whatever route it asked.
  async rest(method: string, path: string, json?: unknown): Promise<{ status: number; body: any }> {
    const { base_url: base, account_id: account, api_token: token } = this.credentials;
    const response = await fetch(`${base}/accounts/${account}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(json !== undefined && { body: JSON.stringify(json) }),
    });
    return { status: response.status, body: await response.json() };
  }

  deploy(name: string, bundle: string, config: Partial<z.input<typeof AppConfig>> = {}) {
    const whole = { name, compatibility_date: "2026-11-20", ...config };
    return this.rest("PUT", `/apps/${name}`, { config: whole, bundle });
  }

  /** Sends a request to the app, at the platform's address or, with `ownOrigin`, at the app's own origin. */
  ask(
    app: string,
    path: string,
    asking: Asking = {},
    { ownOrigin = false } = {},
  ): Promise<AppResponse> {
    const { method = "GET", headers = {}, body } = asking;
    const url = new URL(ownOrigin ? path : `/apps/${this.accountId}/${app}${path}`, this.url);
    const host = ownOrigin ? this.hostOf(app) : url.host;
    const { promise, resolve, reject } = Promise.withResolvers<AppResponse>();
    const sent = ask(url, { method, headers: { ...headers, host } }, async (response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk);
      const { statusCode: status = 0, headers: told } = response;
      resolve({ status, headers: told, text: Buffer.concat(chunks).toString() });
    });
    sent.on("error", reject);
    sent.end(body);
    return promise;
  }

  hostOf(app: string): string {
    return `${app}.${this.accountId}.apps.localhost:${new URL(this.url).port}`;
  }

  /** Opens a socket to an agent, and records all frames that the socket receives. */
  async watch(app: string, path: string, options: ClientOptions = {}): Promise<Watcher> {
    const url = `${this.url.replace("http", "ws")}/apps/${this.accountId}/${app}${path}`;
    const watcher = new Watcher(new WebSocket(url, options));
    await watcher.opened;
    return watcher;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Stops the instance with SIGTERM, because a killed instance would leave its nats-server running.
    this.instance.signal("SIGTERM");
    await this.instance.exit();
    await this.instance[Symbol.asyncDispose]();
    // Retries, because browsers that were told to exit may still write files.
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

export class Watcher {
  readonly socket: WebSocket;
  readonly frames: string[] = [];
  readonly opened: Promise<void>;
  readonly closed: Promise<{ code: number; reason: string }>;

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (data) => this.frames.push(String(data)));
    this.opened = new Promise((resolve, reject) => {
      socket.once("open", resolve);
      socket.once("error", reject);
      socket.once("unexpected-response", (_, { statusCode }) =>
        reject(new Error(`Unexpected answer ${statusCode}`)),
      );
    });
    this.closed = new Promise((resolve) => {
      socket.once("close", (code, reason) => resolve({ code, reason: String(reason) }));
    });
  }

  /** The values of all states that the socket has received. */
  get states(): unknown[] {
    return this.frames
      .map((text) => JSON.parse(text))
      .filter(({ type }) => type === "cf_agent_state")
      .map(({ state }) => state);
  }

  async shown(what: string, test: (frames: readonly string[]) => boolean): Promise<void> {
    await until(what, () => test(this.frames), 60_000);
  }
}
