/**
 * Delivers events to one agent, one at a time. The next event starts when the running code awaits something other
 * than storage. So nothing runs between a storage read and the write after it, as in the public programming model of
 * such agents.
 */
import type { Block } from "../package/agent-runtime.ts";
import { type Running, runAs, running } from "../package/current-agent.ts";
import { setImmediate } from "./native-timers.ts";

interface WaitingEvent {
  block: Block | undefined;
  begin: () => void;
}

/** The empty context in which events run, instead of the context of the code that delivered them. */
const NOWHERE: Running = {};

export class InputGate {
  readonly #waiting: WaitingEvent[] = [];
  /** Critical sections that the agent's code has requested. They begin before waiting events. */
  readonly #sections: WaitingEvent[] = [];
  #active: Block | undefined;
  /** Number of awaited storage operations. */
  #holds = 0;
  #isArmed = false;

  /** Runs `event` when the gate is open. `block` is the critical section that the event belongs to. */
  deliver<T>(event: () => T | Promise<T>, block?: Block): Promise<T> {
    return this.#enqueue(this.#waiting, event, block);
  }

  /**
   * Delivers an event as deliver() does. But the first event in a turn of the event loop begins without delay if the
   * gate is open. Only callers that do not run in the agent's code may use it, such as the platform's own timers. The
   * next record then contains all that the event writes before its first await.
   */
  start<T>(event: () => T | Promise<T>): Promise<T> {
    if (this.#isArmed || !this.#isOpenTo(undefined)) return this.deliver(event);
    this.#isArmed = true;
    setImmediate(() => {
      this.#isArmed = false;
      this.#arm();
    });
    return runAs(NOWHERE, async () => event());
  }

  #enqueue<T>(
    queue: WaitingEvent[],
    event: () => T | Promise<T>,
    block: Block | undefined,
  ): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const begin = () => {
      try {
        resolve(event());
      } catch (error) {
        reject(error);
      }
    };
    queue.push({ block, begin: () => runAs(NOWHERE, begin) });
    this.#arm();
    return promise;
  }

  /**
   * Delivers an event that the event loop begins separately, such as a timer's. If the gate is open, the event runs
   * without delay.
   */
  pass(event: () => void, block: Block | undefined): void {
    if (this.#isOpenTo(block)) event();
    else void this.deliver(event, block);
  }

  /**
   * Runs `work` as a critical section. It is nested in the section of its caller, and begins after the sections
   * requested earlier.
   */
  async block<T>(work: (block: Block) => Promise<T>): Promise<T> {
    const block: Block = { outer: running()?.block };
    const begin = () => {
      this.#active = block;
      return work(block);
    };
    try {
      if (this.#isOpenTo(block.outer)) return await begin();
      return await this.#enqueue(this.#sections, begin, block.outer);
    } finally {
      if (this.#active === block) this.#active = block.outer;
      this.#arm();
    }
  }

  /** Delivers no event before `operation` has ended. */
  async hold<T>(operation: Promise<T>): Promise<T> {
    this.#holds += 1;
    try {
      return await operation;
    } finally {
      this.#holds -= 1;
      this.#arm();
    }
  }

  #isOpenTo(block: Block | undefined): boolean {
    if (this.#holds > 0) return false;
    if (this.#active === undefined) return true;
    for (let at = block; at !== undefined; at = at.outer) if (at === this.#active) return true;
    return false;
  }

  /**
   * Delivers at most one event in each check phase of the event loop. Between two events, Node runs all pending
   * promise callbacks.
   */
  #arm(): void {
    if (this.#isArmed || this.#waiting.length + this.#sections.length === 0) return;
    this.#isArmed = true;
    setImmediate(() => {
      this.#isArmed = false;
      const event = this.#takeFrom(this.#sections) ?? this.#takeFrom(this.#waiting);
      if (event === undefined) return;
      this.#arm();
      event.begin();
    });
  }

  #takeFrom(queue: WaitingEvent[]): WaitingEvent | undefined {
    const index = queue.findIndex(({ block }) => this.#isOpenTo(block));
    return index < 0 ? undefined : queue.splice(index, 1)[0];
  }
}
