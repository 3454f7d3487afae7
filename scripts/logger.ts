/** The program's log on standard error: readable lines on a terminal; otherwise JSON, one line for each event. */
import { isatty } from "node:tty";
import { TimeoutError } from "@nats-io/transport-node";
import { type Level, type Logger, pino } from "pino";
import { OutcomeUnknown, WriteRefused } from "../actors/runtime/bus/atomic-batch.ts";
import { BusLost } from "../actors/runtime/bus/bus.ts";
import { currentRequestId, recordLogLine } from "../actors/runtime/lib/trace.ts";
import { ActorError } from "../schemas/errors.ts";

export type { Logger } from "pino";

const STANDARD_ERROR = 2;
const INFO = 30;
const WARN = 40;
/** The message of the log line that the gateway writes for each request. */
const REQUEST_LINE = "request";
/** Errors that are expected in operation. Their class shows where they come from, so the log omits the stack. */
const EXPECTED = [ActorError, BusLost, OutcomeUnknown, WriteRefused, TimeoutError];

export interface LoggerOptions {
  level?: Level;
  /** True for readable lines instead of JSON. */
  isReadable?: boolean;
  write?: (line: string) => void;
}

export function createLogger({
  level = "info",
  isReadable = isatty(STANDARD_ERROR),
  write,
}: LoggerOptions = {}): Logger {
  // Writes synchronously, so that lines from just before the process ends are not lost.
  const out = pino.destination({ fd: STANDARD_ERROR, sync: true });
  const send = write ?? ((line: string) => void out.write(line));
  const options = {
    base: null,
    level,
    serializers: { err: serializeError },
    mixin: requestOf,
    hooks: { logMethod: demoteLostBus },
  };
  return pino(options, { write: (line) => send(isReadable ? readable(line) : line) });
}

/** Adds the id of the current request to a log line, unless the logger of that request already adds it. */
function requestOf(_fields: object, _level: number, logger: Logger): { requestId?: string } {
  const requestId = currentRequestId();
  if (requestId === undefined || "requestId" in logger.bindings()) return {};
  return { requestId };
}

/**
 * While the bus is unavailable, every operation fails. `watchBus` logs this once, so these errors are logged at the
 * level debug.
 */
function demoteLostBus(
  this: Logger,
  parameters: Parameters<Logger["warn"]>,
  method: (...parameters: Parameters<Logger["warn"]>) => void,
  level: number,
): void {
  const [fields] = parameters as unknown[];
  const error = typeof fields === "object" && fields !== null && "err" in fields && fields.err;
  if (level >= WARN && isBusLost(error)) this.debug(...parameters);
  else {
    method.apply(this, parameters);
    recordLine(parameters, level, error);
  }
}

/**
 * Records the log line as a step of its request. The gateway's line for the request is already recorded as a step.
 */
function recordLine(parameters: readonly unknown[], level: number, error: unknown): void {
  const text = parameters.find((one) => typeof one === "string");
  if (level < INFO || text === undefined || text === REQUEST_LINE) return;
  const reason = error instanceof Error ? error.message : undefined;
  recordLogLine(pino.levels.labels[level] ?? String(level), text, reason);
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

/**
 * Formats a line as `12:30:05 WARN lease not renewed host=a: Cannot reach the bus`, with the stack on the next lines.
 */
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
