/** The form of one load of a chaos run, and what all loads count. */
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import type { ChaosAnswer } from "./chaos-client.ts";

export interface ChaosLoad {
  readonly name: string;
  readonly tally: Tally;
  /** Makes what the load needs, then lets its clients begin. Resolves when they have begun. */
  start(): Promise<void>;
  /** Resolves when every client has the answer to its last request. */
  stop(): Promise<void>;
  /** Compares what was acknowledged with what is there now. Call it after stop(), when nothing is broken any more. */
  findProblems(): Promise<string[]>;
}

/** Counts the outcomes of requests. */
export class Tally {
  acknowledged = 0;
  /** Requests without an answer, or with one that says that nobody knows: 5xx. */
  unknown = 0;
  /** Unexpected refusals, by status and text. */
  readonly refused = new Map<string, number>();
  readonly #times: number[] = [];
  readonly #successes: Map<string, number>;

  /** `kinds`: the kinds of clients of the load. Each must succeed once. */
  constructor(kinds: readonly string[] = []) {
    this.#successes = new Map(kinds.map((kind) => [kind, 0]));
  }

  /** Makes one request and counts its outcome. Returns the answer if it is a success. */
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

  /** Counts an answer that is no success. `expected`: statuses that are no fault. */
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

  /** Counts a success of a kind of client that acknowledges nothing, such as a clone. */
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

  /** No request of a load is wrong, so a refusal is a fault of the platform. */
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
