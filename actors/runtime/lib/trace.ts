/** Carries W3C trace context over the bus, so that a request's trace goes on where its messages go. */

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

/** `traceparent` and what else the propagators write. */
export type TraceCarrier = Record<string, string>;

/** The present trace as headers; undefined where there is none, as always while traces are off. */
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

/** The trace a message came with. */
export function traceOf(came: MsgHdrs | undefined): TraceCarrier | undefined {
  if (!came?.has("traceparent")) return undefined;
  return Object.fromEntries(came.keys().map((name) => [name.toLowerCase(), came.get(name)]));
}

/** Does the work in a span that belongs to the trace; without one it just does it. */
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
