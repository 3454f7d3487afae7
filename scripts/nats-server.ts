/**
 * One nats-server process: starts it, waits until it is ready, and ends it gracefully for drains or hard for tests.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createInterface } from "node:readline";
import { type Clock, OVER, systemClock } from "../actors/runtime/lib/clock.ts";
import { findNatsServer } from "./tools.ts";

/**
 * Timeout of a start. nats-server recovers its store before it listens. After a crash it reads all messages, which can
 * take many minutes. A server that is killed meanwhile begins again from zero.
 */
export const NATS_START_MS_MAX = 3_600_000;
/** A start that takes longer than this is reported, and again after pauses that double up to the second value. */
const SLOW_START_MS = 10_000;
const SLOW_START_MS_MAX = 300_000;
/** Time for a graceful exit. A server that is killed before its exit must recover its whole store at the next start. */
export const NATS_STOP_MS_MAX = 30_000;
/** Number of last log lines to keep: they explain the exit of the server better than its exit code. */
const LINES_KEPT = 5;

export interface NatsServerOptions {
  /**
   * Path of the configuration file. The file reads the variables TRUNKLINE_NATS_NAME, _LISTEN, _STORE, _PASSWORD and
   * _SYSTEM_PASSWORD.
   */
  config: string;
  name: string;
  storeDir: string;
  /** The port. With -1, the system chooses one, and later starts use the same port. */
  port: number;
  passwords: NatsPasswords;
  /** The oldest version of nats-server to run. Default: the oldest that the platform supports. */
  versionMin?: string | undefined;
  /** Further arguments. */
  parameters?: string[];
  /** Additional environment variables. */
  environment?: Record<string, string>;
  /** True to start the server in its own session, so that a Ctrl-C in the terminal does not reach it. */
  detached?: boolean;
  onLine?: (line: string) => void;
  /** Called now and then during a start that takes long, with the seconds since its begin. */
  onSlowStart?: (seconds: number) => void;
  clock?: Clock;
}

/** Passwords of the user `trunkline`, who owns all streams, and of `system`, who watches the server. */
interface NatsPasswords {
  trunkline: string;
  system: string;
}

const STOPPED = "Cannot start nats-server: this process stops";

/**
 * Generates a password that begins with a letter. nats-server parses values as configuration text, where a digit
 * would begin a number.
 */
export const newNatsPassword = () => `p${randomBytes(24).toString("hex")}`;

export class NatsServer {
  readonly #options: NatsServerOptions;
  #child: ChildProcess | undefined;
  #exited: Promise<string> = Promise.resolve("it was never started");
  #port: number;
  readonly #clock: Clock;

  constructor(options: NatsServerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#port = options.port;
  }

  get storeDir(): string {
    return this.#options.storeDir;
  }

  get port(): number {
    return this.#port;
  }

  /** The URL with user name and password. Must never be logged. */
  get url(): string {
    return this.#urlOf("trunkline");
  }

  /** The URL of the system account, which can monitor the server but has no access to streams. */
  get systemUrl(): string {
    return this.#urlOf("system");
  }

  /** The process id. Throws if the process does not run. */
  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error("Cannot name nats-server's pid: it does not run");
    return pid;
  }

  /** Whether there is a process, from its start until its exit. */
  get isRunning(): boolean {
    return this.#child !== undefined;
  }

  /** Resolves when the current process has exited, with the reason. */
  get exited(): Promise<string> {
    return this.#exited;
  }

  /**
   * Starts the process. Resolves when the server accepts connections. If the signal aborts, ends the process and
   * rejects.
   */
  async start({ signal }: { signal?: AbortSignal } = {}): Promise<void> {
    if (this.#child !== undefined) throw new Error("Cannot start nats-server: it runs already");
    if (signal?.aborted) throw new Error(STOPPED);
    const child = this.#spawn();
    this.#child = child;
    const lines: string[] = [];
    this.#exited = this.#untilExit(child, lines);
    const over = new AbortController();
    const stopped = Promise.withResolvers<void>();
    const stop = () => stopped.resolve();
    signal?.addEventListener("abort", stop);
    try {
      const failure = await Promise.race([
        this.#untilReady(child, lines),
        this.#exited,
        this.#untilLate(over.signal),
        stopped.promise.then(() => STOPPED),
      ]);
      if (failure === undefined) return;
      if (failure === STOPPED) {
        await Promise.race([this.stop(), this.#clock.wait(NATS_STOP_MS_MAX)]);
        throw new Error(STOPPED);
      }
      await this.kill();
      throw new Error(`Cannot start nats-server: ${failure}`);
    } finally {
      over.abort(OVER);
      signal?.removeEventListener("abort", stop);
    }
  }

  #spawn() {
    const { config, name, storeDir, passwords } = this.#options;
    const { parameters = [], environment = {}, detached, versionMin } = this.#options;
    return spawn(findNatsServer(versionMin), ["-c", config, ...parameters], {
      detached: detached ?? false,
      stdio: ["ignore", "ignore", "pipe"] as const,
      // The server parses a variable's value as configuration text, so a path with a blank needs quotes.
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
  }

  /** Ends the server with SIGTERM and waits for its exit. Acknowledged data is on disk in any case. */
  async stop(): Promise<void> {
    // A process that is paused by SIGSTOP would never handle SIGTERM, so it is continued first.
    this.#signal("SIGCONT");
    this.#signal("SIGTERM");
    await this.#exited;
  }

  /** Ends the server like a crash, with SIGKILL. */
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
      // Waits for "close" instead of "exit": at "exit", the last log lines may still be in the pipe.
      child.once("close", (code, signal) => resolve(`it ended with ${signal ?? `code ${code}`}`));
    });
    this.#child = undefined;
    return [reason, ...lines.filter((line) => /\[(FTL|ERR)\]|^nats-server:/.test(line))].join(": ");
  }

  /** Reports a start that takes long. Resolves when it takes too long, or when the signal aborts. */
  async #untilLate(signal: AbortSignal): Promise<string> {
    let pauseMs = SLOW_START_MS;
    for (let passedMs = 0; passedMs < NATS_START_MS_MAX && !signal.aborted; ) {
      const ms = Math.min(pauseMs, NATS_START_MS_MAX - passedMs);
      await this.#clock.wait(ms, signal);
      if (signal.aborted) break;
      passedMs += ms;
      pauseMs = Math.min(2 * pauseMs, SLOW_START_MS_MAX);
      this.#options.onSlowStart?.(passedMs / 1_000);
    }
    return `it was not ready after ${NATS_START_MS_MAX} ms`;
  }

  /** Reads the log until the process ends. Resolves when a line says that the server is ready. */
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
