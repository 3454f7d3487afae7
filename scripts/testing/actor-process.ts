/**
 * Runs an actor host of the test kinds as a child process. A test can start, suspend, resume, stop and kill the
 * process.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { childrenOf } from "./process-children.ts";
import { startEnvironment, startFlags } from "./start-command.ts";

const MAIN = join(import.meta.dirname, "actor-process-main.ts");
const READY_MS_MAX = 45_000;
/** Keeps the last lines of a host's log, which explain a failed start. */
const LINES_KEPT = 3;

export interface ActorProcessOptions {
  url: string;
  name: string;
  buckets?: number;
  /** Disables checkpoints, so that commits exist only in the journal. */
  holdsCheckpoints?: boolean;
  /** A program to run instead of the host of the test kinds, and its arguments after the URL and the name. */
  program?: { main: string; parameters: readonly string[] };
}

export class ActorProcess {
  readonly name: string;
  readonly #lastLines: string[] = [];
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #ready: Promise<void>;
  // Kills the process if the test run exits without calling kill().
  readonly #abandon = () => void this.#child.kill("SIGKILL");

  /** Starts the process. The host accepts messages when `ready` has resolved. */
  constructor({ url, name, buckets = 1, holdsCheckpoints = false, program }: ActorProcessOptions) {
    const own = [String(buckets), ...(holdsCheckpoints ? ["hold"] : [])];
    const { main, parameters } = program ?? { main: MAIN, parameters: own };
    this.name = name;
    this.#child = spawn(process.execPath, [...startFlags(), main, url, name, ...parameters], {
      env: { ...process.env, ...startEnvironment() },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const { stdout, stderr } = this.#child;
    if (!stdout || !stderr) throw new Error("Cannot start host: it has no pipes");
    this.#exited = once(this.#child, "exit");
    this.#ready = this.#untilReady(once(createInterface({ input: stdout }), "line"));
    // A test that kills the host immediately never awaits `ready`, so a rejection of `ready` must not count as
    // unhandled.
    this.#ready.catch(() => {});
    // If this folder is set, the host's log is also written to it, to explain a failed test.
    const folder = process.env.TRUNKLINE_TEST_LOGS;
    if (folder) stderr.pipe(createWriteStream(join(folder, `${name}-${this.#child.pid}.log`)));
    createInterface({ input: stderr }).on("line", (line) => {
      this.#lastLines.push(line);
      if (this.#lastLines.length > LINES_KEPT) this.#lastLines.shift();
    });
    process.once("exit", this.#abandon);
  }

  get pid(): number {
    if (this.#child.pid === undefined) throw new Error("Cannot name a pid: the host did not start");
    return this.#child.pid;
  }

  get ready(): Promise<void> {
    return this.#ready;
  }

  /** Kills the process with SIGKILL, as a crash would. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended();
  }

  /** Sends SIGTERM to the process, so that the host leaves, and waits until the process has exited. */
  async stop(): Promise<void> {
    this.#child.kill("SIGCONT");
    this.#child.kill("SIGTERM");
    await this.#ended();
  }

  /** Suspends the process with SIGSTOP, as if its machine were swapping. */
  pause(): void {
    this.#child.kill("SIGSTOP");
  }

  resume(): void {
    this.#child.kill("SIGCONT");
  }

  /** Returns the pids of the process's children. Linux only. */
  children(): number[] {
    return childrenOf(this.#child.pid ?? 0);
  }

  async #ended(): Promise<void> {
    await this.#exited;
    process.removeListener("exit", this.#abandon);
  }

  async #untilReady(line: Promise<unknown>): Promise<void> {
    const late = AbortSignal.timeout(READY_MS_MAX);
    const reason = await Promise.race([
      line.then(() => undefined),
      this.#exited.then((code) => `it ended with ${code}`),
      once(late, "abort").then(() => `it was not ready after ${READY_MS_MAX} ms`),
    ]);
    if (reason === undefined) return;
    throw new Error(`Cannot start host ${this.name}: ${reason}: ${this.#lastLines.join("\n")}`);
  }
}
