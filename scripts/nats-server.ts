/** One nats-server process: starts it, waits until it is ready, and ends it in the ways that tests and drains need. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { findNatsServer } from "./tools.ts";

/** nats-server recovers its store before it listens; a large one takes a while. */
const START_MS_MAX = 60_000;
/** Lines of the log that explain the end of the server better than its exit code. */
const LINES_KEPT = 5;

export interface NatsServerOptions {
  /** Path of the configuration, which reads TRUNKLINE_NATS_NAME, _LISTEN, _STORE, _PASSWORD and _SYSTEM_PASSWORD. */
  config: string;
  name: string;
  storeDir: string;
  /** -1 lets the system choose. Later starts keep the port. */
  port: number;
  passwords: NatsPasswords;
  /** Further arguments. */
  parameters?: string[];
  /** Further variables of the environment. */
  environment?: Record<string, string>;
  /** True to start the server in its own session, so that a Ctrl-C in the terminal does not reach it. */
  detached?: boolean;
  onLine?: (line: string) => void;
}

/** Passwords of the user `trunkline`, who owns all streams, and of `system`, who watches the server. */
interface NatsPasswords {
  trunkline: string;
  system: string;
}

/**
 * Makes a password that begins with a letter: nats-server reads values as configuration text, where a digit begins a
 * number.
 */
export const newNatsPassword = () => `p${randomBytes(24).toString("hex")}`;

export class NatsServer {
  readonly #options: NatsServerOptions;
  #child: ChildProcess | undefined;
  #exited: Promise<string> = Promise.resolve("it was never started");
  #port: number;

  constructor(options: NatsServerOptions) {
    this.#options = options;
    this.#port = options.port;
  }

  get storeDir(): string {
    return this.#options.storeDir;
  }

  get port(): number {
    return this.#port;
  }

  /** The URL with user and password. Never log it. */
  get url(): string {
    return this.#urlOf("trunkline");
  }

  /** The URL of the system account, which sees the server but no streams. */
  get systemUrl(): string {
    return this.#urlOf("system");
  }

  /** Throws while the process does not run. */
  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error("Cannot name nats-server's pid: it does not run");
    return pid;
  }

  /** Resolves with the reason when the current process has ended. */
  get exited(): Promise<string> {
    return this.#exited;
  }

  /** Starts the process. Resolves when it accepts connections. */
  async start(): Promise<void> {
    if (this.#child !== undefined) throw new Error("Cannot start nats-server: it runs already");
    const { config, name, storeDir, passwords } = this.#options;
    const { parameters = [], environment = {}, detached } = this.#options;
    const child = spawn(findNatsServer(), ["-c", config, ...parameters], {
      detached: detached ?? false,
      stdio: ["ignore", "ignore", "pipe"],
      // The server reads a value as configuration text, so a path with a blank needs its quotes.
      env: {
        ...process.env,
        ...environment,
        TRUNKLINE_NATS_NAME: JSON.stringify(name),
        TRUNKLINE_NATS_LISTEN: `127.0.0.1:${this.#port}`,
        TRUNKLINE_NATS_STORE: JSON.stringify(storeDir),
        TRUNKLINE_NATS_PASSWORD: passwords.trunkline,
        TRUNKLINE_NATS_SYSTEM_PASSWORD: passwords.system,
      },
    });
    this.#child = child;
    const lines: string[] = [];
    this.#exited = this.#untilExit(child, lines);
    const ready = this.#untilReady(child, lines);
    const deadline = AbortSignal.timeout(START_MS_MAX);
    const late = once(deadline, "abort").then(() => `it was not ready after ${START_MS_MAX} ms`);
    const failure = await Promise.race([ready, this.#exited, late]);
    if (failure === undefined) return;
    await this.kill();
    throw new Error(`Cannot start nats-server: ${failure}`);
  }

  /** Ends the server (SIGTERM) and waits. Acknowledged data is on disk in any case. */
  async stop(): Promise<void> {
    // A stopped process would never handle the signal.
    this.#signal("SIGCONT");
    this.#signal("SIGTERM");
    await this.#exited;
  }

  /** Ends the server as a crash would (SIGKILL). */
  async kill(): Promise<void> {
    this.#signal("SIGKILL");
    await this.#exited;
  }

  /** Restarts the server on the same port and store. */
  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  #urlOf(user: keyof NatsPasswords): string {
    return `nats://${user}:${this.#options.passwords[user]}@127.0.0.1:${this.#port}`;
  }

  #signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  async #untilExit(child: ChildProcess, lines: string[]): Promise<string> {
    const reason = await new Promise<string>((resolve) => {
      child.once("error", (error) => resolve(error.message));
      // Not "exit": the last log lines are still in the pipe at that moment.
      child.once("close", (code, signal) => resolve(`it ended with ${signal ?? `code ${code}`}`));
    });
    this.#child = undefined;
    return [reason, ...lines.filter((line) => /\[(FTL|ERR)\]|^nats-server:/.test(line))].join(": ");
  }

  /** Reads the log until the process ends. Resolves at the line that says that the server is ready. */
  #untilReady(child: ChildProcess, lines: string[]): Promise<undefined> {
    const { onLine } = this.#options;
    return new Promise((resolve) => {
      if (child.stderr === null) return;
      createInterface({ input: child.stderr }).on("line", (line) => {
        onLine?.(line);
        if (lines.push(line) > LINES_KEPT) lines.shift();
        const port = /Listening for client connections on .*:(\d+)$/.exec(line)?.[1];
        if (port !== undefined) this.#port = Number(port);
        if (line.endsWith("Server is ready")) resolve(undefined);
      });
    });
  }
}
