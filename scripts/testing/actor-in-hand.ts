/**
 * Runs one actor in a test without a host. It keeps the actor's state and rows between messages, its clock, its
 * reminders and its sent messages.
 */
import type { ActorDefinition } from "../../actors/runtime/kinds/define-actor.ts";
import type { DeepReadonly, Envelope, Input, Messages, Reply } from "../../schemas/contract.ts";
import { runHandler } from "./run-handler.ts";

export class ActorInHand<M extends Messages, S, R> {
  state: DeepReadonly<S>;
  now = Date.UTC(2026, 10, 20);
  readonly rows = new Map<string, DeepReadonly<R>>();
  readonly reminders = new Map<string, number>();
  /** Sent messages that the test has not read yet. */
  sent: Envelope[] = [];
  forgotten = 0;
  /** The host process that runs the actor. If undefined, the actor cannot notice that the time of day is set. */
  process: string | undefined;
  readonly #definition: ActorDefinition<M, S, R>;
  readonly #key: string;
  #ids = 0;
  #aheadMs = 0;

  constructor(definition: ActorDefinition<M, S, R>, key: string) {
    this.#definition = definition;
    this.#key = key;
    this.state = definition.initial as DeepReadonly<S>;
  }

  ask<N extends keyof M & string>(message: N, input: Input<M[N]>): Reply<M[N]> {
    const { process: id } = this;
    const handled = runHandler(this.#definition, message, this.state, input, {
      key: this.#key,
      now: this.now,
      ...(id !== undefined && { steady: () => ({ id, aheadMs: this.#aheadMs }) }),
      rows: this.rows,
      newId: () => (++this.#ids).toString(16).padStart(32, "0"),
    });
    this.state = handled.state;
    if (handled.forgotten) {
      this.rows.clear();
      this.reminders.clear();
      this.forgotten += 1;
    }
    for (const [row, value] of Object.entries(handled.rows)) {
      if (value === null) this.rows.delete(row);
      else this.rows.set(row, value as DeepReadonly<R>);
    }
    for (const [name, at] of Object.entries(handled.remind)) {
      if (typeof at === "number") this.reminders.set(name, at);
      else this.reminders.delete(name);
    }
    this.sent.push(...handled.send);
    return handled.reply;
  }

  /**
   * Sets the time of day forward, or back if `ms` is negative. As a host does then, delivers the reminders that may come
   * early.
   */
  setClock(ms: number): void {
    this.now += ms;
    this.#aheadMs += ms;
    if (ms > 0) return;
    for (const name of this.#definition.mayComeEarly ?? []) {
      if (this.reminders.delete(name)) this.ask(name, {} as Input<M[typeof name]>);
    }
  }

  /**
   * Advances the clock to the time of the reminder `name`, removes the reminder, and delivers it to the actor as a
   * message.
   */
  remind(name: keyof M & string): void {
    const at = this.reminders.get(name);
    if (at === undefined) throw new Error(`There is no reminder ${name}`);
    this.now = Math.max(this.now, at);
    this.reminders.delete(name);
    this.ask(name, {} as Input<M[typeof name]>);
  }
}
