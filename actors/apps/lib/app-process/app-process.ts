/** A process that runs an app's code: its host starts it, exchanges messages with it, and is notified of its end. */
import { type ChildProcess, fork } from "node:child_process";
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { constants, setPriority } from "node:os";
import type { ServingApp } from "../../../../schemas/apps/app.ts";
import type { AgentAddress } from "../../../../schemas/apps/app-names.ts";
import type { FromProcess, ToProcess } from "../../../../schemas/apps/app-process.ts";
import { APP_START_MS_MAX } from "../../../../schemas/apps/limits.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { Arriving } from "./arriving.ts";
import { EntryWait } from "./entry-wait.ts";
import { MISASKED, type Misasked, readFromProcess } from "./from-process.ts";
import { HeldBytes } from "./held-bytes.ts";
import type { HostStreams } from "./host-streams.ts";
import { FOLDER_GONE, heapBoundOf, ProcessEnded } from "./process-ended.ts";
import { toActorError } from "./process-error.ts";
import type { ProcessListener } from "./process-listener.ts";
import {
  type Exported,
  type ProcessProgram,
  type ProcessStart,
  startOf,
} from "./process-program.ts";
import { ProcessWatch } from "./process-watch.ts";
import { weightOf } from "./weight.ts";
import { type ProcessFiles, writeProcessFiles } from "./write-process-files.ts";

export interface AppProcessParts {
  clock: Clock;
  /** The app's key. */
  key: string;
  program: ProcessProgram;
  /** A folder for this process alone, created and removed with it. */
  folder: string;
  /** User and group id of the child; defaults to its parent's. */
  user: number | undefined;
  /** Runs an operation that the default export requested. */
  operate(process: AppProcess, message: Extract<FromProcess, { type: "operation" }>): void;
  streams: Pick<HostStreams, "heard" | "ofEntry">;
  /** Limit of the agents that may be open at the same time. It is as large as the limit of open files allows. */
  agentsMax?: number | undefined;
  /** Receives the lines that the app prints, and the reason if the process does not start. */
  log(line: { level: "debug" | "info" | "warn" | "error"; text: string; agent?: string }): void;
}

/** Limit of the characters kept from Node's last output before a crash. */
const LAST_WORDS_CHARS = 2_000;
/** Scheduling priority: the platform's own processes come before processes of apps. */
const NICENESS = constants.priority.PRIORITY_BELOW_NORMAL;

export class AppProcess {
  readonly key: string;
  readonly serving: ServingApp;
  /** Vars and secrets by name. */
  readonly values: Readonly<Record<string, unknown>>;
  exported: Exported = { classes: [], hasDefault: false };
  readonly arriving = new Arriving();
  readonly held = new HeldBytes((reason) => this.kill(reason));
  readonly #parts: AppProcessParts;
  readonly #child: ChildProcess;
  #watch: ProcessWatch | undefined;
  readonly #agents = new Map<number, { listener: ProcessListener; key: string; isIdle: boolean }>();
  readonly #opening = new Map<number, PromiseWithResolvers<boolean>>();
  readonly #entries = new Map<number, ProcessListener>();
  readonly #ready = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<Error>();
  readonly #ending = new AbortController();
  #reason: string | undefined;
  #lastWords = "";
  #said: { message: ToProcess; arrived: () => void }[] = [];
  #bound: string | undefined;
  #isEnded = false;
  #numbers = 0;
  readonly #entryWait = new EntryWait(() => this.#parts.clock.monotonic());

  /** Resolves when the process is ready. Rejects with `app_broken` (bundle does not start) or `unavailable`. */
  static async start(parts: AppProcessParts, start: ProcessStart): Promise<AppProcess> {
    const { folder, user } = parts;
    const files = await writeProcessFiles(folder, start.bundle, user);
    const started = new AppProcess(parts, start, files);
    await started.#ready.promise;
    return started;
  }

  private constructor(
    parts: AppProcessParts,
    { serving, values }: ProcessStart,
    files: ProcessFiles,
  ) {
    const { program, user } = parts;
    this.#parts = parts;
    this.key = parts.key;
    this.serving = serving;
    this.values = values;
    const { main, options } = program(files);
    this.#child = fork(main, [], {
      ...options,
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      ...(user !== undefined && { uid: user, gid: user }),
    });
    this.#listen();
    this.send(startOf({ serving, values }, files));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** True when the process has ended or is about to end, so that no work may begin in it. */
  get isEnded(): boolean {
    return this.#isEnded || this.#child.killed;
  }

  /** Number of agents that are open or being opened, plus the entry's turns, open streams and `waitUntil` work. */
  get users(): number {
    const ofEntry = this.#entryWait.users + this.#parts.streams.ofEntry(this);
    return this.#agents.size + this.#entries.size + ofEntry;
  }

  /** Resolves with the reason when the process has ended. */
  get ended(): Promise<Error> {
    return this.#ended.promise;
  }

  /** Aborts when the process ends. */
  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  /** Opens an agent from its log and returns its number in this process. Rejects with ActorError or ProcessEnded. */
  async openAgent(
    { key, address }: { key: string; address: AgentAddress },
    log: { image: Uint8Array | undefined; records: Uint8Array[]; lastCommit: number },
    listener: ProcessListener,
  ): Promise<{ agent: number; isEmpty: boolean }> {
    if (this.#isEnded) throw new ProcessEnded("it is gone");
    this.#makeRoom();
    const agent = ++this.#numbers;
    const opening = Promise.withResolvers<boolean>();
    this.#agents.set(agent, { listener, key, isIdle: true });
    this.#opening.set(agent, opening);
    const { image, records, lastCommit } = log;
    this.send({ type: "open", agent, address, image, records, lastCommit });
    try {
      return { agent, isEmpty: await opening.promise };
    } catch (error) {
      this.#agents.delete(agent);
      if (existsSync(this.#parts.folder)) throw error;
      this.kill(FOLDER_GONE);
      throw new ProcessEnded(FOLDER_GONE);
    }
  }

  /** Closes an idle agent at `agentsMax`, because agents hold open files. The agent's next message opens it again. */
  #makeRoom(): void {
    const { agentsMax = Number.POSITIVE_INFINITY } = this.#parts;
    if (this.#agents.size < agentsMax) return;
    if (this.#agents.values().some(({ listener }) => listener.giveWay())) return;
    const text = `Cannot open the agent: its app has ${agentsMax} at work, as many as the limit of open files (ulimit -n) allows`;
    throw new ActorError("busy", text, { retryAfterS: 1 });
  }

  closeAgent(agent: number): void {
    if (!this.#agents.delete(agent)) return;
    this.send({ type: "close", agent });
  }

  /** Begins an agent's turn. Returns its number, which its messages carry and later turns can name. Throws `busy`. */
  turn(wanted: Omit<ToProcess & { type: "turn" }, "type" | "turn">): number {
    const turn = ++this.#numbers;
    this.#begin({ type: "turn", turn, ...wanted });
    return turn;
  }

  /** Begins a turn of the default export. `listener` gets the turn's messages until `forgetEntry`. Throws `busy`. */
  entry(
    wanted: Pick<Extract<ToProcess, { type: "entry" }>, "request" | "isUpgrade">,
    listener: ProcessListener,
  ): number {
    const turn = ++this.#numbers;
    this.#begin({ type: "entry", turn, ...wanted });
    if (this.#isEnded) listener.ended(new ProcessEnded("it is gone"));
    else this.#entries.set(turn, listener);
    return turn;
  }

  forgetEntry(turn: number): void {
    this.#entries.delete(turn);
  }

  /**
   * Enqueues a message. Messages of one turn of the event loop share one write, because a write costs as much as the
   * rest of a message. Calls `arrived` exactly one time, even if the message is lost.
   */
  send(message: ToProcess, arrived: () => void = () => {}): void {
    this.#said.push({ message, arrived });
    if (this.#said.length === 1) setImmediate(() => this.#sendSaid());
  }

  #begin(message: ToProcess): void {
    const bytes = weightOf(message);
    this.arriving.add(bytes);
    this.send(message, () => this.arriving.remove(bytes));
  }

  /** Kills the process. After that, all its messages except log lines are ignored. */
  kill(reason: string): void {
    this.#reason ??= reason;
    this.#child.kill("SIGKILL");
  }

  #sendSaid(): void {
    const said = this.#said;
    this.#said = [];
    const arrived = () => {
      for (const one of said) one.arrived();
    };
    if (this.#isEnded || !this.#child.connected) {
      arrived();
      return;
    }
    // Messages in flight are lost when the process ends. Their callers are notified of that end.
    this.#child.send(
      said.map(({ message }) => message),
      arrived,
    );
  }

  #listen(): void {
    const child = this.#child;
    const { clock } = this.#parts;
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#lastWords = (this.#lastWords + text).slice(-LAST_WORDS_CHARS);
    });
    child.on("message", (messages) => {
      try {
        for (const message of messages as unknown[]) this.#heard(readFromProcess(message));
      } catch {
        this.kill(FORGED);
      }
    });
    // Removes Node's own listener for passed handles, because it trusts every such message.
    child.removeAllListeners("internalMessage");
    child.on("internalMessage", () => this.kill(FORGED));
    child.once("error", (error) => {
      this.#reason ??= error.message;
      if (child.pid === undefined) void this.#finish("it could not be started");
    });
    child.once("exit", (code, signal) => void this.#finish(signal ?? `code ${code}`));
    if (child.pid === undefined) return;
    setPriority(child.pid, NICENESS);
    void this.#limitStart();
    const entries = this.#entries;
    const agents = this.#agents;
    const isQuiet = () =>
      entries.size === 0 &&
      agents.values().every(({ isIdle, listener }) => isIdle && listener.turns === 0) &&
      this.#parts.streams.ofEntry(this) === 0;
    this.#watch = new ProcessWatch(
      {
        pid: child.pid,
        ping: (number) => this.send({ type: "ping", number }),
        get isQuiet() {
          return isQuiet();
        },
        exceed: (reason) => {
          this.#bound = reason;
          this.kill(reason);
        },
      },
      clock,
    );
  }

  async #limitStart(): Promise<void> {
    const started = new AbortController();
    this.#ready.promise.then(
      () => started.abort(),
      () => started.abort(),
    );
    await this.#parts.clock.wait(APP_START_MS_MAX, started.signal);
    if (!started.signal.aborted) this.kill(`it was not ready after ${APP_START_MS_MAX} ms`);
  }

  #heard(message: FromProcess | Misasked): void {
    if (this.isEnded && message.type !== "log") return;
    switch (message.type) {
      case "ready":
        this.exported = { classes: message.classes, hasDefault: message.hasDefault };
        this.#ready.resolve();
        break;
      case "broken": {
        const { name, message: text } = message.error;
        this.#parts.log({ level: "error", text: message.error.stack ?? `${name}: ${text}` });
        this.#ready.reject(new ActorError("app_broken", `Cannot start the app: ${name}: ${text}`));
        this.kill("its bundle does not start");
        break;
      }
      case "opened":
        this.#opening.get(message.agent)?.resolve(message.isEmpty ?? false);
        this.#opening.delete(message.agent);
        break;
      case "unopened":
        this.#opening.get(message.agent)?.reject(toActorError(message.error));
        this.#opening.delete(message.agent);
        break;
      case "log":
        this.#print(message);
        break;
      case "pong":
        this.#watch?.pong(message.number);
        break;
      case "idle": {
        if (this.#entryWait.takes(message)) break;
        const agent = this.#agents.get(message.agent);
        if (agent) agent.isIdle = message.isIdle;
        agent?.listener.heard(message);
        break;
      }
      case "commit":
      case "act":
        this.#agents.get(message.agent)?.listener.heard(message);
        break;
      case "refused":
        this.#printFault(message);
        this.#listenerOf(message.agent, message.turn)?.heard(message);
        break;
      case "finished":
        this.#listenerOf(message.agent, message.turn)?.heard(message);
        break;
      case "part":
        if (message.agent === undefined) this.#parts.streams.heard(this, message);
        else this.#agents.get(message.agent)?.listener.heard(message);
        break;
      case "operation":
        if (message.agent === undefined) this.#parts.operate(this, message);
        else this.#agents.get(message.agent)?.listener.heard(message);
        break;
      case "misasked":
        this.send({ type: "failed", operation: message.operation, error: MISASKED });
        break;
      default:
        message satisfies never;
    }
  }

  #listenerOf(agent: number | undefined, turn: number): ProcessListener | undefined {
    return agent === undefined ? this.#entries.get(turn) : this.#agents.get(agent)?.listener;
  }

  #print({ agent, level, text }: Extract<FromProcess, { type: "log" }>): void {
    const key = agent === undefined ? undefined : this.#agents.get(agent)?.key;
    this.#parts.log({ level, text, ...(key !== undefined && { agent: key }) });
  }

  /** Prints an error of user code. The caller receives only the part that the gateway passes on. */
  #printFault({ agent, error }: Extract<FromProcess, { type: "refused" }>): void {
    if (error.refusal !== undefined) return;
    const text = error.stack ?? `${error.name}: ${error.message}`;
    this.#print({ type: "log", level: "error", text, ...(agent !== undefined && { agent }) });
  }

  async #finish(how: string): Promise<void> {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#ending.abort();
    this.#watch?.end();
    const lastWords = this.#lastWords.trim();
    const heapBound = this.#reason === undefined ? heapBoundOf(lastWords) : undefined;
    const listeners = [
      ...[...this.#agents.values()].map(({ listener }) => listener),
      ...this.#entries.values(),
    ];
    const turns = listeners.reduce((sum, listener) => sum + listener.turns, 0);
    const error = new ProcessEnded(this.#reason ?? heapBound ?? how, {
      ...{ bound: this.#bound ?? heapBound, lastWords, isOfOneTurn: turns === 1 },
    });
    // The promise resolves before the listeners are notified, because they then request another process.
    this.#ended.resolve(error);
    // Only an error that the bundle throws is the app's own fault. After any other error, a later start may succeed.
    const text = `Cannot start the app just now: ${this.#reason ?? how}`;
    const unready = new ActorError("unavailable", text, { retryAfterS: 1 });
    this.#ready.reject(unready);
    this.#ready.promise.catch((cause) => {
      if (cause === unready) this.#parts.log({ level: "error", text: error.message });
    });
    for (const opening of this.#opening.values()) opening.reject(error);
    this.#agents.clear();
    this.#entries.clear();
    this.#opening.clear();
    for (const listener of listeners) listener.ended(error);
    await rm(this.#parts.folder, { recursive: true, force: true }).catch(() => {});
  }
}

const FORGED = "it says what no process of an app says";
