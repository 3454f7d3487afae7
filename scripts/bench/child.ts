/** Runs a program of the benchmark folder in a child process, which answers one question at a time. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { startFlags, startVariables } from "../testing/start-command.ts";

export class Child implements AsyncDisposable {
  readonly #process: ChildProcess;

  /** Starts `<name>.ts`, such as "crawl/site-process". Resolves when it reports that it is ready. */
  static start(name: string, ...parameters: string[]): Promise<Child> {
    return Child.#fork(name, parameters, { flags: [], variables: {} });
  }

  /** Starts a part of the platform, with the flags of Node and the variables of `npm start`. */
  static startOurs(name: string, ...parameters: string[]): Promise<Child> {
    return Child.#fork(name, parameters, { flags: startFlags(), variables: startVariables() });
  }

  static async #fork(
    name: string,
    parameters: readonly string[],
    { flags, variables }: { flags: readonly string[]; variables: NodeJS.ProcessEnv },
  ): Promise<Child> {
    const profile = process.env.TRUNKLINE_BENCH_PROFILE;
    const child = fork(join(import.meta.dirname, `${name}.ts`), parameters, {
      serialization: "advanced",
      env: { ...process.env, ...variables },
      execArgv: [
        "--expose-gc",
        ...flags,
        ...(profile
          ? [
              "--cpu-prof",
              `--cpu-prof-dir=${profile}`,
              `--cpu-prof-name=${name.replace("/", "-")}-\${pid}.cpuprofile`,
            ]
          : []),
      ],
    });
    return await Child.of(child);
  }

  /** Wraps a process that was just forked. Resolves when it reports that it is ready. */
  static async of(child: ChildProcess): Promise<Child> {
    const started = new Child(child);
    await started.#answer("a start");
    return started;
  }

  constructor(child: ChildProcess) {
    this.#process = child;
  }

  get pid(): number {
    if (this.#process.pid === undefined) throw new Error("Cannot name a pid: nothing runs");
    return this.#process.pid;
  }

  /**
   * Sends a question and resolves with the answer. The type parameter is not checked, because both sides are code of
   * this folder.
   */
  async ask<T>(question: unknown): Promise<T> {
    this.#process.send(question as object);
    return (await this.#answer(JSON.stringify(question))) as T;
  }

  /** Sends a signal to the process and waits for its exit. */
  async end(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const exited = once(this.#process, "exit");
    this.#process.kill(signal);
    await exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }

  async #answer(question: string): Promise<unknown> {
    const ended = new AbortController();
    const { signal } = ended;
    const exited = once(this.#process, "exit", { signal }).then(([code]) => {
      throw new Error(`Cannot answer ${question}: the process ended with code ${code}`);
    });
    const answered = once(this.#process, "message", { signal });
    try {
      const [message] = await Promise.race([answered, exited]);
      return message;
    } finally {
      ended.abort();
      // Prevents an unhandled rejection of the promise that lost the race.
      exited.catch(() => {});
      answered.catch(() => {});
    }
  }
}
