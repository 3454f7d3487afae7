/** One transition of an actor with a log, while a handler builds it. */
import type { DeepReadonly } from "../../../../schemas/contract.ts";
import { Draft } from "../../../runtime/draft.ts";

/**
 * Reminders for the next attempt, and for the removal of old entries. The state holds the time of each as `<name>At`.
 */
type LogReminder = "resume" | "trim";

export class LogDraft<S extends object, R> extends Draft<S, R, LogReminder> {
  change(fields: Partial<DeepReadonly<S>>): void {
    Object.assign(this.state, fields);
  }

  /** Writes several rows; `null` removes one. */
  writeRows(rows: Record<string, DeepReadonly<R> | null>): void {
    for (const [name, row] of Object.entries(rows)) this.write(name, row);
  }

  override remind(name: LogReminder, at: number): void {
    super.remind(name, at);
    Object.assign(this.state, { [`${name}At`]: at });
  }
}
