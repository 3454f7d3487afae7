/** A whole Trunkline, started by `npm start` with its own data folder. The folder is deleted with the instance. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { z } from "zod";
import { freePort } from "../free-port.ts";
import { REPOSITORY } from "../tools.ts";

const Credentials = z.object({
  base_url: z.url(),
  account_id: z.string(),
  api_token: z.string(),
  user: z.object({ email: z.string(), password: z.string() }),
});

const START_MS_MAX = 60_000;
const POLL_MS = 50;

export class Instance implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #folder: string;
  readonly url: string;
  // Ends the instance if the benchmark exits without disposing of it.
  readonly #abandon = () => this.#interrupt();

  /** Starts the instance. Resolves when it reports that it is ready. */
  static async start(settings: NodeJS.ProcessEnv = {}): Promise<Instance> {
    const folder = await mkdtemp(join(tmpdir(), "trunkline-bench-"));
    const port = await freePort();
    const child = spawn("npm", ["start"], {
      cwd: REPOSITORY,
      // Starts its own process group, so that a signal reaches all of its processes, as from a terminal.
      detached: true,
      stdio: "ignore",
      env: {
        ...process.env,
        TRUNKLINE_PORT: String(port),
        TRUNKLINE_DATA: join(folder, "data"),
        TRUNKLINE_BROWSER_SECONDS_PER_DAY: "0",
        // Sets a limit that is never reached. Requests are still counted, as in normal use.
        TRUNKLINE_REQUESTS_PER_5_MINUTES: "1000000",
        // Allows requests to this machine, because the crawled sites run on it.
        TRUNKLINE_EGRESS_ALLOW: "127.0.0.0/8",
        ...settings,
      },
    });
    const instance = new Instance(child, folder, `http://127.0.0.1:${port}`);
    try {
      await instance.#untilReady();
      return instance;
    } catch (error) {
      await instance[Symbol.asyncDispose]();
      throw error;
    }
  }

  constructor(child: ChildProcess, folder: string, url: string) {
    this.#process = child;
    this.#folder = folder;
    this.url = url;
    process.once("exit", this.#abandon);
  }

  get pid(): number {
    if (this.#process.pid === undefined) throw new Error("Cannot name a pid: npm does not run");
    return this.#process.pid;
  }

  get dataDir(): string {
    return join(this.#folder, "data");
  }

  /** A token of the first account. */
  credentials() {
    const file = join(this.dataDir, "credentials.json");
    return Credentials.parse(JSON.parse(readFileSync(file, "utf8")));
  }

  /**
   * Returns a function that sends a rendering request and returns the result. The function rejects if the request is
   * refused.
   */
  renderer(): (call: string, page: object) => Promise<ArrayBuffer> {
    const request = this.requester();
    return async (call, page) => {
      const response = await request("POST", `browser-rendering/${call}?cacheTTL=0`, page);
      return await response.arrayBuffer();
    };
  }

  /**
   * Returns a function that sends a request to a path of the first account. The function rejects if the request is
   * refused.
   */
  requester(): (method: string, path: string, body?: object) => Promise<Response> {
    const credentials = this.credentials();
    const base = `${credentials.base_url}/accounts/${credentials.account_id}`;
    const headers = {
      Authorization: `Bearer ${credentials.api_token}`,
      "Content-Type": "application/json",
    };
    return async (method, path, body) => {
      const response = await fetch(`${base}/${path}`, {
        method,
        headers,
        ...(body && { body: JSON.stringify(body) }),
      });
      if (response.ok) return response;
      throw new Error(`Cannot ${method} ${path}: ${response.status} ${await response.text()}`);
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    process.removeListener("exit", this.#abandon);
    if (this.#isRunning) {
      const exited = once(this.#process, "exit");
      this.#interrupt();
      await exited;
    }
    await rm(this.#folder, { recursive: true, force: true });
  }

  get #isRunning(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null;
  }

  #interrupt(): void {
    if (this.#isRunning) process.kill(-this.pid, "SIGINT");
  }

  async #untilReady(): Promise<void> {
    const giveUpAt = performance.now() + START_MS_MAX;
    while (performance.now() < giveUpAt) {
      if (!this.#isRunning) {
        throw new Error(`Cannot start Trunkline: npm ended with code ${this.#process.exitCode}`);
      }
      const answer = await fetch(`${this.url}/healthz`).catch(() => undefined); // Not yet listening.
      if (answer?.ok) return;
      await setTimeout(POLL_MS);
    }
    throw new Error(`Cannot start Trunkline: it was not ready after ${START_MS_MAX} ms`);
  }
}
