/** Carries W3C trace context over the bus, so that a request's trace follows its messages. */

import { headers, type MsgHdrs } from "@nats-io/transport-node";
import {
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";

/** `traceparent` and the other headers of the propagators. */
export type TraceCarrier = Record<string, string>;

/** The present trace as headers; undefined without one, as always while traces are off. */
export function currentTrace(): TraceCarrier | undefined {
  if (!trace.getActiveSpan()) return undefined;
  const carrier: TraceCarrier = {};
  propagation.inject(context.active(), carrier);
  return carrier;
}

export function traceHeaders(carrier: TraceCarrier): MsgHdrs {
  const built = headers();
  for (const name in carrier) built.set(name, carrier[name] ?? "");
  return built;
}

/** The trace of a received message. */
export function traceOf(came: MsgHdrs | undefined): TraceCarrier | undefined {
  if (!came?.has("traceparent")) return undefined;
  return Object.fromEntries(came.keys().map((name) => [name.toLowerCase(), came.get(name)]));
}

/** Runs the work in a span of the trace; without a trace it just runs the work. */
export function inSpan<T>(name: string, carrier: TraceCarrier | undefined, work: () => T): T {
  if (!carrier) return work();
  const parent = propagation.extract(ROOT_CONTEXT, carrier);
  const span = trace.getTracer("trunkline").startSpan(name, { kind: SpanKind.CONSUMER }, parent);
  try {
    const result = context.with(trace.setSpan(parent, span), work);
    if (!(result instanceof Promise)) {
      span.end();
      return result;
    }
    return result.then(
      (value) => {
        span.end();
        return value;
      },
      (error: unknown) => fail(span, error),
    ) as T;
  } catch (error) {
    return fail(span, error);
  }
}

function fail(span: Span, error: unknown): never {
  span.setStatus({ code: SpanStatusCode.ERROR, message: String(error) });
  span.end();
  throw error;
}
