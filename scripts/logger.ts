/** The program's log: one line of JSON an event, on standard error, so that standard output is left to people. */
import { type Logger, pino } from "pino";

export type { Logger } from "pino";

export function createLogger(): Logger {
  // Written at once: what is logged just before the end must be there after it.
  return pino({ base: null }, pino.destination({ fd: 2, sync: true }));
}
