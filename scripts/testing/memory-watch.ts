/** Samples the memory of processes while a test runs, and keeps the highest value. Linux only. */
import { readFileSync } from "node:fs";

const LOOK_MS = 100;

export class MemoryWatch implements Disposable {
  readonly #pids: readonly number[];
  readonly #timer: NodeJS.Timeout;
  #peak = 0;

  /** Starts sampling the resident memory of each of these processes, without their children. */
  constructor(pids: readonly number[]) {
    this.#pids = pids;
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
    this.#look();
  }

  /** The highest memory of a single process, in bytes. */
  get peakBytes(): number {
    return this.#peak;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    for (const pid of this.#pids) this.#peak = Math.max(this.#peak, residentBytes(pid));
  }
}

/** Returns the resident memory of a process in bytes. Returns 0 if the process has ended. */
export function residentBytes(pid: number): number {
  try {
    const [, kilobytes] =
      /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return Number(kilobytes ?? 0) * 1024;
  } catch {
    return 0;
  }
}
