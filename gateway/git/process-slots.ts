/** Lets only so many git processes run at a time, and so many of one repository; others wait a while in their order. */
import { availableParallelism } from "node:os";
import { ActorError } from "../../schemas/errors.ts";
import {
  GIT_PROCESSES_PER_CORE,
  GIT_PROCESSES_PER_REPO,
  GIT_QUEUE_MAX,
  GIT_QUEUE_MS,
  GIT_QUEUE_PER_REPO_MAX,
} from "../../schemas/git-limits.ts";

interface Waiting {
  repo: string;
  start(): void;
}

export interface SlotLimits {
  processes: number;
  perRepo: number;
  queue: number;
  queuePerRepo: number;
  queueMs: number;
}

const LIMITS: SlotLimits = {
  processes: GIT_PROCESSES_PER_CORE * availableParallelism(),
  perRepo: GIT_PROCESSES_PER_REPO,
  queue: GIT_QUEUE_MAX,
  queuePerRepo: GIT_QUEUE_PER_REPO_MAX,
  queueMs: GIT_QUEUE_MS,
};

export class ProcessSlots {
  readonly #limits: SlotLimits;
  readonly #running = new Map<string, number>();
  #waiting: Waiting[] = [];
  #total = 0;

  constructor(limits: Partial<SlotLimits> = {}) {
    this.#limits = { ...LIMITS, ...limits };
  }

  get running(): number {
    return this.#total;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Resolves with what gives the slot back. Rejects with ActorError `busy`, or the signal's reason. */
  async enter(repo: string, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (!this.#hasRoom(repo)) await this.#wait(repo, signal);
    else this.#count(repo, 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#count(repo, -1);
      this.#startNext();
    };
  }

  #wait(repo: string, signal: AbortSignal): Promise<void> {
    const ofRepo = this.#waiting.filter((other) => other.repo === repo).length;
    if (this.#waiting.length >= this.#limits.queue || ofRepo >= this.#limits.queuePerRepo) {
      return Promise.reject(busy());
    }
    return new Promise((resolve, reject) => {
      const leave = (reason: unknown) => {
        this.#waiting = this.#waiting.filter((other) => other !== waiting);
        settle();
        reject(reason);
      };
      const late = setTimeout(() => leave(busy()), this.#limits.queueMs);
      const abort = () => leave(signal.reason);
      signal.addEventListener("abort", abort, { once: true });
      const settle = () => {
        clearTimeout(late);
        signal.removeEventListener("abort", abort);
      };
      const waiting: Waiting = {
        repo,
        start: () => {
          settle();
          resolve();
        },
      };
      this.#waiting.push(waiting);
    });
  }

  #startNext(): void {
    for (;;) {
      const next = this.#waiting.find(({ repo }) => this.#hasRoom(repo));
      if (!next) return;
      this.#waiting = this.#waiting.filter((other) => other !== next);
      this.#count(next.repo, 1);
      next.start();
    }
  }

  #hasRoom(repo: string): boolean {
    const { processes, perRepo } = this.#limits;
    return this.#total < processes && (this.#running.get(repo) ?? 0) < perRepo;
  }

  #count(repo: string, change: 1 | -1): void {
    this.#total += change;
    const count = (this.#running.get(repo) ?? 0) + change;
    if (count === 0) this.#running.delete(repo);
    else this.#running.set(repo, count);
  }
}

function busy(): ActorError {
  const text = "Cannot run git: as many requests wait as the queue holds; try again";
  return new ActorError("busy", text, { retryAfterS: 2 });
}
