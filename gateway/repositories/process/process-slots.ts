/**
 * Limits the git processes of a gateway, and those of each repository and account. Further requests wait in a queue,
 * in which an account past its share is served last.
 */
import { availableParallelism } from "node:os";
import { ActorError } from "../../../schemas/errors.ts";

/**
 * Git processes that run at the same time, for each processor core. They wait for disk and network as often as they
 * compute.
 */
export const GIT_PROCESSES_PER_CORE = 4;
/** Git processes of one repository at the same time. The limit keeps one repository from using all slots. */
export const GIT_PROCESSES_PER_REPO = 6;
/** One account's share of the processes while other accounts wait, and its share of the queue at any time. */
const GIT_ACCOUNT_SHARE = 0.5;
/**
 * Share of the slots that stays free for other accounts. An account that has its own share cannot take them. Without
 * them, one account with slow clones or pushes in two repositories could hold all slots for GIT_PROCESS_MS_MAX.
 */
export const GIT_FREE_SHARE = 0.25;
/**
 * Limits for the requests that wait for a process, per gateway and per repository. After GIT_QUEUE_MS a request gets
 * a 503, and the client tries again.
 */
const GIT_QUEUE_MAX = 128;
const GIT_QUEUE_PER_REPO_MAX = 32;
export const GIT_QUEUE_MS = 15_000;

/** The repository and account that a process works for. */
interface SlotOwner {
  id: string;
  accountId: string;
}

interface Waiting {
  repo: SlotOwner;
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
  readonly #ofAccounts = new Map<string, number>();
  #total = 0;

  constructor(limits: Partial<SlotLimits> = {}) {
    this.#limits = { ...LIMITS, ...limits };
  }

  /** Processes that may run at the same time. */
  get max(): number {
    return this.#limits.processes;
  }

  get running(): number {
    return this.#total;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * Waits for a slot. Resolves with a function that releases the slot. Rejects with ActorError `busy`, or the
   * signal's reason.
   */
  async enter(repo: SlotOwner, signal: AbortSignal): Promise<() => void> {
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

  #wait(repo: SlotOwner, signal: AbortSignal): Promise<void> {
    const { queue, queuePerRepo } = this.#limits;
    const ofAccount = this.#waiting.filter((other) => other.repo.accountId === repo.accountId);
    const ofRepo = ofAccount.filter((other) => other.repo.id === repo.id);
    const isFull =
      this.#waiting.length >= queue ||
      ofAccount.length >= Math.ceil(queue * GIT_ACCOUNT_SHARE) ||
      ofRepo.length >= queuePerRepo;
    if (isFull) return Promise.reject(busy());
    return new Promise((resolve, reject) => {
      const leave = (reason: unknown) => {
        this.#waiting = this.#waiting.filter((other) => other !== waiting);
        settle();
        reject(reason);
      };
      const late = setTimeout(
        () => leave(busy("no process was free in time for this account")),
        this.#limits.queueMs,
      );
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
      const ready = this.#waiting.filter(({ repo }) => this.#hasRoom(repo));
      // An account past its share is served only if no other account has a request that can start.
      const next = ready.find(({ repo }) => !this.#hasShare(repo)) ?? ready[0];
      if (!next) return;
      this.#waiting = this.#waiting.filter((other) => other !== next);
      this.#count(next.repo, 1);
      next.start();
    }
  }

  #hasRoom(repo: SlotOwner): boolean {
    const { processes, perRepo } = this.#limits;
    const keptFree = this.#hasShare(repo) ? Math.max(1, Math.floor(processes * GIT_FREE_SHARE)) : 0;
    return this.#total + keptFree < processes && (this.#running.get(repo.id) ?? 0) < perRepo;
  }

  #hasShare({ accountId }: SlotOwner): boolean {
    const running = this.#ofAccounts.get(accountId) ?? 0;
    return running >= Math.ceil(this.#limits.processes * GIT_ACCOUNT_SHARE);
  }

  #count({ id, accountId }: SlotOwner, change: 1 | -1): void {
    this.#total += change;
    add(this.#running, id, change);
    add(this.#ofAccounts, accountId, change);
  }
}

function add(counts: Map<string, number>, key: string, change: 1 | -1): void {
  const count = (counts.get(key) ?? 0) + change;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}

function busy(reason = "the queue is full"): ActorError {
  return new ActorError("busy", `Cannot run git: ${reason}; try again`, { retryAfterS: 2 });
}
