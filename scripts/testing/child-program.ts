/** Runs a program as a child process, so that a test can wait for lines of its output. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

export class ChildProgram implements AsyncDisposable {
  readonly lines: string[] = [];
  readonly #child: ChildProcess;
  /** Waits for the event "close" and not for "exit", because at "exit" the last lines are still in the pipes. */
  readonly #closed: Promise<unknown[]>;
  #ended = false;
  readonly #heard = new Set<() => void>();
  readonly #abandon = () => void this.#child.kill("SIGKILL");

  /** `detached` puts the program into its own process group, as a terminal does for a command. */
  constructor(
    command: string[],
    environment: NodeJS.ProcessEnv,
    { detached = false, cwd = process.cwd() } = {},
  ) {
    const [program = "", ...parameters] = command;
    this.#child = spawn(program, parameters, {
      env: { ...process.env, ...environment },
      stdio: ["ignore", "pipe", "pipe"],
      detached,
      cwd,
    });
    this.#closed = once(this.#child, "close");
    this.#child.once("close", () => {
      this.#ended = true;
      this.#notify();
    });
    process.once("exit", this.#abandon);
    for (const input of [this.#child.stdout, this.#child.stderr]) {
      if (input === null) continue;
      createInterface({ input }).on("line", (line) => {
        this.lines.push(line);
        this.#notify();
      });
    }
  }

  get pid(): number {
    if (this.#child.pid === undefined)
      throw new Error("Cannot name pid: the program did not start");
    return this.#child.pid;
  }

  /**
   * Resolves to the first line that contains the text, among past and future lines. Rejects if the program ends
   * without such a line.
   */
  async line(text: string): Promise<string> {
    for (;;) {
      const found = this.lines.find((line) => line.includes(text));
      if (found !== undefined) return found;
      if (this.#ended)
        throw new Error(`Cannot find "${text}" in the output: ${this.lines.join("\n")}`);
      await new Promise<void>((resolve) => this.#heard.add(resolve));
    }
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** Sends the signal to the program's process group, as Ctrl-C in a terminal does. */
  signalGroup(name: NodeJS.Signals): void {
    process.kill(-this.pid, name);
  }

  /** Resolves to the exit code, or null when a signal ended the process. */
  async exit(): Promise<number | null> {
    const [code] = await this.#closed;
    return typeof code === "number" ? code : null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    process.removeListener("exit", this.#abandon);
    this.#child.kill("SIGKILL");
    await this.#closed;
  }

  #notify(): void {
    for (const heard of this.#heard) heard();
    this.#heard.clear();
  }
}
