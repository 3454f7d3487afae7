/** Runs an instance of Trunkline with some of the roles in a separate process for a test. */
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "../free-port.ts";
import { ChildProgram } from "./child-program.ts";
import { startCommand, startEnvironment } from "./start-command.ts";
import { until } from "./until.ts";

const START_MS_MAX = 120_000;
/** All processes have the same token for their metrics, whichever process has the credentials. */
const METRICS_TOKEN = "opens-metrics-in-tests";

export interface Credentials {
  base_url: string;
  account_id: string;
  api_token: string;
  user: { email: string; password: string };
}

export class RoleProcess implements AsyncDisposable {
  readonly #program: ChildProgram;
  readonly #dataDir: string;
  readonly #port: number;

  /** `folder` contains all files of the instance: its data directory and the temporary files of its browsers. */
  static async start(
    name: string,
    folder: string,
    environment: NodeJS.ProcessEnv,
  ): Promise<RoleProcess> {
    const temporary = join(folder, "tmp");
    await mkdir(temporary, { recursive: true });
    return new RoleProcess(join(folder, name), temporary, await freePort(), environment);
  }

  constructor(dataDir: string, temporary: string, port: number, environment: NodeJS.ProcessEnv) {
    this.#dataDir = dataDir;
    this.#port = port;
    this.#program = new ChildProgram(startCommand(), {
      ...startEnvironment(),
      TRUNKLINE_DATA: dataDir,
      TRUNKLINE_PORT: String(port),
      TRUNKLINE_METRICS_TOKEN: METRICS_TOKEN,
      TMPDIR: temporary,
      ...environment,
    });
  }

  get dataDir(): string {
    return this.#dataDir;
  }

  get pid(): number {
    return this.#program.pid;
  }

  /** The URL at which the process listens, without a trailing slash. */
  get url(): string {
    return this.#urlOf("");
  }

  get lines(): readonly string[] {
    return this.#program.lines;
  }

  /**
   * Resolves when /healthz reports that everything the roles need is available. Rejects if the process exits before.
   */
  async ready(): Promise<void> {
    const healthy = () =>
      fetch(this.#urlOf("/healthz")).then(
        ({ ok }) => ok,
        () => false, // It does not listen yet.
      );
    const ended = this.#program.exit().then((code) => {
      throw new Error(`Cannot start instance: code ${code}: ${this.lines.join("\n")}`);
    });
    ended.catch(() => {}); // It will end some day.
    await Promise.race([until(`${this.#dataDir} is ready`, healthy, START_MS_MAX), ended]);
  }

  async metrics(): Promise<string> {
    const headers = { Authorization: `Bearer ${METRICS_TOKEN}` };
    return (await fetch(this.#urlOf("/metrics"), { headers })).text();
  }

  async credentials(): Promise<Credentials> {
    return JSON.parse(await readFile(join(this.#dataDir, "credentials.json"), "utf8"));
  }

  signal(name: NodeJS.Signals): void {
    this.#program.signal(name);
  }

  /** Resolves to the exit code, or null when a signal ended the process. */
  exit(): Promise<number | null> {
    return this.#program.exit();
  }

  /**
   * Ends the process. Rejects if the embedded bus refused a request of a role because deploy/bus-permissions lacks a
   * right.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#program[Symbol.asyncDispose]();
    // Ignores violations by the doctor, which tests that its user's forbidden requests are rejected.
    const refused = this.lines.find(
      (line) => /(Publish|Subscription) Violation/.test(line) && !line.includes("trunkline-doctor"),
    );
    if (refused !== undefined) throw new Error(`A role lacks a right on the bus: ${refused}`);
  }

  #urlOf(path: string): string {
    return `http://127.0.0.1:${this.#port}${path}`;
  }
}
