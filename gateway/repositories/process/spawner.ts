/** Starts child processes from a small process, because a fork blocks a large process such as the gateway. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { moduleBeside } from "../../../schemas/module-beside.ts";
import {
  type ChildCommand,
  endGroup,
  type SpawnerNews,
  type SpawnerOrder,
} from "./spawner-wire.ts";

/** The shortest time between two starts of the spawner process. */
const GIT_SPAWNER_RETRY_MS = 5_000;
/**
 * How long the output of a killed child may be read. After it the output is discarded, because a reader that left early
 * may have paused it for ever.
 */
const GIT_KILLED_OUTPUT_MS = 30_000;

export interface SpawnedChild {
  stdin: Socket;
  stdout: Socket;
  /** Kills the child and all processes that it started. Its output can be read for a limited time. */
  end(): void;
  /** Resolves when the child has ended and its whole output was read or discarded. */
  exit: Promise<{ code: number | null; stderr: string }>;
}

interface Place {
  input?: Socket;
  output?: Socket;
}

interface Running {
  pid?: number;
  ended(code: number | null, stderr: string): void;
}

const PROGRAM = fileURLToPath(moduleBeside(import.meta.url, "./spawner-main"));

export class Spawner {
  readonly #retryMs: number;
  readonly #killedOutputMs: number;
  #life: SpawnerLife | undefined;
  #startedAt = Number.NEGATIVE_INFINITY;

  constructor({
    retryMs = GIT_SPAWNER_RETRY_MS,
    killedOutputMs = GIT_KILLED_OUTPUT_MS,
  }: { retryMs?: number; killedOutputMs?: number } = {}) {
    this.#retryMs = retryMs;
    this.#killedOutputMs = killedOutputMs;
  }

  /**
   * Starts a child. Returns undefined if the spawner process is not ready; then the caller must start the child
   * itself.
   */
  spawn(command: ChildCommand): SpawnedChild | undefined {
    if (this.#life?.isOver) this.#life = undefined;
    if (this.#life) return this.#life.spawn(command);
    const now = performance.now();
    if (now - this.#startedAt < this.#retryMs) return undefined;
    this.#startedAt = now;
    this.#life = new SpawnerLife(this.#killedOutputMs);
    return undefined;
  }

  get pid(): number | undefined {
    return this.#life?.pid;
  }

  /** Ends the spawner process and all processes that it has started. */
  close(): void {
    this.#life?.close();
  }
}

/** One run of the spawner process, from its start to its end for whatever reason. */
class SpawnerLife {
  readonly #killedOutputMs: number;
  readonly #folder: string;
  readonly #server: Server;
  readonly #running = new Map<number, Running>();
  readonly #places = new Map<number, Place>();
  /** Numbers of the places whose two connections are open and which no child uses. */
  readonly #free: number[] = [];
  #process: ChildProcess | undefined;
  isOver = false;

  constructor(killedOutputMs: number) {
    this.#killedOutputMs = killedOutputMs;
    // Only this user may enter the folder, so nobody else can connect.
    this.#folder = mkdtempSync(join(tmpdir(), "trunkline-spawner-"));
    const path = join(this.#folder, "socket");
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#receive(socket));
    this.#server.once("error", () => this.#end());
    this.#server.listen(path, () => this.#start(path)).unref();
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  spawn(command: ChildCommand): SpawnedChild | undefined {
    const place = this.#free.pop();
    const { input, output } = this.#places.get(place ?? 0) ?? {};
    if (place === undefined || !input || !output || !this.#process) return undefined;
    this.#places.delete(place);
    const order: SpawnerOrder = { place, command };
    this.#process.send(order, ignoreFailure);
    this.#process.channel?.ref();
    input.ref();
    // The gateway never writes to the child's output, so it ends its own side of this connection.
    output.ref().end();
    const ended = new Promise<{ code: number | null; stderr: string }>((resolve) => {
      this.#running.set(place, { ended: (code, stderr) => resolve({ code, stderr }) });
    });
    const exit = ended.then(async (said) => {
      input.destroy();
      // Output without a reader is discarded.
      if (output.readableFlowing === null && output.listenerCount("readable") === 0)
        output.resume();
      if (!output.closed) await once(output, "close");
      return said;
    });
    const end = () => {
      this.#endChild(place);
      this.#discardLater(output);
    };
    return { stdin: input, stdout: output, exit, end };
  }

  close(): void {
    this.#process?.kill("SIGKILL");
    this.#end();
  }

  #start(path: string): void {
    if (this.isOver) return;

    const child = spawn(process.execPath, [PROGRAM, path], {
      env: {},
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      // A terminal sends signals to all processes of its group. A separate group keeps them from the spawner process.
      detached: true,
    });
    this.#process = child;
    child.on("message", (news: SpawnerNews) => this.#hear(news));
    child.once("error", () => this.#end());
    // When `disconnect` is emitted, all messages of the process have arrived.
    child.once("disconnect", () => this.#end());
    child.unref();
    child.channel?.unref();
  }

  #receive(socket: Socket): void {
    socket.unref();
    socket.on("error", () => {});
    let text = "";
    const read = () => {
      text += socket.read()?.toString("latin1") ?? "";
      if (!text.endsWith("\n")) return;
      // After this, the socket has no reader, as a new socket. The code that uses it later chooses how to read.
      socket.off("readable", read);
      const [place = "", use = ""] = text.trim().split(" ");
      this.#keep(Number(place), use === "input" ? { input: socket } : { output: socket });
    };
    socket.on("readable", read);
  }

  #keep(number: number, half: Place): void {
    const place = { ...this.#places.get(number), ...half };
    this.#places.set(number, place);
    if (place.input && place.output) this.#free.push(number);
  }

  #hear(news: SpawnerNews): void {
    const running = this.#running.get(news.place);
    if (!running) return;
    if ("pid" in news) {
      running.pid = news.pid;
      return;
    }
    this.#running.delete(news.place);
    if (this.#running.size === 0) this.#process?.channel?.unref();
    running.ended(news.code, news.stderr);
  }

  #endChild(place: number): void {
    if (!this.#running.has(place)) return;
    const order: SpawnerOrder = { place, end: true };
    this.#process?.send(order, ignoreFailure);
  }

  /** Discards unread output of a killed child after a while, or its place would never be free. */
  #discardLater(output: Socket): void {
    if (output.closed) return;
    const late = setTimeout(() => output.destroy(), this.#killedOutputMs).unref();
    output.once("close", () => clearTimeout(late));
  }

  /** Ends this run of the spawner process and kills its children, because nothing would report their exits. */
  #end(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#server.close();
    rmSync(this.#folder, { recursive: true, force: true });
    for (const { pid, ended } of this.#running.values()) {
      endGroup(pid);
      ended(null, "who started it has ended");
    }
    for (const { input, output } of this.#places.values()) {
      input?.destroy();
      output?.destroy();
    }
  }
}

/** Ignores a failed send: the spawner process has ended, and its `disconnect` event reports that. */
const ignoreFailure = () => {};
