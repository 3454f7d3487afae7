/**
 * Hashes passwords on threads of low priority, so that sign-ins slow down no other request: a hash takes 19 MiB and
 * some 25 ms of a core. The threads start on demand and end when no sign-in needs them.
 */
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { ActorError } from "../../schemas/errors.ts";
import { moduleBeside } from "../../schemas/module-beside.ts";
import { HashTurns, type Lane } from "./hash-turns.ts";
import { widerNetworkOf } from "./network-of.ts";
import type { HashOutcome, HashWork } from "./password-thread.ts";

/**
 * Limits the hashes that are computed at the same time. Each takes memory and a core, and anybody can cause one. On two
 * cores a second thread brings no more sign-ins a second, because the rest of a sign-in needs the other core.
 */
export const PASSWORD_HASHES_AT_ONCE = Math.min(4, Math.max(1, availableParallelism() >> 1));
/**
 * Limits the hashes that wait for a thread. Sources that are only known by their network have places of their own, so
 * that strangers cannot take those of known people. One thread computes all of them in 3 s.
 */
export const PASSWORD_HASHES_WAITING_MAX = { known: 64, unknown: 32 } as const;
/**
 * Limits the hashes of one source that run or wait, so that one source cannot occupy the queue. All unknown people of
 * an IPv4 address, or of a /48 of IPv6, are one source.
 */
export const PASSWORD_HASHES_PER_SOURCE_MAX = 16;
/**
 * Limits the hashes of one IPv4 address or one /48, because a person may have many browsers. Half of the places of known
 * people stay for the others.
 */
export const PASSWORD_HASHES_PER_NETWORK_MAX = 32;
/** Limits how long a hash waits for a thread. Only a machine with no idle processor time reaches it. */
const PASSWORD_WAIT_MS_MAX = 10_000;
/** A thread ends after this time without work. It occupies 25 MB, and its start takes 30 ms. */
const PASSWORD_THREAD_IDLE_MS = 5_000;
/** Value of Retry-After when the queue is full: the time in which most of the queue is computed. */
const RETRY_AFTER_S = 2;
/** Limits how often a hash is computed if its thread ends. */
const TRIES_MAX = 2;
/** The `threadId` of a thread that has ended. */
const ENDED = -1;
/** Limits the JavaScript heap of a thread. The memory of a hash is outside of it. */
const HEAP_MIB_MAX = 32;

/** Where a password comes from. */
export interface PasswordSource {
  /** `network …`, or a known browser or session of the person: `browser …`, `session …`. */
  from: string;
  /** The network of the request, from networkOf(). */
  network: string;
}

interface PasswordHasherOptions {
  waitMsMax?: number;
  idleMs?: number;
  startThread?: () => Worker;
}

interface IdleThread {
  worker: Worker;
  /** Stops the wait for the end of the idle time. */
  take(): void;
}

export class PasswordHasher {
  readonly #waitMsMax: number;
  readonly #idleMs: number;
  readonly #startThread: () => Worker;
  readonly #turns = new HashTurns(PASSWORD_HASHES_AT_ONCE);
  /** The number of hashes of each source and network that run or wait. */
  readonly #counts = new Map<string, number>();
  readonly #idle: IdleThread[] = [];

  constructor(options: PasswordHasherOptions = {}) {
    this.#waitMsMax = options.waitMsMax ?? PASSWORD_WAIT_MS_MAX;
    this.#idleMs = options.idleMs ?? PASSWORD_THREAD_IDLE_MS;
    this.#startThread = options.startThread ?? startPasswordThread;
  }

  /**
   * Computes a hash. Throws `queue_full` if the source or its network has as many hashes as one may have, and `busy`
   * if its part of the queue is full or the hash waited too long (see `isUnchecked`).
   */
  async hash(work: HashWork, { from: source, network }: PasswordSource): Promise<Uint8Array> {
    const lane: Lane = source.startsWith("network ") ? "unknown" : "known";
    const wider = widerNetworkOf(network);
    const from = lane === "known" ? source : `network ${wider}`;
    const counted = [`from ${from}`, `network ${wider}`] as const;
    const [ofSource, ofNetwork] = [this.#countOf(counted[0]), this.#countOf(counted[1])];
    const isSourceFull = ofSource >= PASSWORD_HASHES_PER_SOURCE_MAX;
    if (isSourceFull || ofNetwork >= PASSWORD_HASHES_PER_NETWORK_MAX) {
      const text = `Cannot check password: ${ofNetwork} passwords from the same place are checked now`;
      throw new ActorError("queue_full", text, { retryAfterS: RETRY_AFTER_S });
    }
    if (this.#turns.waiting(lane) >= PASSWORD_HASHES_WAITING_MAX[lane]) throw busy();
    for (const name of counted) this.#count(name, 1);
    try {
      return await this.#inTurn(work, { lane, from });
    } finally {
      for (const name of counted) this.#count(name, -1);
    }
  }

  #countOf(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  #count(name: string, by: 1 | -1): void {
    const count = this.#countOf(name) + by;
    if (count > 0) this.#counts.set(name, count);
    else this.#counts.delete(name);
  }

  async #inTurn(work: HashWork, waiting: { lane: Lane; from: string }): Promise<Uint8Array> {
    const signal = AbortSignal.timeout(this.#waitMsMax);
    const giveBack = await this.#turns.take(waiting, signal).catch(() => {
      throw busy();
    });
    try {
      return await this.#compute(work);
    } finally {
      giveBack();
    }
  }

  /** Computes a hash. If its thread ends meanwhile, another thread computes the hash again. */
  async #compute(work: HashWork): Promise<Uint8Array> {
    for (let tries = 1; tries <= TRIES_MAX; tries++) {
      const worker = this.#takeThread();
      const outcome = await outcomeOn(worker, work);
      if (outcome === undefined) continue;
      this.#keep(worker);
      if (outcome.kind === "hash") return outcome.hash;
      throw new Error(`Cannot check password: ${outcome.reason}`);
    }
    throw new Error(`Cannot check password: ${TRIES_MAX} threads ended before they had a result`);
  }

  #takeThread(): Worker {
    const idle = this.#idle.pop();
    if (!idle) return this.#startThread();
    idle.take();
    idle.worker.ref();
    return idle.worker;
  }

  /** Keeps a thread for the next hash, and ends it if none comes. An idle thread does not keep the process alive. */
  #keep(worker: Worker): void {
    // The thread has ended right after its result, and reports no second end.
    if (worker.threadId === ENDED) return;
    const end = () => {
      idle.take();
      this.#idle.splice(this.#idle.indexOf(idle), 1);
      void worker.terminate();
    };
    const timer = setTimeout(end, this.#idleMs).unref();
    const take = () => {
      clearTimeout(timer);
      worker.off("exit", end);
    };
    const idle: IdleThread = { worker, take };
    worker.once("exit", end);
    worker.unref();
    this.#idle.push(idle);
  }
}

/** Resolves to the outcome of the thread; undefined if the thread ends before. */
async function outcomeOn(worker: Worker, work: HashWork): Promise<HashOutcome | undefined> {
  const { promise, resolve } = Promise.withResolvers<HashOutcome | undefined>();
  const onExit = () => resolve(undefined);
  worker.once("message", resolve).once("exit", onExit);
  worker.postMessage(work);
  try {
    return await promise;
  } finally {
    worker.off("message", resolve).off("exit", onExit);
  }
}

/** Starts a thread that computes hashes. */
export function startPasswordThread(): Worker {
  const worker = new Worker(moduleBeside(import.meta.url, "./password-thread"), {
    name: "password",
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB_MAX, maxYoungGenerationSizeMb: 2 },
    // The thread needs no environment of this process.
    env: {},
    execArgv: [],
  });
  // A thread that fails also exits, and its hash is then computed again.
  worker.on("error", () => {});
  return worker;
}

/** True if the hasher refused a password without computing its hash, so that nobody knows whether it is right. */
export const isUnchecked = (error: unknown): boolean =>
  error instanceof ActorError && (error.code === "queue_full" || error.code === "busy");

const busy = () =>
  new ActorError("busy", "Cannot check password: too many are checked now", {
    retryAfterS: RETRY_AFTER_S,
  });
