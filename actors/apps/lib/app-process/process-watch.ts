/** Watches one process: whether it answers pings, and how much memory and processor time it uses. */
import { readFile, writeFile } from "node:fs/promises";
import { AGENT_CPU_MS_MAX, APP_RESIDENT_MB_MAX } from "../../../../schemas/apps/limits.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";

/**
 * Interval of the pings to a process. A process that uses AGENT_CPU_MS_MAX of processor time without answering a ping
 * is killed.
 */
const APP_PING_MS = 2_000;
/**
 * A process that does not answer for this long is killed. On a machine that swaps, a process may be silent for a
 * shorter time.
 */
const APP_SILENCE_MS_MAX = 30_000;
/** Interval of the checks of a process's memory and processor time. */
const APP_WATCH_MS = 500;

/** The largest value of `oom_score_adj`: the kernel ends this process before others. */
const OOM_FIRST = "1000";

interface WatchedProcess {
  pid: number;
  ping(number: number): void;
  /** True while the process has no unfinished request. */
  readonly isQuiet: boolean;
  /** Called when the process exceeds a limit, so that the caller ends it. */
  exceed(reason: string): void;
}

/** Duration of a tick, the unit of processor times in /proc. It is the same on every Linux that Node supports. */
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
  /** Time and processor usage when the process last had work. Both are also reset at intervals. */
  #quietSince = { at: 0, cpuMs: 0 };

  constructor(process: WatchedProcess, clock: Clock) {
    this.#process = process;
    this.#clock = clock;
    // If the machine has no memory left, the kernel ends an app process and not the host.
    writeFile(`/proc/${process.pid}/oom_score_adj`, OOM_FIRST).catch(() => {});
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

/** Returns the usage of a process. Without /proc it is zero, so only missing answers to pings end a process. */
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
