/** A process with an actor host of the test kinds, started, frozen, woken, asked to leave and killed by a test. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { childrenOf } from "./process-children.ts";
import { startFlags } from "./start-command.ts";

const MAIN = join(import.meta.dirname, "actor-process-main.ts");
const READY_MS_MAX = 45_000;
/** Keeps the last lines of a host's log, which explain a failed start. */
const LINES_KEPT = 3;

export interface ActorProcessOptions {
  url: string;
  name: string;
  buckets?: number;
  /** Stops checkpoints, so that commits stay in the journal alone. */
  holdsCheckpoints?: boolean;
  /** Arguments after URL and name, for another program than the host of the test kinds. */
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

  /** Starts the process; it takes messages once `ready` resolves. */
  constructor({ url, name, buckets = 1, holdsCheckpoints = false, program }: ActorProcessOptions) {
    const own = [String(buckets), ...(holdsCheckpoints ? ["hold"] : [])];
    const { main, parameters } = program ?? { main: MAIN, parameters: own };
    this.name = name;
    this.#child = spawn(process.execPath, [...startFlags(), main, url, name, ...parameters], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    const { stdout, stderr } = this.#child;
    if (!stdout || !stderr) throw new Error("Cannot start host: it has no pipes");
    this.#exited = once(this.#child, "exit");
    this.#ready = this.#untilReady(once(createInterface({ input: stdout }), "line"));
    // Tests that kill the host at once never await `ready`, so its rejection must not count as unhandled.
    this.#ready.catch(() => {});
    // A folder in which a test that fails finds the logs of its hosts.
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

  /** Ends the server as a crash would (SIGKILL). */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended();
  }

  /** Asks it to leave (SIGTERM) and waits until it has. */
  async stop(): Promise<void> {
    this.#child.kill("SIGCONT");
    this.#child.kill("SIGTERM");
    await this.#ended();
  }

  /** Stands still, as in a machine that swaps (SIGSTOP). */
  pause(): void {
    this.#child.kill("SIGSTOP");
  }

  resume(): void {
    this.#child.kill("SIGCONT");
  }

  /** Processes that it started, where the system lists them. */
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
