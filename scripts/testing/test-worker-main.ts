/**
 * A process that runs test files one after another, so that Node and the modules are loaded only once for many files.
 * Each file has its own mocha. test-worker.ts starts this process and sends a file to run as a message. The process
 * replies with the file's outcome.
 */
import { flushCompileCache } from "node:module";
import { setTimeout as pause } from "node:timers/promises";
import Mocha from "mocha";
import { REPOSITORY } from "../tools.ts";
import { RUN_VARIABLE } from "./leftovers.ts";

/** One file to run. */
export interface FileOrder {
  /** An absolute path. */
  path: string;
  /** The folder for temporary files of the test file and of its processes. */
  folder: string;
  /** The mark that every process started by the file inherits. */
  mark: string;
  /** If set, only tests whose full name matches this pattern run. */
  grep?: string;
  /** How long the file may keep resources open after its last test, in ms. */
  closeMs: number;
}

export interface FileOutcome {
  passed: number;
  failed: number;
  skipped: number;
  failures: Failure[];
  /** A problem of the file itself: it does not load, or it leaves resources open. */
  problem?: string;
  /** Processor time of the file and its processes. Absent if the system does not report it. */
  processorSeconds?: number;
  /** False if the process of the file exited before the file's last test. */
  hasEnded: boolean;
}

export interface Failure {
  /** The test's full name. */
  name: string;
  /** The error message with its stack. */
  error: string;
}

/** A message from the worker process: a test has failed, or the file has ended. */
export type FromWorker = { failure: Failure } | { outcome: FileOutcome };

/** The message that makes the process exit. It is sent instead of a file to run. */
export const END = "end";

/**
 * Marks the end of a file's output on stdout and stderr. Messages and output reach the parent through different
 * channels, so their order is not known otherwise.
 */
export const END_OF_OUTPUT = "\u0004end of file\u0004\n";

const CLOSE_LOOK_MS = 10;
/** Mocha's own default of 2 s is too short for tests that start processes on a busy machine. */
const TEST_MS_MAX = 60_000;

type Send = (message: FromWorker) => void;

if (process.send) {
  const send = process.send.bind(process) as Send;
  // Throws unhandled rejections, because Mocha counts only uncaught exceptions as failures.
  process.on("unhandledRejection", (reason) => {
    throw reason;
  });
  process.on("message", (order: FileOrder | typeof END) => {
    if (order === END) process.exit();
    void answer(order, send);
  });
}

async function answer(order: FileOrder, send: Send): Promise<void> {
  const outcome = await runFile(order, send);
  // Writes the compile cache now. Node writes it only at a normal exit, but this process is killed when there are no
  // more files.
  if (order.path.startsWith(REPOSITORY)) flushCompileCache();
  process.stdout.write(END_OF_OUTPUT);
  process.stderr.write(END_OF_OUTPUT);
  send({ outcome });
}

async function runFile(order: FileOrder, send: Send): Promise<FileOutcome> {
  const { path, folder, mark, grep, closeMs } = order;
  process.env.TMPDIR = folder;
  process.env[RUN_VARIABLE] = mark;
  const openBefore = countResources();
  const pattern = new RegExp(grep ?? "");
  const mocha = new Mocha({ timeout: TEST_MS_MAX, reporter: "spec", grep: pattern });
  mocha.addFile(path);
  try {
    await mocha.loadFilesAsync();
  } catch (error) {
    console.error(error);
    return { ...NOTHING_RAN, problem: "does not load" };
  }
  // Skips Mocha if no test matches the pattern. Otherwise it would print a message about that for each file of a
  // search by name.
  if (!hasTest(mocha.suite, pattern)) return NOTHING_RAN;
  const outcome = await runMocha(mocha, send);
  mocha.dispose();
  // A failed test may not have closed its resources, so they are not checked. No other file runs in this process
  // afterwards.
  if (outcome.failed > 0) return outcome;
  const open = await resourcesLeft(openBefore, closeMs);
  if (open.length > 0) outcome.problem = `left something open: ${open.join(", ")}`;
  return outcome;
}

const NOTHING_RAN: FileOutcome = {
  ...{ passed: 0, failed: 0, skipped: 0, failures: [], hasEnded: true },
};

const hasTest = (suite: Mocha.Suite, pattern: RegExp): boolean =>
  suite.tests.some((test) => pattern.test(test.fullTitle())) ||
  suite.suites.some((inner) => hasTest(inner, pattern));

function runMocha(mocha: Mocha, send: Send): Promise<FileOutcome> {
  return new Promise((resolve) => {
    const failures: Failure[] = [];
    const runner = mocha.run(() => {
      const { passes: passed = 0, failures: failed = 0, pending: skipped = 0 } = runner.stats ?? {};
      resolve({ passed, failed, skipped, failures, hasEnded: true });
    });
    runner.on("fail", (test, error) => {
      const failure = { name: test.fullTitle(), error: String(error?.stack ?? error) };
      failures.push(failure);
      send({ failure });
    });
  });
}

/**
 * Waits until the file has closed all resources that were not open before it started. Returns the names of those that
 * are still open after `withinMs`.
 */
async function resourcesLeft(before: Map<string, number>, withinMs: number): Promise<string[]> {
  for (let waited = 0; ; waited += CLOSE_LOOK_MS) {
    const now = countResources();
    const more = [...now].filter(([name, count]) => count > (before.get(name) ?? 0));
    if (more.length === 0 || waited > withinMs) return more.map(([name]) => name);
    await pause(CLOSE_LOOK_MS, undefined, { ref: false });
  }
}

/** Counts the open resources of each sort that keep this process alive. */
function countResources(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of process.getActiveResourcesInfo()) {
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}
