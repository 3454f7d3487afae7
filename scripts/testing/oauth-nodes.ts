/** Runs two nodes for OAuth on one bus. Tests kill and restart the nodes. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { REDIRECT_URI, type TestClient } from "../../gateway/oauth/testing/oauth-world.ts";
import { freePort } from "../free-port.ts";
import { startNats, type TestNatsServer } from "./nats-server.ts";
import { type Credentials, RoleProcess } from "./role-process.ts";

/** Each node is a gateway and a host of actors, and keeps its port when it restarts. */
export class OAuthNodes implements AsyncDisposable {
  readonly urls: readonly string[];
  readonly #folder: string;
  readonly #nats: TestNatsServer;
  readonly #ports: readonly number[];
  readonly #running: (RoleProcess | undefined)[] = [];
  #credentials: Credentials | undefined;

  static async start(): Promise<OAuthNodes> {
    const folder = await mkdtemp(join(tmpdir(), "trunkline-oauth-"));
    const ports = [await freePort(), await freePort()];
    const nodes = new OAuthNodes(folder, await startNats(), ports);
    try {
      await Promise.all(ports.map((_port, node) => nodes.restart(node)));
      const found = await Promise.allSettled(nodes.#running.map((one) => one?.credentials()));
      nodes.#credentials = found.flatMap((one) =>
        one.status === "fulfilled" && one.value ? [one.value] : [],
      )[0];
      return nodes;
    } catch (error) {
      await nodes[Symbol.asyncDispose]();
      throw error;
    }
  }

  constructor(folder: string, nats: TestNatsServer, ports: readonly number[]) {
    this.#folder = folder;
    this.#nats = nats;
    this.#ports = ports;
    this.urls = ports.map((port) => `http://127.0.0.1:${port}`);
  }

  async kill(node: number): Promise<void> {
    await this.#running[node]?.[Symbol.asyncDispose]();
  }

  async restart(node: number): Promise<void> {
    const dataDir = join(this.#folder, `node-${node}`);
    const instance = new RoleProcess(dataDir, tmpdir(), this.#ports[node] ?? 0, {
      TRUNKLINE_ROLES: "gateway,actors",
      TRUNKLINE_NATS_URL: this.#nats.url,
      TRUNKLINE_PUBLIC_URL: this.urls[0],
      TRUNKLINE_REQUESTS_PER_5_MINUTES: "0",
    });
    this.#running[node] = instance;
    await instance.ready();
  }

  /** Posts to the management API at the first node with the token of the first account. */
  async api(path: string, json: unknown) {
    if (!this.#credentials) throw new Error("No node made an account");
    const { account_id, api_token } = this.#credentials;
    const response = await fetch(`${this.urls[0]}/v4/accounts/${account_id}/${path}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${api_token}`, "Content-Type": "application/json" },
      body: JSON.stringify(json),
    });
    const body = (await response.json()) as { result: Record<string, string> };
    if (!response.ok) throw new Error(JSON.stringify(body));
    return body.result;
  }

  async makeClient(): Promise<TestClient> {
    const { client_id = "", client_secret = "" } = await this.api("oauth_clients", {
      client_name: "Build Bot",
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      redirect_uris: [REDIRECT_URI],
      scopes: ["account.read"],
      token_endpoint_auth_method: "client_secret_basic",
    });
    return { client_id, client_secret };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#running.map((instance) => instance?.[Symbol.asyncDispose]()));
    await this.#nats.stop();
    await rm(this.#folder, { recursive: true, maxRetries: 10 });
  }
}
