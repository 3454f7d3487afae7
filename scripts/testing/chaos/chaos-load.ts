/** The interface of one load of a chaos run, and the counters that all loads use. */
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import type { ChaosAnswer } from "./chaos-client.ts";

export interface ChaosLoad {
  readonly name: string;
  readonly tally: Tally;
  /** Prepares what the load needs, then starts its clients. Resolves when the clients have started. */
  start(): Promise<void>;
  /** Stops the clients. Resolves when each client has the response to its last request. */
  stop(): Promise<void>;
  /** Compares the acknowledged changes with the stored data. Call it after stop(), when all faults have ended. */
  findProblems(): Promise<string[]>;
}

/** Counts the outcomes of requests. */
export class Tally {
  acknowledged = 0;
  /** Requests with an unknown outcome: without a response, or with a status of 500 or above. */
  unknown = 0;
  /** Unexpected refusals, by status and text. */
  readonly refused = new Map<string, number>();
  readonly #times: number[] = [];
  readonly #successes: Map<string, number>;

  /** `kinds` are the kinds of clients of the load. Each kind must have at least one success. */
  constructor(kinds: readonly string[] = []) {
    this.#successes = new Map(kinds.map((kind) => [kind, 0]));
  }

  /** Makes one request and counts its outcome. Returns the response if the request succeeded, otherwise undefined. */
  async count(
    request: () => Promise<ChaosAnswer | undefined>,
    { kind, expected }: { kind?: string; expected?: readonly number[] } = {},
  ): Promise<ChaosAnswer | undefined> {
    const since = clock.monotonic();
    const answer = await request();
    if (answer && answer.status < 300) {
      this.acknowledge(clock.monotonic() - since, kind);
      return answer;
    }
    this.countFailure(answer, expected);
    return undefined;
  }

  /** Counts a failed request. The statuses in `expected` are not counted as faults. */
  countFailure(answer: ChaosAnswer | undefined, expected: readonly number[] = []): void {
    if (!answer || answer.status >= 500) this.unknown += 1;
    else if (!expected.includes(answer.status)) {
      this.refuse(`${answer.status} ${answer.body.toString().slice(0, 200)}`);
    }
  }

  refuse(text: string): void {
    this.refused.set(text, (this.refused.get(text) ?? 0) + 1);
  }

  acknowledge(ms: number, kind?: string): void {
    this.acknowledged += 1;
    this.#times.push(ms);
    if (kind !== undefined) this.succeed(kind);
  }

  /** Counts a success of a kind of client that gets no acknowledgement of a change, such as a clone. */
  succeed(kind: string): void {
    this.#successes.set(kind, this.successesOf(kind) + 1);
  }

  successesOf(kind: string): number {
    return this.#successes.get(kind) ?? 0;
  }

  get longestMs(): number {
    return Math.round(this.#times.reduce((most, ms) => Math.max(most, ms), 0));
  }

  get medianMs(): number {
    return Math.round(this.#times.toSorted((a, b) => a - b)[this.#times.length >> 1] ?? 0);
  }

  /**
   * Describes unexpected refusals and the kinds of clients without a success. All requests of a load are valid, so a
   * refusal is a fault of the platform.
   */
  get problems(): string[] {
    const idle = [...this.#successes].filter(([, count]) => count === 0);
    return [
      ...Array.from(this.refused, ([text, count]) => `refused ${count} times: ${text}`),
      ...idle.map(([kind]) => `${kind}: no request has succeeded`),
    ];
  }
}

/** The clients of a load: each repeats its step until stop(). A step that throws is a violation, and ends its client. */
export class Clients {
  readonly problems: string[] = [];
  #isStopping = false;
  readonly #running: Promise<void>[] = [];

  get isStopping(): boolean {
    return this.#isStopping;
  }

  add(step: () => Promise<unknown>): void {
    this.#running.push(this.#run(step));
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#running);
  }

  async #run(step: () => Promise<unknown>): Promise<void> {
    try {
      while (!this.#isStopping) await step();
    } catch (error) {
      this.problems.push(error instanceof Error ? error.message : String(error));
    }
  }
}
