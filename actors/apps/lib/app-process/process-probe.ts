/** Finds out whether this host can start processes of apps, by starting one that does nothing: for /healthz. */
import type { Logger } from "pino";
import { AppConfig } from "../../../../schemas/apps/app-config.ts";
import { appKey } from "../../../../schemas/apps/app-names.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import type { AppProcess } from "./app-process.ts";
import type { ProcessStart } from "./process-program.ts";

/**
 * While /healthz is asked, a process that does nothing is started this often, at some 100 ms of a processor: 0.3 % of
 * one.
 */
const APP_PROBE_MS = 30_000;
/** The same while none starts, so that a host is well again soon after. */
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
    // A host that has just started has a folder that it has just made.
    this.#endedAt = parts.clock.monotonic();
  }

  /** Returns what the last probe found missing, and begins the next probe when it is due. */
  missing(): readonly string[] {
    const pauseMs = this.#hasFailed ? APP_PROBE_FAILED_MS : APP_PROBE_MS;
    const isDue = this.#parts.clock.monotonic() - this.#endedAt >= pauseMs;
    if (isDue && !this.#isStopped) this.#underWay ??= this.#run();
    return this.#hasFailed ? ["a process for apps"] : [];
  }

  /** A process of an app could not start here, by no fault of the app: the next probe is due soon. */
  noteFailure(): void {
    this.#hasFailed = true;
  }

  /** Resolves when none is under way, and none begins any more. */
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
      logger.error({ err: error }, "processes of apps do not start");
    } finally {
      this.#endedAt = clock.monotonic();
      this.#underWay = undefined;
    }
  }
}
