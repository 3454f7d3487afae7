/** Checks for /healthz whether this host can start app processes. It starts a process that does nothing. */
import type { Logger } from "pino";
import { AppConfig } from "../../../../schemas/apps/app-config.ts";
import { appKey } from "../../../../schemas/apps/app-names.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import type { AppProcess } from "./app-process.ts";
import type { ProcessStart } from "./process-program.ts";

/**
 * Interval between two test processes while clients request /healthz. A test costs about 100 ms of processor time, so
 * 0.3 % of a core.
 */
const APP_PROBE_MS = 30_000;
/** Interval between two tests while no process starts, so that a recovered host soon counts as healthy again. */
const APP_PROBE_FAILED_MS = 2_000;

interface ProcessProbeParts {
  clock: Clock;
  logger: Logger;
  start(key: string, start: ProcessStart): Promise<AppProcess>;
}

/** No account has this id. */
const KEY = appKey("0".repeat(32), "probe");
const START: ProcessStart = {
  serving: {
    ...{ version: 1, revision: 1, bundle: "", secrets: [] },
    config: AppConfig.parse({ name: "probe", compatibility_date: "2026-11-20" }),
  },
  bundle: Buffer.from("export default {};"),
  values: {},
};

export class ProcessProbe {
  readonly #parts: ProcessProbeParts;
  #endedAt: number;
  #hasFailed = false;
  #underWay: Promise<void> | undefined;
  #isStopped = false;

  constructor(parts: ProcessProbeParts) {
    this.#parts = parts;
    // A host that has just started needs no test: it has just created its folder.
    this.#endedAt = parts.clock.monotonic();
  }

  /** Returns the problems that the last test found, and begins the next test if it is due. */
  missing(): readonly string[] {
    const pauseMs = this.#hasFailed ? APP_PROBE_FAILED_MS : APP_PROBE_MS;
    const isDue = this.#parts.clock.monotonic() - this.#endedAt >= pauseMs;
    if (isDue && !this.#isStopped) this.#underWay ??= this.#run();
    return this.#hasFailed ? ["a process for apps"] : [];
  }

  /**
   * Makes the next test due soon, because an app process could not start here for a reason that is not its app's
   * fault.
   */
  noteFailure(): void {
    this.#hasFailed = true;
  }

  /** Resolves when no test is running. No test begins after that. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#underWay;
  }

  async #run(): Promise<void> {
    const { clock, logger, start } = this.#parts;
    try {
      const process = await start(KEY, START);
      process.kill("it was started as a probe");
      await process.ended;
      this.#hasFailed = false;
    } catch (error) {
      this.#hasFailed = true;
      logger.error({ err: error }, "app processes cannot start");
    } finally {
      this.#endedAt = clock.monotonic();
      this.#underWay = undefined;
    }
  }
}
