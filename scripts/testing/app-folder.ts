/**
 * A folder that contains an app. Tests run the command line in it as the app's author does, each command in its own
 * process.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { REPOSITORY } from "../tools.ts";
import { ChildProgram } from "./child-program.ts";
import type { CommandEnd } from "./command-line.ts";

const COMMAND_MS_MAX = 60_000;
const MAIN = join(REPOSITORY, "scripts/trunkline.ts");

export class AppFolder implements AsyncDisposable {
  readonly path: string;
  readonly #environment: NodeJS.ProcessEnv;

  /**
   * Creates the folder and links the package into it. The commands use no login and no other setting of this machine.
   */
  static async make(environment: NodeJS.ProcessEnv = {}): Promise<AppFolder> {
    const path = await mkdtemp(join(tmpdir(), "trunkline-app-"));
    await mkdir(join(path, "node_modules"));
    await symlink(REPOSITORY, join(path, "node_modules/trunkline"));
    return new AppFolder(path, environment);
  }

  constructor(path: string, environment: NodeJS.ProcessEnv) {
    this.path = path;
    this.#environment = {
      XDG_CONFIG_HOME: join(path, "config"),
      TRUNKLINE_API_URL: "",
      TRUNKLINE_API_TOKEN: "",
      TRUNKLINE_ACCOUNT_ID: "",
      ...environment,
    };
  }

  get loginPath(): string {
    return join(this.path, "config/trunkline/login.json");
  }

  async write(name: string, content: string | object): Promise<void> {
    const path = join(this.path, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, typeof content === "string" ? content : JSON.stringify(content));
  }

  read(name: string): Promise<string> {
    return readFile(join(this.path, name), "utf8");
  }

  /** Runs a command until it ends. `input` is the command's stdin. */
  async run(parameters: string[], { input = "" } = {}): Promise<CommandEnd> {
    const child = spawn(process.execPath, [MAIN, ...parameters], {
      cwd: this.path,
      env: { ...process.env, ...this.#environment },
      timeout: COMMAND_MS_MAX,
      killSignal: "SIGKILL",
    });
    child.stdin.on("error", () => {}); // It ended without reading it.
    child.stdin.end(input);
    const [stdout, stderr, code] = await Promise.all([
      textOf(child.stdout),
      textOf(child.stderr),
      codeOf(child),
    ]);
    return { code, stdout, stderr };
  }

  /** Runs the command as run() does, and fails if the command fails. */
  async succeed(parameters: string[], options: { input?: string } = {}): Promise<string> {
    const { code, stdout, stderr } = await this.run(parameters, options);
    if (code === 0) return stdout;
    throw new Error(`trunkline ${parameters.join(" ")} ended with ${code}: ${stdout}${stderr}`);
  }

  /** Starts a command that runs until it receives a signal. */
  start(parameters: string[], environment: NodeJS.ProcessEnv = {}): ChildProgram {
    return new ChildProgram(
      [process.execPath, MAIN, ...parameters],
      { ...this.#environment, ...environment },
      { cwd: this.path },
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }
}

async function textOf(stream: AsyncIterable<Buffer>): Promise<string> {
  return Buffer.concat(await Array.fromAsync(stream)).toString("utf8");
}

function codeOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => child.once("close", (code) => resolve(code ?? -1)));
}
