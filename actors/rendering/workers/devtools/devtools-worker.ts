/** Runs DevTools sessions in a browser worker, up to the number that the machine's memory allows. */
import { totalmem } from "node:os";
import { ActorError } from "../../../../schemas/errors.ts";
import {
  DEVTOOLS_MEMORY_BYTES_MAX,
  DEVTOOLS_SESSIONS_PER_WORKER_MAX,
} from "../../../../schemas/rendering/devtools-limits.ts";
import { DEVTOOLS_OPEN, OpenSession } from "../../../../schemas/rendering/devtools-worker.ts";
import { answerOn } from "../../../runtime/bus/answer.ts";
import { answered } from "./answered.ts";
import { DevtoolsSession, type SessionParts } from "./devtools-session.ts";
import { SESSION_LIMITS, type SessionLimits } from "./session-limits.ts";

interface WorkerParts extends Omit<SessionParts, "limits"> {
  limits?: Partial<SessionLimits>;
  /** Maximum sessions. The default is `sessionsOf` with the memory of this machine. */
  sessionsMax?: number;
}

export class DevtoolsWorker {
  readonly #parts: WorkerParts;
  readonly #sessionsMax: number;
  readonly #sessions = new Set<DevtoolsSession>();
  #starting = 0;
  /** Unsubscribes from requests for sessions. Set while the worker has room for one more session. */
  #leave: (() => void) | undefined;
  #isStopping = false;

  constructor(parts: WorkerParts) {
    this.#parts = parts;
    this.#sessionsMax = parts.sessionsMax ?? sessionsOf(memoryOfMachine());
    this.#listen();
  }

  /** Running sessions, for operators. */
  get count(): number {
    return this.#sessions.size;
  }

  /** Process groups of the sessions' browsers, for operators and tests. */
  get pids(): number[] {
    return [...this.#sessions].flatMap(({ pid }) => pid ?? []);
  }

  /** Ends every session, and accepts no more. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#listen();
    await Promise.all([...this.#sessions].map((session) => session.end("WorkerLost")));
  }

  /** Subscribes to requests for new sessions only while there is room, so that requests go to workers with room. */
  #listen(): void {
    const hasRoom = !this.#isStopping && this.#used < this.#sessionsMax;
    if (hasRoom === (this.#leave !== undefined)) return;
    if (!hasRoom) {
      this.#leave?.();
      this.#leave = undefined;
      return;
    }
    const { bus, logger } = this.#parts;
    this.#leave = answerOn(
      { bus, logger },
      DEVTOOLS_OPEN,
      (payload) => answered(OpenSession, payload, (of) => this.#open(of)),
      { queue: "devtools" },
    );
  }

  get #used(): number {
    return this.#sessions.size + this.#starting;
  }

  async #open(of: OpenSession): Promise<object> {
    // Another session may have taken the last place while this request was in flight.
    if (this.#isStopping || this.#used >= this.#sessionsMax) throw full();
    this.#starting += 1;
    this.#listen();
    try {
      const limits = { ...SESSION_LIMITS, ...this.#parts.limits };
      const session = await DevtoolsSession.start({ ...this.#parts, limits }, of);
      this.#sessions.add(session);
      void session.ended.then(() => {
        this.#sessions.delete(session);
        this.#listen();
      });
      if (this.#isStopping) void session.end("WorkerLost");
      return {};
    } catch (err) {
      this.#parts.logger.error({ err, id: of.id }, "devtools session not started");
      throw new ActorError("unavailable", "Cannot begin session: no browser could be started");
    } finally {
      this.#starting -= 1;
      this.#listen();
    }
  }
}

const full = () => new ActorError("busy", "Cannot begin session: all browser workers are full");

/**
 * Returns how many sessions a machine may run. Even at their memory limit they use at most half of the machine's
 * memory. The result is at least one.
 */
export function sessionsOf(memoryBytes: number): number {
  const fitting = Math.floor(memoryBytes / 2 / DEVTOOLS_MEMORY_BYTES_MAX);
  return Math.min(DEVTOOLS_SESSIONS_PER_WORKER_MAX, Math.max(1, fitting));
}

/** Returns the memory of the machine; in a container, the limit of the container. */
function memoryOfMachine(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(totalmem(), constrained) : totalmem();
}
