/** Gives a test a process of its own whose output it can wait for. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

export class ChildProgram implements AsyncDisposable {
  readonly lines: string[] = [];
  readonly #child: ChildProcess;
  /** Not "exit": its last lines are still in the pipes then. */
  readonly #closed: Promise<unknown[]>;
  #ended = false;
  readonly #heard = new Set<() => void>();
  readonly #abandon = () => void this.#child.kill("SIGKILL");

  /** `detached` gives it a process group of its own, as a terminal gives to what is started in it. */
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

  /** The first line that contains this text, past or to come. Rejects when the program ends without it. */
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

  /** To its whole process group, as a Ctrl-C in a terminal. */
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
