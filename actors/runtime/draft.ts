/** One transition while a handler builds it: the new state, rows, sends and reminders. */
import type { DeepReadonly, Envelope } from "../../schemas/contract.ts";
import type { HandlerContext } from "./kinds/define-actor.ts";

/** A state whose members a draft may replace. The values of the members stay read-only. */
type OpenState<S> = {
  -readonly [member in keyof DeepReadonly<S>]: DeepReadonly<S>[member];
};

/**
 * `S` is the state, `R` a row, and `N` the names of reminders. A kind extends this class with getters and steps of
 * its own. A draft that changed nothing yields the state object that it was given, so the runtime commits nothing.
 */
export class Draft<S extends object, R = never, N extends string = never> {
  readonly context: HandlerContext<R>;
  readonly state: OpenState<S>;
  readonly #before: DeepReadonly<S>;
  readonly #rows = new Map<string, DeepReadonly<R> | null>();
  readonly #sends: Envelope[] = [];
  readonly #reminders: { [name in N]?: number | null } = {};

  constructor(state: DeepReadonly<S>, context: HandlerContext<R>) {
    this.context = context;
    this.state = { ...state } as OpenState<S>;
    this.#before = state;
  }

  get key(): string {
    return this.context.key;
  }

  get now(): number {
    return this.context.now;
  }

  /** Whether a member of the state has been replaced, added or removed. */
  get hasNewState(): boolean {
    const [before, after] = [this.#before, this.state] as Record<string, unknown>[];
    const names = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
    return [...names].some((name) => before?.[name] !== after?.[name]);
  }

  /** Number of rows that this transition writes or removes. */
  get writtenRows(): number {
    return this.#rows.size;
  }

  /** Whether this transition writes or removes the row. */
  hasWritten(name: string): boolean {
    return this.#rows.has(name);
  }

  /** Returns the row as this draft leaves it. */
  row(name: string): DeepReadonly<R> | undefined {
    const written = this.#rows.get(name);
    return written === undefined ? this.context.rows.get(name) : (written ?? undefined);
  }

  /** Writes a row; `null` removes it. */
  write(name: string, row: DeepReadonly<R> | null): void {
    // A row that the same message made and removed was never stored.
    if (row === null && !this.context.rows.has(name)) this.#rows.delete(name);
    else this.#rows.set(name, row);
  }

  send(...envelopes: readonly Envelope[]): void {
    this.#sends.push(...envelopes);
  }

  /** The messages that this transition sends so far. */
  get sent(): readonly Envelope[] {
    return this.#sends;
  }

  /** Sets a reminder to a time in epoch milliseconds; `null` cancels it. */
  remind(name: N, at: number | null): void {
    this.#reminders[name] = at;
  }

  transition() {
    return {
      state: this.hasNewState ? (this.state as DeepReadonly<S>) : this.#before,
      ...(this.#rows.size > 0 && { rows: Object.fromEntries(this.#rows) }),
      ...(this.#sends.length > 0 && { send: this.#sends }),
      ...(Object.keys(this.#reminders).length > 0 && { remind: this.#reminders }),
    };
  }
}
