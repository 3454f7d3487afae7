/** Runs git as a child that is told everything, finds nothing, and cannot take more than its share of the machine. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import {
  GIT_PROCESS_CPU_S_MAX,
  GIT_PROCESS_FILE_BYTES_MAX,
  GIT_PROCESS_KIB_MAX,
  GIT_PROCESS_MS_MAX,
  GIT_STDERR_CHARS_MAX,
} from "../../schemas/git-limits.ts";

export interface GitOptions {
  /** Where it runs; paths below are relative to it, so that the folder may be renamed meanwhile. */
  cwd: string;
  environment?: Readonly<Record<string, string>>;
  config?: Readonly<Record<string, string>>;
  signal: AbortSignal;
}

export interface GitExit {
  /** Null where a signal ended it. */
  code: number | null;
  /** What it said last on its error output. */
  stderr: string;
}

export type GitChild = ChildProcessByStdio<Writable, Readable, Readable>;

export interface RunningGit {
  stdin: Writable;
  stdout: Readable;
  /** Resolves however it ends. */
  exit: Promise<GitExit>;
}

/** No configuration of the machine, no prompts, no protocol to fetch by, no replaced objects, no lazy fetches. */
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
  // A cache: what is durable is on the bus.
  "core.fsync": "none",
  "core.bigFileThreshold": "16m",
  "core.packedGitWindowSize": "16m",
  "core.packedGitLimit": "128m",
  "gc.auto": "0",
  "maintenance.auto": "false",
  "pack.threads": "1",
  "pack.windowMemory": "64m",
  "pack.deltaCacheSize": "64m",
  // Folders of a cache may belong to another user of the same machine's volume.
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

/** Blocks of 512 bytes, as POSIX has it for `ulimit -f`. */
const FILE_BLOCKS_MAX = Math.ceil(GIT_PROCESS_FILE_BYTES_MAX / 512);
/** One at a time, since a plain shell takes no more; and no git where one of them fails. */
const LIMITED = [
  "ulimit -c 0",
  `ulimit -t ${GIT_PROCESS_CPU_S_MAX}`,
  `ulimit -f ${FILE_BLOCKS_MAX}`,
  // macOS has no such limit.
  ...(process.platform === "darwin" ? [] : [`ulimit -v ${GIT_PROCESS_KIB_MAX}`]),
  'exec git "$@"',
].join(" && ");

/** Starts git. The signal, and the longest time a process may take, end it and all it started. */
export function startGit(parameters: readonly string[], options: GitOptions): RunningGit {
  const { cwd, environment, config, signal } = options;
  signal.throwIfAborted();
  const child: GitChild = spawn("/bin/sh", ["-c", LIMITED, "git", ...parameters], {
    cwd,
    env: {
      PATH: process.env.PATH,
      ...ENVIRONMENT,
      ...configEnvironment({ ...CONFIG, ...config }),
      ...environment,
    },
    stdio: ["pipe", "pipe", "pipe"],
    // A group of its own, so that what it starts ends with it.
    detached: true,
  });
  const end = () => endGroup(child);
  const late = setTimeout(end, GIT_PROCESS_MS_MAX);
  signal.addEventListener("abort", end, { once: true });
  // Its exit says what went wrong; a pipe that broke only says that it has exited.
  child.stdin.on("error", () => {});
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(-GIT_STDERR_CHARS_MAX);
  });
  const exit = new Promise<GitExit>((resolve) => {
    child.once("error", (error) => resolve({ code: null, stderr: error.message }));
    child.once("close", (code: number | null) => resolve({ code, stderr }));
  }).finally(() => {
    clearTimeout(late);
    signal.removeEventListener("abort", end);
  });
  return { stdin: child.stdin, stdout: child.stdout, exit };
}

/** Runs git to its end and gives back what it printed. Rejects with the signal's reason once that is aborted. */
export async function runGit(
  parameters: readonly string[],
  options: GitOptions & { input?: string | Uint8Array },
): Promise<GitExit & { stdout: Buffer }> {
  const git = startGit(parameters, options);
  git.stdin.end(options.input ?? "");
  const chunks: Buffer[] = [];
  git.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  const exit = await git.exit;
  options.signal.throwIfAborted();
  return { ...exit, stdout: Buffer.concat(chunks) };
}

/** Writes to a process that may end before it has read everything. */
export async function feed(stdin: Writable, source: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const chunk of source) {
    if (stdin.destroyed) return;
    if (!stdin.write(chunk)) await drained(stdin);
  }
  stdin.end();
}

/** Resolves when there is room again, or it is closed. Rejects with the signal's reason. */
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

function configEnvironment(config: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(config);
  const variables = entries.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return { ...Object.fromEntries(variables), GIT_CONFIG_COUNT: String(entries.length) };
}

function endGroup({ pid }: GitChild): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended already.
  }
}
