/**
 * Runs DevTools sessions in a browser worker, up to the number that the machine's memory allows. No account can take
 * all of them.
 */
import { totalmem } from "node:os";
import { ActorError } from "../../../../schemas/errors.ts";
import {
  DEVTOOLS_MEMORY_BYTES_MAX,
  DEVTOOLS_SESSIONS_KEPT_FREE,
  DEVTOOLS_SESSIONS_PER_WORKER_MAX,
} from "../../../../schemas/rendering/devtools-limits.ts";
import {
  DEVTOOLS_OPEN,
  DEVTOOLS_OPEN_SHARED,
  OpenSession,
} from "../../../../schemas/rendering/devtools-worker.ts";
import { answerOn } from "../../../runtime/bus/answer.ts";
import { SharedSlots } from "../../../runtime/lib/shared-slots.ts";
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
  readonly #sessions = new Set<DevtoolsSession>();
  /** The accounts of the sessions that run or start. */
  readonly #slots: SharedSlots<string>;
  /** Functions that unsubscribe from requests for sessions, by subject. */
  readonly #subscribed = new Map<string, () => void>();
  #isStopping = false;

  constructor(parts: WorkerParts) {
    this.#parts = parts;
    const max = parts.sessionsMax ?? sessionsOf(memoryOfMachine());
    this.#slots = new SharedSlots({
      max,
      perOwner: Math.max(1, max - DEVTOOLS_SESSIONS_KEPT_FREE),
    });
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
    this.#subscribe(DEVTOOLS_OPEN, !this.#isStopping && this.#slots.isOpenToAll);
    this.#subscribe(DEVTOOLS_OPEN_SHARED, !this.#isStopping && !this.#slots.isFull);
  }

  #subscribe(subject: string, hasRoom: boolean): void {
    const leave = this.#subscribed.get(subject);
    if (hasRoom === (leave !== undefined)) return;
    if (leave) {
      leave();
      this.#subscribed.delete(subject);
      return;
    }
    const { bus, logger } = this.#parts;
    const subscription = answerOn(
      { bus, logger },
      subject,
      (payload) => answered(OpenSession, payload, (of) => this.#open(of)),
      { queue: "devtools" },
    );
    this.#subscribed.set(subject, subscription);
  }

  async #open(of: OpenSession): Promise<object> {
    const release = this.#isStopping ? undefined : this.#slots.tryTake(of.account);
    if (!release) throw this.#isStopping || this.#slots.isFull ? full() : keptFree();
    this.#listen();
    const leave = () => {
      release();
      this.#listen();
    };
    try {
      const limits = { ...SESSION_LIMITS, ...this.#parts.limits };
      const session = await DevtoolsSession.start({ ...this.#parts, limits }, of);
      this.#sessions.add(session);
      void session.ended.then(() => {
        this.#sessions.delete(session);
        leave();
      });
      if (this.#isStopping) void session.end("WorkerLost");
      return {};
    } catch (err) {
      leave();
      this.#parts.logger.error({ err, id: of.id }, "devtools session not started");
      throw new ActorError("unavailable", "Cannot begin session: no browser could be started");
    }
  }
}

const full = () => new ActorError("busy", "Cannot begin session: all browser workers are full");

const keptFree = () =>
  new ActorError(
    "busy",
    "Cannot begin session: the last place of a browser worker is for another account",
  );

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
