/** The program's log on standard error: readable lines on a terminal, one line of JSON an event elsewhere. */
import { isatty } from "node:tty";
import { TimeoutError } from "@nats-io/transport-node";
import { type Level, type Logger, pino } from "pino";
import { OutcomeUnknown, WriteRefused } from "../actors/runtime/bus/atomic-batch.ts";
import { BusLost } from "../actors/runtime/bus/bus.ts";
import { ActorError } from "../schemas/errors.ts";

export type { Logger } from "pino";

const STANDARD_ERROR = 2;
const WARN = 40;
/** Expected errors of operation. Their class says where they come from, so the log leaves out the stack. */
const EXPECTED = [ActorError, BusLost, OutcomeUnknown, WriteRefused, TimeoutError];

export interface LoggerOptions {
  level?: Level;
  /** True for readable lines on a terminal. */
  isReadable?: boolean;
  write?: (line: string) => void;
}

export function createLogger({
  level = "info",
  isReadable = isatty(STANDARD_ERROR),
  write,
}: LoggerOptions = {}): Logger {
  // Synchronous: lines from just before the end must reach the log.
  const out = pino.destination({ fd: STANDARD_ERROR, sync: true });
  const send = write ?? ((line: string) => void out.write(line));
  const options = {
    base: null,
    level,
    serializers: { err: serializeError },
    hooks: { logMethod: demoteLostBus },
  };
  return pino(options, { write: (line) => send(isReadable ? readable(line) : line) });
}

/** While the bus is away every operation fails. `watchBus` logs that once; these errors become debug lines. */
function demoteLostBus(
  this: Logger,
  parameters: Parameters<Logger["warn"]>,
  method: (...parameters: Parameters<Logger["warn"]>) => void,
  level: number,
): void {
  const [fields] = parameters as unknown[];
  const error = typeof fields === "object" && fields !== null && "err" in fields && fields.err;
  if (level >= WARN && isBusLost(error)) this.debug(...parameters);
  else method.apply(this, parameters);
}

function isBusLost(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error instanceof BusLost || isBusLost(error.cause);
}

function serializeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  if (!EXPECTED.some((expected) => error instanceof expected)) {
    return pino.stdSerializers.err(error);
  }
  const { message, cause } = error;
  return {
    type: error.constructor.name,
    message,
    ...("code" in error && { code: error.code }),
    ...(cause instanceof Error && { cause: cause.message }),
  };
}

/** Formats `12:30:05 WARN  lease not renewed host=a: Cannot reach the bus`, with the stack below. */
function readable(line: string): string {
  const { level, time, msg, err, ...fields } = JSON.parse(line) as {
    level: number;
    time: number;
    msg?: string;
    err?: { message?: string; stack?: string };
    [field: string]: unknown;
  };
  const at = new Date(time).toTimeString().slice(0, 8);
  const name = (pino.levels.labels[level] ?? `${level}`).toUpperCase().padEnd(5);
  const words = Object.entries(fields).map(([field, value]) => {
    return `${field}=${typeof value === "string" ? value : JSON.stringify(value)}`;
  });
  const reason = err === undefined ? "" : `: ${err.message ?? JSON.stringify(err)}`;
  const stack = err?.stack === undefined ? "" : `\n${err.stack}`;
  return `${at} ${name} ${[msg, ...words].filter(Boolean).join(" ")}${reason}${stack}\n`;
}
