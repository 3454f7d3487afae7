/**
 * Finds hosts that have lost their connection before their lease expires, so that other hosts take their actors
 * without delay. Each host answers under its name before its lease is written, and asks the next host. If nobody
 * listens under that name, the host reads the lease of the next host and asks once more. If nobody listens again, it
 * ends the lease that it has read, provided that the server through which the lease was renewed has no such listener.
 * That server has then closed the connection that renewed this lease. So the process has ended, or it knows that it
 * is disconnected and no longer trusts its lease. A host that listens and does not answer may be suspended, so its
 * lease must expire.
 */
import type { Logger } from "pino";
import { presenceSubject } from "../../../schemas/subjects.ts";
import { answerOn } from "../bus/answer.ts";
import { ask } from "../bus/ask.ts";
import { WriteRefused } from "../bus/atomic-batch.ts";
import type { Bus } from "../bus/bus.ts";
import { isSubscribedAt } from "../bus/is-subscribed-at.ts";
import type { Clock } from "../lib/clock.ts";
import type { Members } from "./members.ts";

/** How often a host asks the next one whether it is there. */
const PRESENCE_MS = 250;
/** The shortest pause, so that a bus that answers slowly is not asked without end. */
const PRESENCE_MS_MIN = 10;
/**
 * Number of requests in a row without a listener after which a host counts as gone. A single one may come from a
 * client that is reconnecting, which takes a tenth of a second.
 */
const PRESENCE_MISSES = 2;
/**
 * Timeout of an answer. A dying host takes part of this time to lose its connection, and a suspended host does not
 * answer. So a timeout proves nothing yet.
 */
const PRESENCE_ANSWER_MS = 250;

export interface HostPresenceParts {
  bus: Bus;
  clock: Clock;
  logger: Logger;
  members: Pick<Members, "after">;
  /** Reads the lease of a host from the leader. */
  lease(host: string): Promise<{ sequence: number; server: string | undefined } | undefined>;
  /** Ends a host's lease; rejects with WriteRefused if the host has renewed it after this sequence. */
  end(host: string, sequence: number): Promise<void>;
}

export class HostPresence {
  readonly #parts: HostPresenceParts;
  readonly #stopped = new AbortController();
  #answering: { id: string; stop(): void } | undefined;
  /** How many times in a row nobody listened under the name `host`. */
  #missed = { host: "", times: 0 };

  constructor(parts: HostPresenceParts) {
    this.#parts = parts;
  }

  /** Answers under this name, and no longer under the former one. */
  answerAs(id: string): void {
    if (this.#answering?.id === id) return;
    this.#answering?.stop();
    this.#answering = { id, stop: answerOn(this.#parts, presenceSubject(id), () => "") };
  }

  /** Asks the next host at a fixed interval until `stop`. */
  async watch(): Promise<void> {
    const { clock, logger } = this.#parts;
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      const startedAt = clock.monotonic();
      try {
        await this.#askNext();
      } catch (error) {
        logger.warn({ err: error }, "lease of a dead host not ended, will try again");
      }
      // A request that is on its way while its host dies takes as long as the pause, so the pause counts from its start.
      const tookMs = clock.monotonic() - startedAt;
      await clock.wait(Math.max(PRESENCE_MS_MIN, PRESENCE_MS - tookMs), signal);
    }
  }

  stop(): void {
    this.#stopped.abort();
    this.#answering?.stop();
  }

  async #askNext(): Promise<void> {
    const { bus, members, lease, end, logger } = this.#parts;
    const [host] = members.after(this.#answering?.id ?? "");
    if (host === undefined) return;
    const before = this.#missed.host === host ? this.#missed.times : 0;
    const renewed = before > 0 ? await lease(host) : undefined;
    const asked = await ask(bus, presenceSubject(host), "", { timeoutMs: PRESENCE_ANSWER_MS });
    this.#missed = { host, times: asked === "nobody" ? before + 1 : 0 };
    if (this.#missed.times < PRESENCE_MISSES || this.#stopped.signal.aborted) return;
    if (!renewed || !(await this.#hasLostConnection(host, renewed.server))) return;
    try {
      await end(host, renewed.sequence);
      logger.warn({ host }, "host has lost its connection, lease ended");
    } catch (error) {
      if (!(error instanceof WriteRefused && error.conflict)) throw error;
      // The host is back, or another host has ended its lease.
    }
  }
  /** Returns whether the server through which the lease was renewed has surely closed the host's connection. */
  async #hasLostConnection(host: string, server: string | undefined): Promise<boolean> {
    const { bus } = this.#parts;
    if (server === undefined) return false;
    // The own server has just reported that nobody listens at any server. For another server this proves nothing,
    // because the servers may have lost each other. So that server itself must report it.
    if (server === bus.server) return true;
    const options = { timeoutMs: PRESENCE_ANSWER_MS };
    return (await isSubscribedAt(bus, server, presenceSubject(host), options)) === false;
  }
}
