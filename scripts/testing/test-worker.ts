/** Starts a process that runs test files one after another, and sends it one file at a time. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { REPOSITORY } from "../tools.ts";
import { endAll, endLeftoversThatStay, leftAfter, RUN_VARIABLE } from "./leftovers.ts";
import { processStat } from "./process-stat.ts";
import {
  END,
  END_OF_OUTPUT,
  type Failure,
  type FileOrder,
  type FileOutcome,
  type FromWorker,
} from "./test-worker-main.ts";

const MAIN = join(import.meta.dirname, "test-worker-main.ts");
/** Maximum duration of a file, so that a file that hangs does not block the run. */
const FILE_MS_MAX = 20 * 60_000;
/** A process that its test has ended exits within this time. Other processes may wait until this worker ends. */
const CHILDREN_END_MS = 500;

export class TestWorker implements AsyncDisposable {
  /** The beginning of the marks of all files that this worker runs. */
  readonly mark: string;
  /**
   * False if this worker has ended, a file has failed in it, or a file left processes behind. Then no other file
   * should run in it.
   */
  isFit = true;
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown[]>;
  /** Resolves when the process has exited and no other process holds its pipes open. */
  readonly #closed: Promise<unknown[]>;
  #output: (text: string) => void = () => {};
  /** Called when stdout or stderr of the child has delivered all output of a file. */
  #onEndOfOutput = () => {};

  constructor(mark: string) {
    this.mark = mark;
    this.#child = spawn(process.execPath, [MAIN], {
      cwd: REPOSITORY,
      env: { ...process.env, [RUN_VARIABLE]: mark },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      detached: true, // A Ctrl-C reaches it through the parent, which then ends all of it.
    });
    this.#exited = once(this.#child, "exit");
    this.#closed = once(this.#child, "close");
    const { stdout, stderr } = this.#child;
    for (const stream of [stdout, stderr]) if (stream) this.#read(stream);
  }

  /**
   * Runs a file and passes its output to `output` as it arrives. Never rejects, because the outcome contains all
   * faults.
   */
  async run(order: FileOrder, output: (text: string) => void): Promise<FileOutcome> {
    this.#output = output;
    const printed = this.#printed();
    const processorBefore = processorSecondsOf(this.#child.pid);
    let problem: string | undefined;
    const timer = setTimeout(() => {
      problem = `did not end within ${FILE_MS_MAX} ms`;
      this.#child.kill("SIGKILL");
    }, FILE_MS_MAX);
    const outcome = await this.#answer(order);
    clearTimeout(timer);
    this.isFit = outcome.failed === 0 && outcome.problem === undefined;
    const processorAfter = processorSecondsOf(this.#child.pid);
    if (processorBefore !== undefined && processorAfter !== undefined)
      outcome.processorSeconds = processorAfter - processorBefore;
    const left = await this.#endChildren();
    if (left.length > 0) outcome.problem ??= `left processes behind: ${left.join(", ")}`;
    if (problem !== undefined) outcome.problem = problem;
    // Waits for the rest of the output only now: after a crash, leftover processes may have held the pipes open until
    // they were ended.
    await Promise.race([printed, this.#closed]);
    return outcome;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await endAll(this.mark);
    await this.#closed;
  }

  /**
   * Ends the processes that a file has started, and returns the command lines of those that had to be killed. If
   * there are any, this worker ends first, because helper processes such as a bundler's exit when their parent has
   * ended.
   */
  async #endChildren(): Promise<string[]> {
    const left = await leftAfter(this.mark, this.#child.pid, CHILDREN_END_MS);
    if (left.length === 0) return [];
    this.isFit = false;
    if (this.#child.connected) this.#child.send(END, () => {});
    return endLeftoversThatStay(this.mark, left);
  }

  #answer(order: FileOrder): Promise<FileOutcome> {
    return new Promise((resolve) => {
      const failures: Failure[] = [];
      const take = (message: FromWorker) => {
        if ("failure" in message) failures.push(message.failure);
        else end(message.outcome);
      };
      const end = (outcome: FileOutcome) => {
        this.#child.off("message", take);
        resolve(outcome);
      };
      this.#child.on("message", take);
      void this.#exited.then(([code, signal]) => end(crashed(code ?? signal, failures)));
      // Ignores errors. The worker may have ended after the previous file, because of what that file left running.
      this.#child.send(order, () => {});
    });
  }

  #printed(): Promise<void> {
    return new Promise((resolve) => {
      let streams = 2;
      this.#onEndOfOutput = () => {
        streams -= 1;
        if (streams === 0) resolve();
      };
    });
  }

  #read(stream: Readable): void {
    let held = "";
    stream.setEncoding("utf8").on("data", (text: string) => {
      const [before = "", ...after] = (held + text).split(END_OF_OUTPUT);
      if (after.length > 0) {
        held = after.join("");
        this.#output(before);
        this.#onEndOfOutput();
        return;
      }
      // Holds back the beginning of an end marker, because the marker may arrive in two pieces.
      const cut = before.lastIndexOf(END_OF_OUTPUT.charAt(0));
      const ready = cut < 0 ? before : before.slice(0, cut);
      held = before.slice(ready.length);
      if (ready !== "") this.#output(ready);
    });
  }
}

/**
 * Returns the processor time of a process, in seconds. It includes all descendants that have ended and were reaped.
 * Returns undefined if /proc does not exist or the process has ended.
 */
function processorSecondsOf(pid: number | undefined): number | undefined {
  const stat = pid === undefined ? undefined : processStat(pid);
  return stat && stat.processorMsWithEnded / 1_000;
}

function crashed(code: unknown, failures: Failure[]): FileOutcome {
  const problem = `ended with code ${code} before its last test`;
  const failed = failures.length;
  return { passed: 0, failed, skipped: 0, failures, problem, hasEnded: false };
}
