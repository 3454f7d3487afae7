/** Carries a request's id and its W3C trace context over the bus, and records the request's steps. */
import { AsyncLocalStorage } from "node:async_hooks";
import { headers, type MsgHdrs } from "@nats-io/transport-node";
import {
  context,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import { ActorError } from "../../../schemas/errors.ts";
import { type RequestStep, STEP_TEXT_CHARS_MAX } from "../../../schemas/request-step.ts";

/** The message header that names the request that caused the message, as `<run>.<request id>`. */
export const REQUEST_HEADER = "trunkline-request";

/** `traceparent` and the other headers of the propagators, and REQUEST_HEADER. */
export type TraceCarrier = Record<string, string>;

/** The current work: a message in its handler, or a call in progress. */
export interface Work {
  way: "call" | "mail" | "task";
  kind: string;
  message: string;
  key: string;
}

const requests = new AsyncLocalStorage<TraceCarrier>();
let record: ((step: RequestStep) => void) | undefined;

/** Sends the steps of this process to `recorder` until the returned function is called. */
export function recordSteps(recorder: (step: RequestStep) => void): () => void {
  record = recorder;
  return () => {
    if (record === recorder) record = undefined;
  };
}

/** Runs a request's work, so that all its messages and log lines name the request. */
export function inRequest<T>(run: string, requestId: string, work: () => T): T {
  return requests.run(requestCarrier(run, requestId), work);
}

/** Returns the carrier of messages that a run of a request causes. `run` has no dot. */
export const requestCarrier = (run: string, requestId: string): TraceCarrier => ({
  [REQUEST_HEADER]: `${run}.${requestId}`,
});

/** Returns the request and the current trace as headers; undefined outside of requests while traces are off. */
export function currentTrace(): TraceCarrier | undefined {
  const request = requests.getStore();
  if (!trace.getActiveSpan()) return request;
  const carrier: TraceCarrier = { ...request };
  propagation.inject(context.active(), carrier);
  return carrier;
}

/** Returns the id of the current request. */
export function currentRequestId(): string | undefined {
  return requestIdOf(requests.getStore());
}

export function requestIdOf(carrier: TraceCarrier | undefined): string | undefined {
  const named = carrier?.[REQUEST_HEADER];
  return named?.slice(named.indexOf(".") + 1);
}

export function traceHeaders(carrier: TraceCarrier): MsgHdrs {
  const built = headers();
  for (const name in carrier) built.set(name, carrier[name] ?? "");
  return built;
}

/** The trace of a received message. */
export function traceOf(came: MsgHdrs | undefined): TraceCarrier | undefined {
  if (!came?.has("traceparent") && !came?.has(REQUEST_HEADER)) return undefined;
  return Object.fromEntries(came.keys().map((name) => [name.toLowerCase(), came.get(name)]));
}

/**
 * Runs the work in the request of its message and in a span of the trace. Without a carrier, the work belongs to no
 * request.
 */
export function inSpan<T>(work: Work, carrier: TraceCarrier | undefined, run: () => T): T {
  if (!carrier) return outsideRequests(run);
  const named = carrier[REQUEST_HEADER];
  const traced = carrier.traceparent === undefined ? run : () => inOpenSpan(work, carrier, run);
  if (named === undefined) return outsideRequests(traced);
  // Calls are not recorded here: the caller records a call, including the time of its commit.
  const timed = work.way === "call" ? traced : () => timing(work, carrier, traced);
  return inRequestOf(carrier, timed);
}

/** Runs the work in the request of a message, so that log lines name the request. */
export function inRequestOf<T>(carrier: TraceCarrier | undefined, work: () => T): T {
  const named = carrier?.[REQUEST_HEADER];
  return named === undefined
    ? outsideRequests(work)
    : requests.run({ [REQUEST_HEADER]: named }, work);
}

/**
 * Runs work that belongs to no request. Otherwise a callback that serves messages of several requests would run in
 * the request that scheduled it, and would name this request in the messages of others.
 */
export function outsideRequests<T>(work: () => T): T {
  return requests.getStore() === undefined ? work() : requests.exit(work);
}

/** Records a complete step. */
export function recordStep(step: RequestStep): void {
  record?.(step);
}

/** Records a step of the request in the carrier. `startedAt` is monotonic. */
export function recordWork(
  { way, kind, message, key }: Work,
  carrier: TraceCarrier | undefined,
  { startedAt, failure }: { startedAt: number; failure?: unknown },
): void {
  if (record === undefined) return;
  const ms = roundedMs(performance.now() - startedAt);
  const error = failure === undefined ? undefined : codeOf(failure);
  recordOf(carrier, {
    way,
    name: `${kind} ${message}`,
    key,
    at: Math.round(Date.now() - ms),
    ms,
    error,
  });
}

/** Records a log line of the current request. */
export function recordLogLine(level: string, text: string, failure: string | undefined): void {
  const error = failure?.slice(0, STEP_TEXT_CHARS_MAX);
  const name = text.slice(0, STEP_TEXT_CHARS_MAX);
  recordOf(requests.getStore(), { way: "log", name, level, at: Date.now(), ms: 0, error });
}

type Recorded = Omit<RequestStep, "run" | "request" | "error"> & { error: string | undefined };

function recordOf(carrier: TraceCarrier | undefined, { error, ...step }: Recorded): void {
  const named = carrier?.[REQUEST_HEADER];
  if (record === undefined || named === undefined) return;
  const dot = named.indexOf(".");
  const of = { run: named.slice(0, dot), request: named.slice(dot + 1) };
  record({ ...of, ...step, ...(error !== undefined && { error }) });
}

function timing<T>(work: Work, carrier: TraceCarrier, run: () => T): T {
  const startedAt = performance.now();
  const done = (failure?: unknown) => recordWork(work, carrier, { startedAt, failure });
  // A task does not reject: it resolves to the error that ended it.
  return whenEnded(run, (value) => done(value instanceof Error ? value : undefined), done);
}

/** Runs work, and calls `done` or `failed` when it has ended, at once or later. */
function whenEnded<T>(
  run: () => T,
  done: (value: unknown) => void,
  failed: (error: unknown) => void,
): T {
  const fail = (error: unknown): never => {
    failed(error);
    throw error;
  };
  try {
    const result = run();
    if (result instanceof Promise) {
      const ended = result.then((value: unknown) => {
        done(value);
        return value;
      }, fail);
      return ended as T;
    }
    done(undefined);
    return result;
  } catch (error) {
    return fail(error);
  }
}

/** Rounds to hundredths, because steps are stored as text. */
const roundedMs = (ms: number) => Math.round(ms * 100) / 100;

function codeOf(failure: unknown): string {
  if (failure instanceof ActorError) return failure.code;
  // An InvalidInput has a refusal: the schema refused the input of the message.
  const { refusal } = Object(failure) as { refusal?: unknown };
  return refusal instanceof ActorError ? refusal.code : "internal_error";
}

function inOpenSpan<T>({ kind, message }: Work, carrier: TraceCarrier, work: () => T): T {
  const parent = propagation.extract(ROOT_CONTEXT, carrier);
  const tracer = trace.getTracer("trunkline");
  const span = tracer.startSpan(`${kind} ${message}`, { kind: SpanKind.CONSUMER }, parent);
  const run = () => context.with(trace.setSpan(parent, span), work);
  const done = () => span.end();
  return whenEnded(run, done, (error) => {
    span.setStatus({ code: SpanStatusCode.ERROR, message: String(error) });
    span.end();
  });
}
