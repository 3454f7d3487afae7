/**
 * A host of one app's process for tests. It keeps the records of its agents in memory, and releases a message only
 * when its record is committed.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deserialize, serialize } from "node:v8";
import { buildSync } from "esbuild";
import type {
  FromProcess,
  Operation,
  OperationResult,
  ProcessAction,
  ProcessAnswer,
  ProcessConnection,
  ProcessError,
  ProcessRequest,
  StartProcess,
  StreamPart,
  ToProcess,
  TurnInput,
  TurnResult,
} from "../../../../schemas/apps/app-process.ts";
import type { CallId } from "../../../../schemas/call-id.ts";
import { splitSourceMap } from "../../lib/app-process/split-source-map.ts";
import { processArguments } from "../../process/arguments.ts";

/** The content of an agent's log, which remains when the process ends. */
export interface StoredLog {
  image: Uint8Array | undefined;
  records: Uint8Array[];
  commits: number;
  wakeAt: number | null | undefined;
}

export interface HostOptions {
  /** TypeScript or JavaScript of the app. */
  code: string;
  values?: Record<string, unknown>;
  agents?: { binding: string; className: string }[];
  limits?: Partial<StartProcess["limits"]>;
  /** Answers operations that leave the process, except calls between agents, which the host handles itself. */
  operate?: (wanted: Operation) => Promise<OperationResult>;
  /** Logs of a host before this one. */
  logs?: Map<string, StoredLog>;
  /** Called before a record is stored, so that a test can cause a fault at that time. */
  beforeCommit?: (agent: string, commit: number) => void | Promise<void>;
}

interface Open {
  key: string;
  number: number;
  durable: number;
  opened: Promise<void>;
  waiting: { after: number; run: () => void }[];
}

export class RefusedTurn extends Error {
  readonly error: ProcessError;
  constructor(error: ProcessError) {
    super(error.message);
    this.name = error.name;
    this.error = error;
  }
}

export class MemoryHost {
  readonly logs: Map<string, StoredLog>;
  readonly lines: { level: string; text: string; agent?: number | undefined }[] = [];
  readonly operations: Operation[] = [];
  readonly actions: ProcessAction[] = [];
  readonly idle = new Map<string, boolean>();
  classes: string[] = [];
  onAction: (agent: string, action: ProcessAction) => void = () => undefined;
  readonly #options: HostOptions;
  readonly #folder: string;
  readonly #child: ChildProcess;
  readonly #open = new Map<string, Open>();
  readonly #byNumber = new Map<number, Open>();
  readonly #turns = new Map<
    number,
    { resolve: (result: TurnResult) => void; reject: (error: Error) => void }
  >();
  readonly #pulls = new Map<number, (part: StreamPart) => void>();
  #numbers = 0;
  #turn = 0;
  #isDead = false;

  private constructor(options: HostOptions, folder: string, child: ChildProcess) {
    this.#options = options;
    this.#folder = folder;
    this.#child = child;
    this.logs = options.logs ?? new Map();
  }

  static async start(options: HostOptions): Promise<MemoryHost> {
    const folder = await mkdtemp(join(tmpdir(), "trunkline-app-"));
    const bundleFolder = join(folder, "bundle");
    const workFolder = join(folder, "work");
    await mkdir(bundleFolder);
    await mkdir(workFolder);
    const bundle = join(bundleFolder, "bundle.mjs");
    const { code, map } = splitSourceMap(Buffer.from(bundled(options.code)));
    await writeFile(bundle, code);
    if (map) await writeFile(`${bundle}.map`, map);
    const { main, options: forkOptions } = processArguments({ bundleFolder, workFolder });
    const child = fork(main, [], {
      ...forkOptions,
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    const host = new MemoryHost(options, folder, child);
    const ready = Promise.withResolvers<void>();
    child.on("message", (messages: FromProcess[]) => {
      for (const message of messages) {
        if (message.type === "ready") {
          host.classes = message.classes;
          ready.resolve();
        } else if (message.type === "broken") {
          ready.reject(new RefusedTurn(message.error));
        } else {
          host.#receive(message);
        }
      }
    });
    child.once("exit", () => {
      host.#die();
      ready.reject(new Error("The process ended"));
    });
    host.#send({
      type: "start",
      bundle,
      workFolder,
      env: {
        values: options.values ?? {},
        agents: options.agents ?? [],
        artifacts: [],
        browser: undefined,
      },
      compatibilityDate: "2026-11-20",
      limits: {
        databaseBytes: 64 * 1024 ** 2,
        answerBytes: 10_000_000,
        // Longer than any turn takes, even on a slow and busy machine.
        turnMs: 120_000,
        workMs: 900_000,
        togetherMs: 30_000,
        ...options.limits,
      },
    });
    try {
      await ready.promise;
    } catch (error) {
      await host.stop();
      throw error;
    }
    return host;
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  /** Kills the process as a crash of the process or its machine would: all data that is not stored is lost. */
  async kill(): Promise<void> {
    this.#die();
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }

  async stop(): Promise<void> {
    await this.kill();
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** Starts another process with the logs that this process has stored. */
  async restart(changes: Partial<HostOptions> = {}): Promise<MemoryHost> {
    await this.stop();
    return MemoryHost.start({ ...this.#options, ...changes, logs: this.logs });
  }

  async request(
    key: string,
    path: string,
    init: RequestInit & { id?: string } = {},
  ): Promise<Response> {
    const result = await this.turn(
      key,
      { type: "request", request: await wireRequest(path, init) },
      init.id,
    );
    return responseOf(result);
  }

  async entry(path: string, init: RequestInit = {}): Promise<Response> {
    const result = await this.entryTurn(await wireRequest(path, init), false);
    return responseOf(result);
  }

  entryTurn(request: ProcessRequest, isUpgrade: boolean): Promise<TurnResult> {
    return this.#ask((turn) => ({ type: "entry", turn, request, isUpgrade }));
  }

  async invoke(key: string, method: string, ...args: unknown[]): Promise<unknown> {
    const bytes = new Uint8Array(serialize({ args }));
    const result = await this.turn(key, { type: "invoke", method, args: bytes });
    if (result.type !== "invoked") throw new Error(`Expected a result, got ${result.type}`);
    return deserialize(result.result);
  }

  async connect(key: string, connection: ProcessConnection, path = "/"): Promise<void> {
    await this.turn(key, {
      type: "connect",
      connection,
      request: await wireRequest(path),
      props: undefined,
    });
  }

  /** Runs a turn of the agent `class/name`, which is opened first if needed. */
  async turn(
    key: string,
    input: TurnInput,
    id: string = crypto.randomUUID(),
    call?: CallId,
  ): Promise<TurnResult> {
    const open = this.#openAgent(key);
    await open.opened;
    const asked = { id, ...(call && { call }), input };
    return this.#ask((turn) => ({ type: "turn", agent: open.number, turn, ...asked }));
  }

  /** Sends deliveries, given by id and path, at the same time. Each one follows the previous one. */
  async deliver(key: string, deliveries: readonly (readonly [id: string, path: string])[]) {
    const open = this.#openAgent(key);
    await open.opened;
    const requests = await Promise.all(
      deliveries.map(([, path]) => wireRequest(path, { method: "POST" })),
    );
    const messages: ToProcess[] = [];
    const results = requests.map((request, index) => {
      const [id = ""] = deliveries[index] ?? [];
      const input: TurnInput = { type: "deliver", deliveryId: id, attempt: 1, request };
      const follows = index > 0 ? { follows: this.#turn } : {};
      return this.#wait((turn) => {
        messages.push({ type: "turn", agent: open.number, turn, id, input, ...follows });
      });
    });
    this.#send(...messages);
    return Promise.allSettled(results);
  }

  /** Requests the next part of an answer that is still being written. */
  pull(stream: number): Promise<StreamPart> {
    return new Promise((resolve) => {
      this.#pulls.set(stream, resolve);
      this.#send({ type: "pull", stream });
    });
  }

  close(key: string): void {
    const open = this.#open.get(key);
    if (open === undefined) return;
    this.#open.delete(key);
    this.#byNumber.delete(open.number);
    this.#send({ type: "close", agent: open.number });
  }

  gone(key: string, gateway: string, numbers: number[] | "all"): void {
    const open = this.#open.get(key);
    if (open !== undefined) this.#send({ type: "gone", agent: open.number, gateway, numbers });
  }

  #openAgent(key: string): Open {
    const known = this.#open.get(key);
    if (known !== undefined) return known;
    const [className = "", ...name] = key.split("/");
    this.#numbers += 1;
    const log = this.#log(key);
    const opened = Promise.withResolvers<void>();
    const open: Open = {
      key,
      number: this.#numbers,
      durable: log.commits,
      opened: opened.promise,
      waiting: [],
    };
    this.#turns.set(-open.number, { resolve: () => opened.resolve(), reject: opened.reject });
    this.#open.set(key, open);
    this.idle.set(key, true);
    this.#byNumber.set(open.number, open);
    this.#send({
      type: "open",
      agent: open.number,
      address: { accountId: "a".repeat(32), app: "app", className, name: name.join("/") },
      image: log.image,
      records: log.records,
      lastCommit: log.commits,
    });
    return open;
  }

  #log(key: string): StoredLog {
    const log = this.logs.get(key) ?? {
      image: undefined,
      records: [],
      commits: 0,
      wakeAt: undefined,
    };
    this.logs.set(key, log);
    return log;
  }

  #receive(message: Exclude<FromProcess, { type: "ready" | "broken" }>): void {
    if (this.#isDead) return;
    switch (message.type) {
      case "opened":
        this.#settle(-message.agent)?.resolve({ type: "nothing" });
        return;
      case "unopened":
        this.#settle(-message.agent)?.reject(new RefusedTurn(message.error));
        return;
      case "commit":
        void this.#commit(message);
        return;
      case "act":
        this.#after(message.agent, message.after, () => this.#act(message.agent, message.actions));
        return;
      case "finished":
        this.#after(message.agent, message.after, () =>
          this.#settle(message.turn)?.resolve(message.result),
        );
        return;
      case "refused":
        this.#after(message.agent, message.after, () =>
          this.#settle(message.turn)?.reject(new RefusedTurn(message.error)),
        );
        return;
      case "part":
        this.#after(message.agent, message.after, () => {
          this.#pulls.get(message.stream)?.(message.part);
        });
        return;
      case "operation":
        this.#after(message.agent, message.after, () => {
          void this.#operate(message.operation, message.wanted);
        });
        return;
      case "log":
        this.lines.push({ level: message.level, text: message.text, agent: message.agent });
        return;
      case "idle": {
        const open = this.#byNumber.get(message.agent);
        if (open !== undefined) this.idle.set(open.key, message.isIdle);
        return;
      }
      case "pong":
        return;
      default:
        message satisfies never;
    }
  }

  async #commit(message: FromProcess & { type: "commit" }): Promise<void> {
    const open = this.#byNumber.get(message.agent);
    if (open === undefined) return;
    await this.#options.beforeCommit?.(open.key, message.commit);
    if (this.#isDead) return;
    const log = this.#log(open.key);
    if (message.commit !== log.commits + 1)
      throw new Error(`Commit ${message.commit} after ${log.commits}`);
    log.commits = message.commit;
    // Copies the record, because a real host would store exactly these bytes.
    const record = new Uint8Array(message.record);
    if (message.isImage) {
      log.image = record;
      log.records = [];
    } else {
      log.records = [...log.records, record];
    }
    if (message.wakeAt !== undefined) log.wakeAt = message.wakeAt;
    open.durable = message.commit;
    this.#act(message.agent, message.actions);
    const free = open.waiting.filter(({ after }) => after <= open.durable);
    open.waiting = open.waiting.filter(({ after }) => after > open.durable);
    for (const { run } of free) run();
    this.#send({ type: "committed", agent: message.agent, commit: message.commit });
  }

  #after(agent: number | undefined, after: number, run: () => void): void {
    const open = agent === undefined ? undefined : this.#byNumber.get(agent);
    if (open === undefined || after <= open.durable) run();
    else open.waiting.push({ after, run });
  }

  #act(agent: number, actions: ProcessAction[]): void {
    const key = this.#byNumber.get(agent)?.key ?? "";
    for (const action of actions) {
      this.actions.push(action);
      this.onAction(key, action);
    }
  }

  async #operate(operation: number, wanted: Operation): Promise<void> {
    this.operations.push(wanted);
    try {
      this.#send({ type: "done", operation, result: await this.#perform(wanted) });
    } catch (error) {
      const { name, message } = error as Error;
      const known = error instanceof RefusedTurn ? error.error : { name, message };
      this.#send({ type: "failed", operation, error: known });
    }
  }

  async #perform(wanted: Operation): Promise<OperationResult> {
    if (wanted.type === "agent.request") {
      const key = `${wanted.className}/${wanted.name}`;
      const result = await this.turn(key, { type: "request", request: wanted.request });
      if (result.type !== "answer") throw new Error("Expected an answer");
      return result;
    }
    if (wanted.type === "agent.invoke") {
      const key = `${wanted.className}/${wanted.name}`;
      const { method, args } = wanted;
      const result = await this.turn(key, { type: "invoke", method, args });
      if (result.type !== "invoked") throw new Error("Expected a result");
      return result;
    }
    if (this.#options.operate !== undefined) return this.#options.operate(wanted);
    throw new Error(`Nobody does ${wanted.type}`);
  }

  #ask(message: (turn: number) => ToProcess): Promise<TurnResult> {
    return this.#wait((turn) => this.#send(message(turn)));
  }

  #wait(begin: (turn: number) => void): Promise<TurnResult> {
    this.#turn += 1;
    const turn = this.#turn;
    return new Promise((resolve, reject) => {
      if (this.#isDead) return reject(new Error("The process ended"));
      this.#turns.set(turn, { resolve, reject });
      begin(turn);
    });
  }

  #settle(turn: number) {
    const waiting = this.#turns.get(turn);
    this.#turns.delete(turn);
    return waiting;
  }

  #send(...messages: ToProcess[]): void {
    if (this.#child.connected) this.#child.send(messages, () => undefined);
  }

  #die(): void {
    this.#isDead = true;
    for (const { reject } of this.#turns.values()) reject(new Error("The process ended"));
    this.#turns.clear();
  }
}

export async function wireRequest(path: string, init: RequestInit = {}): Promise<ProcessRequest> {
  const request = new Request(new URL(path, "http://app.example"), init);
  const body = request.body === null ? undefined : new Uint8Array(await request.arrayBuffer());
  return {
    method: request.method,
    url: request.url,
    headers: [...request.headers],
    ...(body && { body }),
  };
}

export function responseOf(result: TurnResult): Response {
  if (result.type !== "answer") throw new Error(`Expected an answer, got ${result.type}`);
  return answerToResponse(result.answer);
}

const NO_BODY = new Set([204, 205, 304]);

function answerToResponse({ status, headers, body }: ProcessAnswer): Response {
  return new Response(NO_BODY.has(status) ? null : new Uint8Array(body ?? []), { status, headers });
}

/**
 * Bundles as a deploy does: lowers decorators, keeps names, leaves the platform's package outside. Synchronous,
 * because esbuild otherwise keeps a process running.
 */
/** The name of the code in stacks. */
export const SOURCE = "app.ts";

export function bundled(code: string): string {
  const { outputFiles } = buildSync({
    stdin: { contents: code, sourcefile: SOURCE, loader: "ts", resolveDir: import.meta.dirname },
    absWorkingDir: import.meta.dirname,
    bundle: true,
    write: false,
    format: "esm",
    platform: "node",
    target: "es2022",
    keepNames: true,
    sourcemap: "inline",
    sourcesContent: false,
    external: ["trunkline/agents", "node:*"],
    logLevel: "silent",
    tsconfigRaw: {},
  });
  return outputFiles[0]?.text ?? "";
}
