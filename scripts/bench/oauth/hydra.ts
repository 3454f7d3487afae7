/**
 * Ory Hydra as the reference for the authorization server. Hydra syncs its SQLite file at each commit, as Trunkline
 * syncs its store. The variable HYDRA names the program; docs/benchmarks.md explains how to build it.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { freePort } from "../../free-port.ts";

/** Commits are synced to disk. */
const SETTINGS = "_fk=true&_journal=WAL&_sync=FULL&_busy_timeout=5000";
const START_TRIES_MAX = 600;
const POLL_MS = 50;
const REDIRECT_URI = "http://127.0.0.1:1/callback";

export class Hydra implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #folder: string;
  readonly url: string;
  readonly adminUrl: string;

  static async start(program: string): Promise<Hydra> {
    const folder = await mkdtemp(join(tmpdir(), "hydra-bench-"));
    const [port, adminPort] = [await freePort(), await freePort()];
    const url = `http://127.0.0.1:${port}`;
    const env = {
      ...process.env,
      DSN: `sqlite://${join(folder, "hydra.sqlite")}?${SETTINGS}`,
      SECRETS_SYSTEM: "a secret of the benchmark alone",
      URLS_SELF_ISSUER: `${url}/`,
      URLS_LOGIN: "http://127.0.0.1:1/login",
      URLS_CONSENT: "http://127.0.0.1:1/consent",
      SERVE_PUBLIC_HOST: "127.0.0.1",
      SERVE_PUBLIC_PORT: String(port),
      SERVE_ADMIN_HOST: "127.0.0.1",
      SERVE_ADMIN_PORT: String(adminPort),
      LOG_LEVEL: "error",
    };
    execFileSync(program, ["migrate", "sql", "-e", "--yes"], { env, stdio: "ignore" });
    const child = spawn(program, ["serve", "all", "--dev", "--sqa-opt-out"], {
      env,
      stdio: "ignore",
    });
    const hydra = new Hydra({ child, folder, url, adminUrl: `http://127.0.0.1:${adminPort}` });
    await hydra.#untilReady();
    return hydra;
  }

  constructor(parts: { child: ChildProcess; folder: string; url: string; adminUrl: string }) {
    this.#process = parts.child;
    this.#folder = parts.folder;
    this.url = parts.url;
    this.adminUrl = parts.adminUrl;
    process.once("exit", () => this.#process.kill("SIGKILL"));
  }

  /** Registers a client, and returns its id and its Authorization header. */
  async makeClient(): Promise<{ clientId: string; basic: string }> {
    const { client_id, client_secret } = await this.#admin("POST", "clients", {
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      redirect_uris: [REDIRECT_URI],
      scope: "offline_access account.read artifacts.read",
      token_endpoint_auth_method: "client_secret_basic",
    });
    const basic = Buffer.from(`${client_id}:${client_secret}`).toString("base64");
    return { clientId: String(client_id), basic: `Basic ${basic}` };
  }

  /**
   * Runs the flow of a person who signs in and consents. Returns the response's parameters, with the authorization
   * code.
   */
  async openGrant(clientId: string): Promise<Record<string, string>> {
    const cookies = new Map<string, string>();
    const query = new URLSearchParams({
      client_id: clientId,
      response_type: "code",
      redirect_uri: REDIRECT_URI,
      scope: "offline_access account.read artifacts.read",
      state: "a state of the benchmark",
    });
    const login = await redirectOf(`${this.url}/oauth2/auth?${query}`, cookies);
    const signedIn = await this.#accept("login", login, { subject: "a person" });
    const consent = await redirectOf(signedIn, cookies);
    const consented = await this.#accept("consent", consent, {
      grant_scope: ["offline_access", "account.read", "artifacts.read"],
    });
    const code = (await redirectOf(consented, cookies)).searchParams.get("code") ?? "";
    return { grant_type: "authorization_code", redirect_uri: REDIRECT_URI, code };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null) {
      const exited = once(this.#process, "exit");
      this.#process.kill("SIGTERM");
      await exited;
    }
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #accept(step: "login" | "consent", at: URL, body: object): Promise<string> {
    const name = `${step}_challenge`;
    const query = new URLSearchParams({ [name]: at.searchParams.get(name) ?? "" });
    const path = `oauth2/auth/requests/${step}/accept?${query}`;
    return String((await this.#admin("PUT", path, body)).redirect_to);
  }

  async #admin(method: string, path: string, body: object): Promise<Record<string, unknown>> {
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch(`${this.adminUrl}/admin/${path}`, {
      ...{ method, headers },
      body: JSON.stringify(body),
    });
    if (answer.ok) return (await answer.json()) as Record<string, unknown>;
    throw new Error(`Cannot ${method} ${path}: ${answer.status} ${await answer.text()}`);
  }

  async #untilReady(): Promise<void> {
    for (let tries = 0; tries < START_TRIES_MAX; tries++) {
      const answer = await fetch(`${this.url}/health/ready`).catch(() => undefined);
      if (answer?.ok) return;
      await setTimeout(POLL_MS);
    }
    throw new Error("Cannot start Hydra: it is not ready");
  }
}

/** Sends one request of the flow as a browser does, with cookies. Returns the redirect's target. */
async function redirectOf(url: string | URL, cookies: Map<string, string>): Promise<URL> {
  const cookie = [...cookies].map((pair) => pair.join("=")).join("; ");
  const answer = await fetch(url, { redirect: "manual", headers: { cookie } });
  for (const line of answer.headers.getSetCookie()) {
    const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
    cookies.set(name, value);
  }
  const target = answer.headers.get("location");
  if (target === null) throw new Error(`Cannot follow ${url}: ${answer.status}`);
  return new URL(target);
}
