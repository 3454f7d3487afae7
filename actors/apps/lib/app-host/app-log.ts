/**
 * Writes the output of apps to the stream of logs. Clients that follow a log receive each line when it is published.
 */

import type { AppLogLine } from "../../../../schemas/apps/app-log.ts";
import {
  APP_LOG_LINE_CHARS_MAX,
  APP_LOG_LINES_A_SECOND_MAX,
} from "../../../../schemas/apps/limits.ts";
import { appLogSubject } from "../../../../schemas/subjects.ts";
import { tell } from "../../../runtime/bus/ask.ts";
import type { Bus } from "../../../runtime/bus/bus.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";

export class AppLog {
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #counts = new Map<string, { second: number; lines: number }>();

  constructor(bus: Bus, clock: Clock) {
    this.#bus = bus;
    this.#clock = clock;
  }

  /**
   * Publishes a line without waiting. Lines are lost while the bus is disconnected, and above the limit of lines per
   * second.
   */
  print(app: string, line: Omit<AppLogLine, "at">): void {
    const at = this.#clock.now();
    const second = Math.floor(at / 1_000);
    const count = this.#counts.get(app);
    if (count?.second !== second) {
      this.#counts.set(app, { second, lines: 1 });
      const missing = (count?.lines ?? 0) - APP_LOG_LINES_A_SECOND_MAX;
      if (missing > 0)
        this.#publish(app, {
          ...line,
          at,
          level: "warn",
          text: `${missing} lines are missing here`,
        });
    } else {
      count.lines += 1;
      if (count.lines > APP_LOG_LINES_A_SECOND_MAX) return;
    }
    this.#publish(app, { ...line, at });
  }

  #publish(app: string, line: AppLogLine): void {
    const text = line.text.slice(0, APP_LOG_LINE_CHARS_MAX);
    tell(this.#bus, appLogSubject(app), JSON.stringify({ ...line, text }));
  }
}
