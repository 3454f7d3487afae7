/** Runs git as a child process with explicit settings only, and with limits on time, memory and files. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import type { Readable, Writable } from "node:stream";
import { ActorError } from "../../../schemas/errors.ts";
import {
  GIT_PROCESS_KIB_MAX,
  GIT_PROCESS_MS_MAX,
  GIT_STDERR_CHARS_MAX,
  REPO_BYTES_SETTING_MAX,
} from "../../../schemas/repositories/limits.ts";
import { Spawner } from "./spawner.ts";
import { type ChildCommand, endGroup } from "./spawner-wire.ts";

export const GIT_PROCESS_CPU_S_MAX = 300;
/**
 * Bytes of one file that git may write: twice the bytes of the largest repository. An import sets a limit of its own.
 */
export const GIT_PROCESS_FILE_BYTES_MAX = 2 * REPO_BYTES_SETTING_MAX;
/** Default limit for the output of `runGit`, which is buffered. REFS_MAX refs with the longest names fit. */
const GIT_STDOUT_BYTES_MAX = 16 * 1024 * 1024;

/** Settings of git. A setting with several values has a list. */
type GitConfig = Readonly<Record<string, string | readonly string[]>>;

export interface GitOptions {
  /**
   * The folder in which git runs. Other paths are relative to this folder, so that it can be renamed while git runs.
   */
  cwd: string;
  environment?: Readonly<Record<string, string>>;
  config?: GitConfig;
  signal: AbortSignal;
  /** Time limit of the process. */
  msMax?: number;
  /** Size limit of each file that git writes. */
  fileBytesMax?: number;
  /**
   * Receives the error output in chunks. Only for rare processes, because such a process is started by the gateway
   * itself and not by the spawner.
   */
  onStderr?: (text: string) => void;
}

export interface GitExit {
  /** Null if a signal ended git, or git could not be started. */
  code: number | null;
  /** The last GIT_STDERR_CHARS_MAX characters of git's error output. */
  stderr: string;
}

type GitChild = ChildProcessByStdio<Writable, Readable, Readable>;

export interface RunningGit {
  stdin: Writable;
  stdout: Readable;
  /** Resolves when git has exited for any reason; never rejects. */
  exit: Promise<GitExit>;
}

/**
 * The environment of git: no configuration of the machine, no prompts, no protocols for fetching, no replaced
 * objects, no lazy fetches.
 */
const ENVIRONMENT = {
  HOME: "/nonexistent",
  LC_ALL: "C",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_TERMINAL_PROMPT: "0",
  GIT_ALLOW_PROTOCOL: "",
  GIT_NO_LAZY_FETCH: "1",
  GIT_NO_REPLACE_OBJECTS: "1",
  GIT_OPTIONAL_LOCKS: "0",
};

const CONFIG = {
  "core.hooksPath": "/nonexistent",
  "core.logAllRefUpdates": "false",
  // Git need not flush files to disk, because its folder is a cache. Durable data is on the bus.
  "core.fsync": "none",
  "core.bigFileThreshold": "16m",
  "core.packedGitWindowSize": "16m",
  "core.packedGitLimit": "128m",
  "gc.auto": "0",
  "maintenance.auto": "false",
  "pack.threads": "1",
  "pack.windowMemory": "64m",
  "pack.deltaCacheSize": "64m",
  // git refuses folders of another user. The volume of the cache may contain such folders.
  "safe.directory": "*",
  "transfer.advertiseSID": "false",
  "uploadpack.allowAnySHA1InWant": "true",
  "uploadpack.allowFilter": "true",
  "uploadpackfilter.allow": "false",
  "uploadpackfilter.blob:none.allow": "true",
  "uploadpackfilter.blob:limit.allow": "true",
  "uploadpackfilter.tree.allow": "true",
  "uploadpackfilter.tree.maxDepth": "1",
};

/**
 * Returns a shell script that sets the limits and starts git. Each `ulimit` sets only one limit, because a plain
 * shell accepts no more. If one of them fails, git does not start.
 */
const limited = (fileBytesMax: number) =>
  [
    "ulimit -c 0",
    `ulimit -t ${GIT_PROCESS_CPU_S_MAX}`,
    // POSIX counts this limit in blocks of 512 bytes.
    `ulimit -f ${Math.ceil(fileBytesMax / 512)}`,
    // macOS has no such limit.
    ...(process.platform === "darwin" ? [] : [`ulimit -v ${GIT_PROCESS_KIB_MAX}`]),
    'exec git "$@"',
  ].join(" && ");
const LIMITED = limited(GIT_PROCESS_FILE_BYTES_MAX);

/** Starts git. If the signal aborts or the time limit passes, git and all its child processes are killed. */
export function startGit(parameters: readonly string[], options: GitOptions): RunningGit {
  const { cwd, environment, config, signal, fileBytesMax, onStderr } = options;
  const { msMax = GIT_PROCESS_MS_MAX } = options;
  signal.throwIfAborted();
  const command: ChildCommand = {
    file: "/bin/sh",
    parameters: [
      "-c",
      fileBytesMax === undefined ? LIMITED : limited(fileBytesMax),
      "git",
      ...parameters,
    ],
    cwd: resolve(cwd),
    environment: {
      PATH: process.env.PATH ?? "",
      ...ENVIRONMENT,
      ...configEnvironment({ ...CONFIG, ...config }),
      ...environment,
    },
  };
  const { stdin, stdout, exit, end } =
    (onStderr ? undefined : spawner.spawn(command)) ?? spawnHere(command, onStderr);
  const late = setTimeout(end, msMax);
  signal.addEventListener("abort", end, { once: true });
  // Ignores a broken pipe, which only shows that the process has exited. `exit` states the reason.
  stdin.on("error", () => {});
  // A reader that stops early destroys the stream with an error. Without this handler, the error would end the
  // gateway's process.
  stdout.on("error", () => {});
  const over = exit.finally(() => {
    clearTimeout(late);
    signal.removeEventListener("abort", end);
  });
  return { stdin, stdout, exit: over };
}

const spawner = new Spawner();

function spawnHere(
  { file, parameters, cwd, environment }: ChildCommand,
  onStderr?: (text: string) => void,
) {
  const child: GitChild = spawn(file, parameters, {
    cwd,
    env: environment,
    stdio: ["pipe", "pipe", "pipe"],
    // A separate process group, so that git's child processes can be killed with git.
    detached: true,
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(-GIT_STDERR_CHARS_MAX);
    onStderr?.(text);
  });
  const exit = new Promise<GitExit>((resolve) => {
    child.once("error", (error) => resolve({ code: null, stderr: error.message }));
    child.once("close", (code: number | null) => resolve({ code, stderr }));
  });
  return { stdin: child.stdin, stdout: child.stdout, exit, end: () => endGroup(child.pid) };
}

/**
 * Runs git to its end and returns its output. Rejects with the signal's reason if aborted, and with ActorError
 * `limit_reached` if the output is too long.
 */
export async function runGit(
  parameters: readonly string[],
  options: GitOptions & { input?: string | Uint8Array; bytesMax?: number },
): Promise<GitExit & { stdout: Buffer }> {
  const { bytesMax = GIT_STDOUT_BYTES_MAX } = options;
  const enough = new AbortController();
  const signal = AbortSignal.any([options.signal, enough.signal]);
  const git = startGit(parameters, { ...options, signal });
  git.stdin.end(options.input ?? "");
  let chunks: Buffer[] = [];
  let bytes = 0;
  git.stdout.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= bytesMax) chunks.push(chunk);
    else {
      chunks = [];
      enough.abort();
    }
  });
  const exit = await git.exit;
  options.signal.throwIfAborted();
  if (bytes > bytesMax) {
    throw new ActorError(
      "limit_reached",
      `Cannot run git: its output has more than ${bytesMax} bytes`,
    );
  }
  return { ...exit, stdout: Buffer.concat(chunks) };
}

/** Writes the source to a process and closes its input. The process may exit before it has read everything. */
export async function feed(stdin: Writable, source: AsyncIterable<Uint8Array>): Promise<void> {
  await write(stdin, source);
  if (!stdin.destroyed) stdin.end();
}

/** Writes as `feed` does, but leaves the stream open for more. */
export async function write(stdin: Writable, source: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const chunk of source) {
    if (stdin.destroyed) return;
    if (!stdin.write(chunk)) await drained(stdin);
  }
}

/** Resolves when the stream accepts data again, or is closed. Rejects with the signal's reason. */
export async function drained(stream: Writable, signal?: AbortSignal): Promise<void> {
  if (stream.destroyed || !stream.writableNeedDrain) return;
  const over = new AbortController();
  const until = { signal: signal ? AbortSignal.any([signal, over.signal]) : over.signal };
  try {
    await Promise.race([once(stream, "drain", until), once(stream, "close", until)]);
  } catch (error) {
    signal?.throwIfAborted();
    // A stream that fails is closed.
    if (!stream.destroyed) throw error;
  } finally {
    over.abort();
  }
}

function configEnvironment(config: GitConfig): Record<string, string> {
  const entries = Object.entries(config).flatMap(([key, values]) =>
    [values].flat().map((value) => [key, value] as const),
  );
  const variables = entries.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return { ...Object.fromEntries(variables), GIT_CONFIG_COUNT: String(entries.length) };
}
