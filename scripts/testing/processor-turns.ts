/** Gives processes the processor in turns, as a machine does that has far more work than processors. */
import { setTimeout as wait } from "node:timers/promises";

/** Each process runs for `runMs` of every `everyMs`, one after the other, until it is disposed of. */
export class ProcessorTurns implements AsyncDisposable {
  readonly #pids: readonly number[];
  readonly #turns: Promise<void>[];
  #isOver = false;

  constructor(pids: readonly number[], { runMs, everyMs }: { runMs: number; everyMs: number }) {
    this.#pids = pids;
    for (const pid of pids) process.kill(pid, "SIGSTOP");
    this.#turns = pids.map(async (pid, index) => {
      await wait((everyMs * index) / pids.length);
      while (!this.#isOver) {
        process.kill(pid, "SIGCONT");
        await wait(runMs);
        process.kill(pid, "SIGSTOP");
        await wait(everyMs - runMs);
      }
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#turns);
    for (const pid of this.#pids) process.kill(pid, "SIGCONT");
  }
}
