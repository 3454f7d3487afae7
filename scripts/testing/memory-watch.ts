/** Watches how much memory processes take while a test runs, and keeps the most that was seen. Linux only. */
import { readFileSync } from "node:fs";

const LOOK_MS = 100;

export class MemoryWatch implements Disposable {
  readonly #pids: readonly number[];
  readonly #timer: NodeJS.Timeout;
  #peak = 0;

  /** Resident bytes of each of these processes alone. */
  constructor(pids: readonly number[]) {
    this.#pids = pids;
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
    this.#look();
  }

  /** The process with the highest memory. */
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

/** 0 of a process that has ended. */
export function residentBytes(pid: number): number {
  try {
    const [, kilobytes] =
      /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return Number(kilobytes ?? 0) * 1024;
  } catch {
    return 0;
  }
}
