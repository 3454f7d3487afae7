/** Decides whether an agent's log is removed when the agent leaves memory, and until when the agent stays for that. */
import { AGENT_IDLE_MS } from "../../../schemas/apps/limits.ts";
import { CALL_DEADLINE_MS_MAX, CLOCK_SKEW_MS_MAX } from "../../../schemas/limits.ts";
import type { Clock } from "../../runtime/lib/clock.ts";
import type { AgentLog } from "./agent-log.ts";

interface LogEndParts {
  clock: Clock;
  /** Defaults to AGENT_IDLE_MS. */
  idleMs?: number | undefined;
}

export class LogEnd {
  readonly #parts: LogEndParts;
  readonly #log: AgentLog;
  /** Whether the agent stores nothing but replies. */
  #isEmpty = false;
  /** Time after which no copy runs of a message that the agent has received. */
  #repliesNeededUntil = 0;
  #left: Promise<void> | undefined;

  constructor(parts: LogEndParts, log: AgentLog) {
    this.#parts = parts;
    this.#log = log;
    // The log may have replies to messages that an earlier owner has received.
    if (!log.isBlank) this.received(parts.clock.now() + CALL_DEADLINE_MS_MAX);
  }

  /** Notes a message, whose reply may be in the log. */
  received(deadlineAt: number): void {
    const neededUntil = deadlineAt + CLOCK_SKEW_MS_MAX;
    this.#repliesNeededUntil = Math.max(this.#repliesNeededUntil, neededUntil);
  }

  /** Notes a stored record, or that the agent is open. */
  stored({ isEmpty = false }: { isEmpty?: boolean | undefined }): void {
    this.#isEmpty = isEmpty;
  }

  /** How long the agent stays without messages. An empty one stays as long as copies of its messages may come. */
  get idleMs(): number {
    const hasReplies = this.#isEmpty && !this.#log.isBlank;
    if (hasReplies && this.#needsReplies) return Number.POSITIVE_INFINITY;
    return this.#parts.idleMs ?? AGENT_IDLE_MS;
  }

  /**
   * Leaves the log. Resolves when the log is removed, or cannot be removed now. `last`: the number of the last record;
   * absent if work was given up, or if another owner may have the log. Never rejects. Only the first call counts.
   */
  leave(last?: number): Promise<void> {
    this.#left ??= this.#leave(last).catch(() => {
      // The log stays, and the account counts it, until the agent leaves memory the next time.
    });
    return this.#left;
  }

  get #needsReplies(): boolean {
    return this.#parts.clock.now() <= this.#repliesNeededUntil;
  }

  async #leave(last: number | undefined): Promise<void> {
    const isEmpty = this.#log.isBlank || (this.#isEmpty && !this.#needsReplies);
    if (isEmpty && last !== undefined) await this.#log.empty(last + 1);
    await this.#log.leave();
  }
}
