/**
 * An actor with a log while one message changes it: what the steps of a handler do to it is one transition in the
 * end.
 */
import type { DeepReadonly, Envelope } from "../../../../schemas/contract.ts";
import type { HandlerContext } from "../../../runtime/kinds/define-actor.ts";

/** When the next try is due, and when what is old goes: the state has both as `<name>At`. */
export type LogReminder = "resume" | "trim";

export class LogDraft<S extends object, R> {
  state: DeepReadonly<S>;
  readonly key: string;
  readonly now: number;
  readonly rows: HandlerContext<R>["rows"];
  readonly send: Envelope[] = [];
  readonly #written: Record<string, DeepReadonly<R> | null> = {};
  readonly #remind: { [name in LogReminder]?: number } = {};

  constructor(state: DeepReadonly<S>, { key, now, rows }: HandlerContext<R>) {
    this.state = state;
    this.key = key;
    this.now = now;
    this.rows = rows;
  }

  change(fields: Partial<DeepReadonly<S>>): void {
    this.state = { ...this.state, ...fields };
  }

  write(rows: Record<string, DeepReadonly<R> | null>): void {
    Object.assign(this.#written, rows);
  }

  remind(name: LogReminder, at: number): void {
    this.#remind[name] = at;
    this.state = { ...this.state, [`${name}At`]: at };
  }

  /** As it is by now. */
  row(name: string): DeepReadonly<R> | undefined {
    return this.#written[name] ?? this.rows.get(name);
  }

  /** One that changes nothing has nothing but its state, and costs no commit. */
  transition() {
    return {
      state: this.state,
      ...(Object.keys(this.#written).length > 0 && { rows: this.#written }),
      ...(this.send.length > 0 && { send: this.send }),
      ...(Object.keys(this.#remind).length > 0 && { remind: this.#remind }),
    };
  }
}
