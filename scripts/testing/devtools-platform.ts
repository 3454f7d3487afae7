/** A whole instance with one account, for tests of DevTools sessions. */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ClientOptions, WebSocket } from "ws";
import { type Credentials, RoleProcess } from "./role-process.ts";

export interface JsonResponse {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads the response of any route.
  body: any;
}

export class DevtoolsPlatform implements AsyncDisposable {
  readonly instance: RoleProcess;
  readonly credentials: Credentials;
  readonly #folder: string;

  static async start(environment: NodeJS.ProcessEnv = {}): Promise<DevtoolsPlatform> {
    const folder = await mkdtemp(join(tmpdir(), "trunkline-devtools-"));
    // Browsers may run as another user, who must be able to enter this folder.
    await chmod(folder, 0o755);
    const instance = await RoleProcess.start("data", folder, {
      TRUNKLINE_BROWSER_SECONDS_PER_DAY: "0",
      // No limit on requests, because tests poll whether a session has ended.
      TRUNKLINE_REQUESTS_PER_5_MINUTES: "0",
      ...environment,
    });
    await instance.ready();
    return new DevtoolsPlatform(instance, folder, await instance.credentials());
  }

  constructor(instance: RoleProcess, folder: string, credentials: Credentials) {
    this.instance = instance;
    this.#folder = folder;
    this.credentials = credentials;
  }

  get headers(): Record<string, string> {
    return { Authorization: `Bearer ${this.credentials.api_token}` };
  }

  /** The address of the account's DevTools routes. */
  get url(): string {
    const { base_url: base, account_id: account } = this.credentials;
    return `${base}/accounts/${account}/browser-rendering/devtools`;
  }

  async ask(method: string, path: string, json?: unknown): Promise<JsonResponse> {
    const response = await fetch(this.url + path, {
      method,
      headers: {
        ...this.headers,
        ...(json !== undefined && { "content-type": "application/json" }),
      },
      ...(json !== undefined && { body: JSON.stringify(json) }),
    });
    return { status: response.status, body: await response.json() };
  }

  /** Begins a session, and returns its id. By default it stays without a client for as long as a session can. */
  async begin(query = "?keep_alive=600000"): Promise<string> {
    const { status, body } = await this.ask("POST", `/browser${query}`);
    if (status !== 200) throw new Error(`Cannot begin session: ${JSON.stringify(body)}`);
    return body.sessionId;
  }

  /** Opens a socket. `url` replaces the whole URL, including the path. */
  socket(path: string, options: ClientOptions = {}, url = this.url + path): WebSocket {
    return new WebSocket(url.replace(/^http/, "ws"), { headers: this.headers, ...options });
  }

  /** Makes a token with one permission. */
  async tokenWith(permission: string): Promise<{ id: string; headers: Record<string, string> }> {
    const { result: made } = await this.#tokens<{ id: string; value: string }>("", {
      method: "POST",
      body: JSON.stringify(await this.#tokenOf(permission)),
    });
    return { id: made.id, headers: { Authorization: `Bearer ${made.value}` } };
  }

  /** Gives a token this permission only. */
  async changeToken(id: string, permission: string, status = "active"): Promise<void> {
    const body = JSON.stringify({ ...(await this.#tokenOf(permission)), status });
    await this.#tokens(`/${id}`, { method: "PUT", body });
  }

  async rollToken(id: string): Promise<void> {
    await this.#tokens(`/${id}/value`, { method: "PUT", body: "{}" });
  }

  async #tokenOf(permission: string) {
    const { account_id: account } = this.credentials;
    const { result } = await this.#tokens<{ id: string; name: string }[]>("/permission_groups");
    const id = result.find(({ name }) => name === permission)?.id;
    const resources = { [`com.cloudflare.api.account.${account}`]: "*" };
    const policies = [{ effect: "allow", permission_groups: [{ id }], resources }];
    return { name: permission, policies };
  }

  async revoke(id: string): Promise<void> {
    await this.#tokens(`/${id}`, { method: "DELETE" });
  }

  async #tokens<R>(path: string, request: RequestInit = {}): Promise<{ result: R }> {
    const { base_url: base, account_id: account } = this.credentials;
    const headers = { ...this.headers, "content-type": "application/json" };
    const answer = await fetch(`${base}/accounts/${account}/tokens${path}`, {
      ...request,
      headers,
    });
    return (await answer.json()) as { result: R };
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
