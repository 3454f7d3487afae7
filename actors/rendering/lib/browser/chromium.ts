/**
 * One Chromium process tree. It starts unprivileged in its sandbox, communicates over pipes, and leaves no process or
 * file when it ends.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chown, rm } from "node:fs/promises";
import { Readable, Writable } from "node:stream";
import { fileSystemBytes } from "../../../runtime/store/file-system-bytes.ts";
import { chromiumFlags, type DrivenBrowser } from "./chromium-flags.ts";
import { PipeTransport } from "./pipe-transport.ts";
import { groupMemoryBytes, largestRenderers, renderersAbove } from "./process-memory.ts";
import { createProfileFolder } from "./profile-folder.ts";

/**
 * Minimum of shared memory, into which Chromium draws. Containers often have only 64 MB. Below this minimum Chromium
 * uses ordinary files instead.
 */
const BROWSER_SHARED_MEMORY_BYTES_MIN = 512 * 1024 * 1024;
/** Characters of Chromium's last output that are kept for error messages. */
const BROWSER_STDERR_CHARS = 4_000;

/**
 * The user and group `nobody`. Chromium's sandbox does not run as root, and Chromium needs no rights of root here.
 */
const UNPRIVILEGED = { uid: 65_534, gid: 65_534 };

interface ChromiumOptions {
  /** Path of a Chromium or of its headless shell. The shell is three times as fast and has a third of the size. */
  executablePath: string;
  /** Returns whether a message of Chromium is needed. By default all messages are. */
  admits?: (message: Buffer) => boolean;
  /** Set for a browser that a client controls by the DevTools protocol. */
  driven?: DrivenBrowser;
}

export class Chromium {
  /** Process id of the first process, which is also the id of its process group. */
  readonly pid: number;
  readonly transport: PipeTransport;
  /** Aborts as soon as the process ends or its pipes no longer work. */
  readonly ended: AbortSignal;

  readonly #process: ChildProcess;
  readonly #profile: string;
  readonly #exited: Promise<unknown>;
  readonly #end = new AbortController();
  #stderr = "";
  #killed: Promise<void> | undefined;

  /** Resolves when the process runs. Whether Chromium works can be seen only on the transport. */
  static async start({ executablePath, admits, driven }: ChromiumOptions): Promise<Chromium> {
    const profile = await createProfileFolder();
    try {
      const identity = process.getuid?.() === 0 ? UNPRIVILEGED : undefined;
      if (identity) await chown(profile, identity.uid, identity.gid);
      const smallSharedMemory = await isSharedMemorySmall();
      const flags = chromiumFlags({ profile, smallSharedMemory, driven });
      const child = spawn(executablePath, flags, {
        ...identity,
        cwd: profile,
        // The process gets its own group, so that all processes of the tree can be killed together.
        detached: true,
        env: environment(profile),
        stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"],
      });
      await once(child, "spawn");
      return new Chromium(child, profile, admits);
    } catch (error) {
      await rm(profile, { recursive: true, force: true });
      throw new Error(`Cannot start browser: ${executablePath} did not run`, { cause: error });
    }
  }

  /** Use `start`. */
  constructor(child: ChildProcess, profile: string, admits?: (message: Buffer) => boolean) {
    const [, , stderr, toBrowser, fromBrowser] = child.stdio;
    if (
      child.pid === undefined ||
      !(stderr instanceof Readable) ||
      !(toBrowser instanceof Writable) ||
      !(fromBrowser instanceof Readable)
    ) {
      throw new Error("Cannot start browser: its process has no pipes");
    }
    this.pid = child.pid;
    this.ended = this.#end.signal;
    this.#process = child;
    this.#profile = profile;
    this.#exited = once(child, "exit");
    // When the first process has ended, the rest of the tree is useless, so it is killed.
    void this.#exited.then(() => this.kill());
    stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-BROWSER_STDERR_CHARS);
    });
    this.transport = new PipeTransport({
      toBrowser,
      fromBrowser,
      ended: () => this.#end.abort(),
      ...(admits && { admits }),
    });
  }

  /** The last BROWSER_STDERR_CHARS characters of Chromium's error output. */
  get stderr(): string {
    return this.#stderr.trim();
  }

  /** Returns the memory of the whole process tree in bytes; undefined if the system does not report it. */
  memoryBytes(): Promise<number | undefined> {
    return groupMemoryBytes(this.pid);
  }

  /** Ends renderers that hold at least `bytes` of memory. Chromium reports their pages as killed. */
  async killRenderersAbove(bytes: number): Promise<void> {
    for (const pid of await renderersAbove(this.pid, bytes)) killProcess(pid);
  }

  /**
   * Ends as many renderers, the largest first, as take `bytes` of memory together. Returns false, and ends none, if all
   * renderers together take less.
   */
  async killLargestRenderers(bytes: number): Promise<boolean> {
    const chosen: number[] = [];
    let leftBytes = bytes;
    for (const renderer of await largestRenderers(this.pid)) {
      if (leftBytes <= 0) break;
      chosen.push(renderer.pid);
      leftBytes -= renderer.bytes;
    }
    if (leftBytes > 0) return false;
    for (const pid of chosen) killProcess(pid);
    return true;
  }

  /** Kills every process of the tree and removes the files that it stored. */
  kill(): Promise<void> {
    this.#killed ??= this.#kill();
    return this.#killed;
  }

  async #kill(): Promise<void> {
    try {
      process.kill(-this.pid, "SIGKILL");
    } catch (error) {
      // ESRCH means no such process: the whole group has already ended.
      if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
    }
    await this.#exited;
    this.transport.close();
    for (const pipe of this.#process.stdio) pipe?.destroy();
    // Processes that are still ending may use a folder for a short time, so the removal is retried.
    await rm(this.#profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  }
}

function killProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has ended meanwhile.
  }
}

/**
 * Returns the environment variables of Chromium: from this process only PATH and TZ, no credentials, no home folder,
 * and all temporary files in the profile.
 */
function environment(profile: string): NodeJS.ProcessEnv {
  return {
    PATH: process.env.PATH,
    TZ: process.env.TZ,
    LANG: "en_US.UTF-8",
    HOME: profile,
    TMPDIR: profile,
    XDG_CACHE_HOME: profile,
    XDG_CONFIG_HOME: profile,
    XDG_RUNTIME_DIR: profile,
    DBUS_SESSION_BUS_ADDRESS: "disabled:",
  };
}

/** Whether shared memory is too small for Chromium, which then uses ordinary files instead. */
const isSharedMemorySmall = async () =>
  (await fileSystemBytes("/dev/shm")) < BROWSER_SHARED_MEMORY_BYTES_MIN;
