/** Watches one process: whether it answers, and how much memory and processor time it uses. */
import { readFile } from "node:fs/promises";
import { AGENT_CPU_MS_MAX, APP_RESIDENT_MB_MAX } from "../../../../schemas/apps/limits.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";

/**
 * Interval of the pings to a process. A process that uses AGENT_CPU_MS_MAX of processor time between two answers is
 * ended.
 */
const APP_PING_MS = 2_000;
/** A process that does not answer for this long is ended. A machine that swaps can be silent for less. */
const APP_SILENCE_MS_MAX = 30_000;
/** Interval of the checks of a process's memory and processor time. */
const APP_WATCH_MS = 500;

interface WatchedProcess {
  pid: number;
  ping(number: number): void;
  /** True while the process has no unfinished request. */
  readonly isQuiet: boolean;
  /** Called when the process exceeds a limit and is to be ended. */
  exceed(reason: string): void;
}

/** Ticks of the kernel's clock in /proc: the same on every Linux that Node runs on. */
const TICK_MS = 10;
const MB = 1024 * 1024;

interface Usage {
  cpuMs: number;
  residentBytes: number;
}

export class ProcessWatch {
  readonly #process: WatchedProcess;
  readonly #clock: Clock;
  readonly #ended = new AbortController();
  #pings = 0;
  #answered = 0;
  #pingedAt = 0;
  #cpuAtPing = 0;
  /** When the process last had work, or was last checked for processor time without work. */
  #quietSince = { at: 0, cpuMs: 0 };

  constructor(process: WatchedProcess, clock: Clock) {
    this.#process = process;
    this.#clock = clock;
    void this.#watch();
  }

  pong(number: number): void {
    this.#answered = Math.max(this.#answered, number);
  }

  end(): void {
    this.#ended.abort();
  }

  async #watch(): Promise<void> {
    const { signal } = this.#ended;
    while (!signal.aborted) {
      const usage = await usageOf(this.#process.pid);
      if (signal.aborted) return;
      const reason = this.#judge(usage);
      if (reason !== undefined) return this.#process.exceed(reason);
      await this.#clock.wait(APP_WATCH_MS, signal);
    }
  }

  #judge({ cpuMs, residentBytes }: Usage): string | undefined {
    const now = this.#clock.monotonic();
    if (residentBytes > APP_RESIDENT_MB_MAX * MB) {
      return `it takes more than ${APP_RESIDENT_MB_MAX} MB of memory`;
    }
    const answers = this.#answered === this.#pings;
    if (!answers && cpuMs - this.#cpuAtPing >= AGENT_CPU_MS_MAX) {
      return `code held it for ${AGENT_CPU_MS_MAX} ms without a pause`;
    }
    if (!answers && now - this.#pingedAt >= APP_SILENCE_MS_MAX) {
      return `it has not answered for ${APP_SILENCE_MS_MAX} ms`;
    }
    const isWindowOver = now - this.#quietSince.at >= 2 * AGENT_CPU_MS_MAX;
    if (!this.#process.isQuiet || isWindowOver) this.#quietSince = { at: now, cpuMs };
    if (cpuMs - this.#quietSince.cpuMs >= AGENT_CPU_MS_MAX) {
      return `it used ${AGENT_CPU_MS_MAX} ms of a processor with nothing to do`;
    }
    if (answers && now - this.#pingedAt >= APP_PING_MS) {
      this.#pings += 1;
      this.#pingedAt = now;
      this.#cpuAtPing = cpuMs;
      this.#process.ping(this.#pings);
    }
    return undefined;
  }
}

/** Without /proc, only silence ends a process. */
async function usageOf(pid: number): Promise<Usage> {
  try {
    const [stat = "", status = ""] = await Promise.all(
      ["stat", "status"].map((name) => readFile(`/proc/${pid}/${name}`, "utf8")),
    );
    // The name of the program, in parentheses, may have spaces.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const ticks = Number(fields[11]) + Number(fields[12]);
    const kilobytes = Number(/^VmRSS:\s*(\d+)/m.exec(status)?.[1]);
    return { cpuMs: ticks * TICK_MS, residentBytes: kilobytes * 1024 };
  } catch {
    return { cpuMs: 0, residentBytes: 0 };
  }
}
